"""The named scopes, and the text form of any scope: `s3`, or `s3,host=3,lookups=yes`."""

from collections.abc import Callable, Mapping
from typing import Any

from kvmodel.errors import BadScope
from kvmodel.scope import Scope, validated

_FUZZ = Scope(
    device_blocks=5,
    host_blocks=5,
    workers=2,
    prompts=("abc", "xyz", "ab", "abd", "abc", "xyz", "x", "abc", "abd", "xyz", "abc", "xy"),
    decode=1,
    resets=3,
    meanings=("invalidate", "evict"),
    survivors=True,
    lookups=True,
    stops=True,
    duplicates=3,
    losses=1,
    forgeries=2,
    double_frees=2,
    failures=2,
    partial_failures=1,
    expiries=2,
)

SCOPES: Mapping[str, Scope] = {
    "s1": Scope(device_blocks=2, host_blocks=1, workers=1, prompts=("ab",)),
    "s2": Scope(device_blocks=2, host_blocks=1, workers=2, prompts=("ab",)),
    "s3": Scope(device_blocks=3, host_blocks=2, workers=1, prompts=("ab", "ac")),
    "s4": Scope(device_blocks=3, host_blocks=2, workers=2, prompts=("ab", "ac")),
    "serving": Scope(
        device_blocks=5,
        host_blocks=4,
        workers=2,
        prompts=("abc", "xyz", "ab", "abd", "abc", "xyz", "x", "abc"),
        decode=1,
        resets=3,
        meanings=("invalidate", "evict"),
        survivors=True,
        tiers=("all", "device", "host"),
    ),
    "fuzz": _FUZZ,
    "repeats": Scope(
        device_blocks=5,
        host_blocks=4,
        workers=2,
        prompts=("aba", "aab", "bb", "abab", "a", "aaa", "ba", "aba"),
        decode=1,
        resets=2,
        meanings=("invalidate", "evict"),
        survivors=True,
        lookups=True,
        losses=1,
        repeats=True,
    ),
    "windows": Scope(
        device_blocks=5,
        host_blocks=2,
        workers=2,
        prompts=("abc", "abd", "x", "aaa", "abc", "xy", "aba", "b"),
        decode=3,
        resets=2,
        meanings=("invalidate", "evict"),
        survivors=True,
        lookups=True,
        losses=1,
        repeats=True,
        window=2,
    ),
    "cascades": _FUZZ._replace(
        host_blocks=3, second_blocks=4, tiers=("all", "device", "host"), forgeries=0, double_frees=0
    ),
    "s7": Scope(device_blocks=4, host_blocks=3, workers=2, prompts=("ab", "ac"), resets=2),
}
"""From small to large. A name is never given to another scope: results and traces name them."""

_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")


def _count(text: str) -> int:
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 9:
        raise ValueError("a number")
    return int(text)


def _flag(text: str) -> bool:
    if text not in _YES + _NO:
        raise ValueError("yes or no")
    return text in _YES


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split("+"))


_FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "device": ("device_blocks", _count),
    "host": ("host_blocks", _count),
    "workers": ("workers", _count),
    "prompts": ("prompts", _words),
    "decode": ("decode", _count),
    "decoded": ("decoded", _words),
    "resets": ("resets", _count),
    "meanings": ("meanings", _words),
    "survivors": ("survivors", _flag),
    "tiers": ("tiers", _words),
    "aborts": ("aborts", _flag),
    "preempts": ("preempts", _flag),
    "lookups": ("lookups", _flag),
    "stops": ("stops", _flag),
    "duplicates": ("duplicates", _count),
    "losses": ("losses", _count),
    "forgeries": ("forgeries", _count),
    "double_frees": ("double_frees", _count),
    "failures": ("failures", _count),
    "partial_failures": ("partial_failures", _count),
    "expiries": ("expiries", _count),
    "deaths": ("deaths", _count),
    "lazy_window": ("lazy_window", _count),
    "repeats": ("repeats", _flag),
    "window": ("window", _count),
    "second": ("second_blocks", _count),
}
"""Word in the text form -> field of Scope, and how its value is read."""


def parse_scope(text: str) -> tuple[str, Scope]:
    """The name and the scope that a text stands for.

    The text starts with the name of a scope; sizes that differ follow: `s3,host=3,prompts=ab+ac,meanings=evict`.
    Raises BadScope, which says what is wrong and what would do.
    """
    name, *changes = (part.strip() for part in text.split(","))
    if name not in SCOPES:
        raise BadScope(f"scope {name!r:.40} does not exist; use one of {', '.join(SCOPES)}, as in s3 or s3,host=3")
    scope = SCOPES[name]
    seen: list[str] = []
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or key not in _FIELDS:
            raise BadScope(
                f"scope {text!r:.80} has {change!r:.40}, which is no size; use {', '.join(_FIELDS)} as in host=3"
            )
        if key in seen:
            raise BadScope(f"scope {text!r:.80} gives {key} twice")
        seen.append(key)
        field, read = _FIELDS[key]
        try:
            parsed = read(value)
        except ValueError as kind:
            raise BadScope(f"scope {text!r:.80} has {change!r:.40}, but {key} must be {kind}") from None
        changed: dict[str, Any] = {field: parsed}
        scope = scope._replace(**changed)
    try:
        return ",".join((name, *changes)), validated(scope)
    except BadScope as error:
        raise BadScope(f"scope {text!r:.80} makes no sense: {error}") from None


def name_of(scope: Scope) -> str:
    """The text form of a scope, with as few changes to a named one as there can be: what `parse_scope` reads."""
    texts = [",".join((name, *_changes(base, scope))) for name, base in SCOPES.items()]
    return min(texts, key=lambda text: text.count(","))


def _changes(base: Scope, scope: Scope) -> list[str]:
    return [
        f"{key}={_written(getattr(scope, field))}"
        for key, (field, _) in _FIELDS.items()
        if getattr(scope, field) != getattr(base, field)
    ]


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "+".join(value) if isinstance(value, tuple) else str(value)


def describe_scope(scope: Scope) -> str:
    """One line of sizes: `3/2/1 ab,ac resets 1`, blocks on the device, on the host, and workers; then what is on."""
    words = [f"{scope.device_blocks}/{scope.host_blocks}/{scope.workers}", ",".join(scope.prompts)]
    meanings = "" if scope.meanings == ("invalidate",) else f" {'+'.join(scope.meanings)}"
    tiers = "" if scope.tiers == ("all",) else f" of {'+'.join(scope.tiers)}"
    words.append(f"resets {scope.resets}{meanings}{tiers}")
    for field, value in scope._asdict().items():
        if field in ("device_blocks", "host_blocks", "workers", "prompts", "resets", "meanings", "tiers"):
            continue
        default = Scope._field_defaults[field]
        if value != default:
            said = f"{field.replace('_', ' ')} {_written(value)}"
            words.append(_switch(field, value) if isinstance(value, bool) else said)
    return " ".join(words)


def _switch(field: str, on: bool) -> str:
    return field if on else f"no {field}"
