"""Ghost contents: what each worker's copy of each block truly holds. No rule's guard reads them; properties do.

A content is one int: UNWRITTEN, a key (the KV of that prefix), minus a key (the same, from before an `invalidate`
reset, worthless ever since), or TORN (what a failed copy leaves behind).
"""

from collections.abc import Sequence

UNWRITTEN = 0

TORN = 1 << 30
"""Bytes that are no content: a copy failed before it had written all of them. No key is as large."""

Contents = tuple[tuple[int, ...], ...]
"""contents[worker][block]"""


def unwritten(workers: int, blocks: int) -> Contents:
    return ((UNWRITTEN,) * blocks,) * workers


def before_reset(key: int) -> int:
    """The content of a key's KV that was computed before the last `invalidate` reset."""
    return -key


def aged(contents: Contents) -> Contents:
    """All contents after an `invalidate` reset: what was true of the old weights is worthless now."""
    return tuple([tuple([content if content == TORN else -abs(content) for content in blocks]) for blocks in contents])


def written(contents: Contents, worker: int, writes: list[tuple[int, int]]) -> Contents:
    """Contents after one worker has written (block, content) pairs."""
    blocks = list(contents[worker])
    for block, content in writes:
        blocks[block] = content
    rows = list(contents)
    rows[worker] = tuple(blocks)
    return tuple(rows)


def describe(content: int, names: Sequence[str]) -> str:
    """A content in words: `CONTENT(ab)`, `BEFORE_RESET(ab)`, `UNWRITTEN` or `TORN`."""
    if content in (UNWRITTEN, TORN):
        return "TORN" if content else "UNWRITTEN"
    name = names[abs(content) - 1]
    return f"CONTENT({name})" if content > 0 else f"BEFORE_RESET({name})"
