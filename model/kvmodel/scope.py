"""The scope: finite sizes, and how often the client and the environment may do what nobody makes them do."""

from typing import Literal, NamedTuple

from kvmodel.errors import BadScope
from kvmodel.tiers import TIERS, Tiers, objection

Meaning = Literal["invalidate", "evict"]
MEANINGS: tuple[Meaning, ...] = ("invalidate", "evict")

SYMBOLS_PER_PROMPT = 256
SYMBOLS = 16_384
"""Of all prompts and all that is decoded (count): each stands for its whole prefix, which is kept."""
REQUESTS = 1_024
BLOCKS = 100_000
WORKERS = 64
TIMES = 1_000_000


class Scope(NamedTuple):
    """Sizes of one finite instance.

    device_blocks, host_blocks  blocks of each pool (count)
    workers       ranks, each with its own shard of every block (count)
    prompts       one request each; one symbol is one block, so `ab` and `ac` share their first block
    decode        blocks that every request grows after its prompt (count)
    decoded       what each request grows after its prompt, where they differ: as in `prompts`, or nothing (empty:
                  `decode` says it). Unlike with `decode`, another prompt may go on from it.
    resets        how often the client may reset (count), with which `meanings`, and with `survivors` or without
    tiers         which tiers its resets may name
    aborts, preempts, lookups   may the client abort; may it preempt; do lookups pin until admission
    stops         may a request end with any output once its prompt is computed, when a stop token is sampled
    duplicates, losses, forgeries, double_frees   how often each fault may occur (count)
    failures, partial_failures   how often a worker's copy of a job may fail: wholly, or in one of its blocks (count)
    expiries      jobs that may expire although their report will still come, if the contract has a deadline (count)
    deaths        workers that may die (count)
    lazy_window   free blocks from the eviction end that a lazy store examines (count; 0: all of them)
    repeats       a symbol has one key wherever it stands, so that one block can stand at several positions of a table:
                  what keys of whole prefixes never allow, and what sliding windows and placeholders bring about
    second_blocks blocks of a second host tier below the host, such as a file (count; 0: there is none)
    window        blocks before a block that its compute reads (count; 0: all). A growing request gives up what it has
                  computed and no more reads; its table has holes there. Lookups still find unbroken prefixes alone.
    """

    device_blocks: int
    host_blocks: int
    workers: int
    prompts: tuple[str, ...]
    decode: int = 0
    resets: int = 1
    meanings: tuple[Meaning, ...] = ("invalidate",)
    survivors: bool = False
    tiers: tuple[Tiers, ...] = ("all",)
    aborts: bool = True
    preempts: bool = True
    lookups: bool = False
    stops: bool = False
    duplicates: int = 0
    losses: int = 0
    forgeries: int = 0
    double_frees: int = 0
    failures: int = 0
    partial_failures: int = 0
    expiries: int = 0
    lazy_window: int = 0
    repeats: bool = False
    window: int = 0
    second_blocks: int = 0
    deaths: int = 0
    decoded: tuple[str, ...] = ()


def validated(scope: Scope) -> Scope:
    """The same scope, or BadScope naming the first field that makes no sense."""
    for name, value, least, most in (
        ("device_blocks", scope.device_blocks, 1, BLOCKS),
        ("host_blocks", scope.host_blocks, 1, BLOCKS),
        ("workers", scope.workers, 1, WORKERS),
        ("prompts", len(scope.prompts), 1, REQUESTS),
        ("decode", scope.decode, 0, SYMBOLS_PER_PROMPT),
        ("resets", scope.resets, 0, TIMES),
        ("duplicates", scope.duplicates, 0, TIMES),
        ("losses", scope.losses, 0, TIMES),
        ("forgeries", scope.forgeries, 0, TIMES),
        ("double_frees", scope.double_frees, 0, TIMES),
        ("failures", scope.failures, 0, TIMES),
        ("partial_failures", scope.partial_failures, 0, TIMES),
        ("expiries", scope.expiries, 0, TIMES),
        ("deaths", scope.deaths, 0, scope.workers),
        ("lazy_window", scope.lazy_window, 0, BLOCKS),
        ("window", scope.window, 0, SYMBOLS_PER_PROMPT),
        ("second_blocks", scope.second_blocks, 0, BLOCKS),
    ):
        if not least <= value <= most:
            raise BadScope(f"{name} is {value}; it must be between {least} and {most}")
    _check_decoded(scope)
    for number, prompt in enumerate(scope.prompts):
        if not 1 <= len(prompt) <= SYMBOLS_PER_PROMPT or not prompt.isalnum():
            raise BadScope(f"prompt {prompt!r} must be 1 to {SYMBOLS_PER_PROMPT} letters or digits, one for each block")
        decode = len(scope.decoded[number]) if scope.decoded else scope.decode
        needed = most_at_once(len(prompt), len(prompt) + decode, scope.window)
        if needed > scope.device_blocks:
            raise BadScope(
                f"prompt {prompt!r} with decode={decode} needs {needed} device blocks, "
                f"and device_blocks is {scope.device_blocks}: it could never finish"
            )
    if scope.resets and not scope.meanings:
        raise BadScope("resets are allowed but meanings is empty; use invalidate, evict or both")
    for meaning in scope.meanings:
        if meaning not in MEANINGS:
            raise BadScope(f"meaning {meaning!r} does not exist; use invalidate or evict")
    if scope.resets:
        _check_tiers(scope)
    return scope


def _check_decoded(scope: Scope) -> None:
    symbols = sum(map(len, scope.prompts)) + sum(map(len, scope.decoded)) + scope.decode * len(scope.prompts)
    if symbols > SYMBOLS:
        raise BadScope(f"prompts have {symbols:,} blocks with what is decoded; there may be {SYMBOLS:,} in all")
    if not scope.decoded:
        return
    if scope.decode or len(scope.decoded) != len(scope.prompts):
        raise BadScope("decoded has one member for each prompt, which may be empty, and decode is 0 beside it")
    for text in scope.decoded:
        if len(text) > SYMBOLS_PER_PROMPT or (text and not text.isalnum()):
            raise BadScope(f"decoded {text!r} must be up to {SYMBOLS_PER_PROMPT} letters or digits, one for each block")


def _check_tiers(scope: Scope) -> None:
    """Each of the tiers goes with one of the meanings, and each of the meanings with some of the tiers."""
    if not scope.tiers:
        raise BadScope(f"resets are allowed but tiers is empty; use {', '.join(TIERS)} or several of them")
    for tiers in scope.tiers:
        if tiers not in TIERS:
            raise BadScope(f"tiers {tiers!r} does not exist; use {', '.join(TIERS)}")
        if "evict" not in scope.meanings and (why := objection("invalidate", "keep", tiers)):
            raise BadScope(f"tiers has {tiers} and meanings lacks evict: {why}")
    if "invalidate" in scope.meanings and "all" not in scope.tiers:
        raise BadScope("meanings has invalidate and tiers lacks all: a reset of one tier alone can only mean evict")


def most_at_once(prompt: int, total: int, window: int) -> int:
    """Blocks that a request holds at most, given those of its prompt and of all of it (counts): it is admitted with its
    prompt, and grows by one beside its window."""
    return max(prompt, min(total, window + 1)) if window else total


class Sequences(NamedTuple):
    """The keys of a scope. A key is a small positive int and stands for a block's whole prefix; 0 is `no key`.
    In a scope with `repeats` it stands for the block's symbol alone.

    prompt  keys of each request's prompt, in order
    total   the same followed by the keys of its decoded blocks
    names   names[key - 1] is the prefix that the key stands for, such as "ab" or "ab+1" for a decoded block
    """

    prompt: tuple[tuple[int, ...], ...]
    total: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]


def sequences(scope: Scope) -> Sequences:
    """The keys of every request; equal prefixes have equal keys, or with `repeats` equal symbols."""
    numbers: dict[str, int] = {}

    def key(prefix: str) -> int:
        return numbers.setdefault(prefix, len(numbers) + 1)

    def keys_of(symbols: str) -> tuple[int, ...]:
        return tuple(key(symbols[n] if scope.repeats else symbols[: n + 1]) for n in range(len(symbols)))

    prompt = tuple(map(keys_of, scope.prompts))
    if scope.decoded:
        total = tuple(keys_of(before + after) for before, after in zip(scope.prompts, scope.decoded, strict=True))
    else:
        total = tuple(
            keys + tuple(key(f"{p}+{n + 1}") for n in range(scope.decode))
            for p, keys in zip(scope.prompts, prompt, strict=True)
        )
    return Sequences(prompt, total, tuple(numbers))
