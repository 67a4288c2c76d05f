"""Ghost contents: what each worker's copy of each block truly holds. No rule's guard reads them; properties do.

A content is one int: UNWRITTEN, a key (the KV of that prefix), or minus a key (the same, from before an
`invalidate` reset, worthless ever since).
"""

UNWRITTEN = 0

Contents = tuple[tuple[int, ...], ...]
"""contents[worker][block]"""


def unwritten(workers: int, blocks: int) -> Contents:
    return ((UNWRITTEN,) * blocks,) * workers


def before_reset(key: int) -> int:
    """The content of a key's KV that was computed before the last `invalidate` reset."""
    return -key


def aged(contents: Contents) -> Contents:
    """All contents after an `invalidate` reset: what was true of the old weights is worthless now."""
    return tuple([tuple([-abs(content) for content in blocks]) for blocks in contents])


def written(contents: Contents, worker: int, writes: list[tuple[int, int]]) -> Contents:
    """Contents after one worker has written (block, content) pairs."""
    blocks = list(contents[worker])
    for block, content in writes:
        blocks[block] = content
    rows = list(contents)
    rows[worker] = tuple(blocks)
    return tuple(rows)


def describe(content: int, names: tuple[str, ...]) -> str:
    """A content in words: `CONTENT(ab)`, `BEFORE_RESET(ab)` or `UNWRITTEN`."""
    if content == UNWRITTEN:
        return "UNWRITTEN"
    name = names[abs(content) - 1]
    return f"CONTENT({name})" if content > 0 else f"BEFORE_RESET({name})"
