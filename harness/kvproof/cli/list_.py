"""`kvproof list`: which targets, scopes and properties there are, and which modes are taken together."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kvproof.cli.flags import Parser
from kvproof.cli.planned import report
from kvproof.scopes import SCOPES, describe_scope
from kvproof.targets import registry
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

Listing = tuple[list[str], list[Result]]
"""Lines for people, and a result for each entry: SKIPPED, since nothing was run."""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("list", "List what there is: targets, scopes, properties, or pairs of modes.")
    parser.add_argument("what", metavar="|".join(LISTINGS), help="which")
    parsed = parser.read(arguments)
    listing = LISTINGS.get(parsed.what)
    if listing is None:
        raise BadUsage(f"there are no {parsed.what!r:.40} to list; use {', '.join(LISTINGS)}")
    lines, results = listing()
    report("\n".join(lines), (), results, parsed)
    return 0


def _entry(target: str = "", scope: str = "", name: str | None = None) -> Result:
    return Result("list", target, None, scope, name, Verdict.SKIPPED, 0.0)


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {text}".rstrip() for name, text in rows]


def _targets() -> Listing:
    families = registry.families()
    rows = [(name, f"devices {', '.join(devices)}" if devices else "") for name, devices in families.items()]
    hint = "and any other as --target package.module:Class or --target file.py:Class"
    return [*_columns(rows), hint], [_entry(target=name) for name in families]


def _scopes() -> Listing:
    rows = [(name, describe_scope(scope)) for name, scope in SCOPES.items()]
    hint = "device blocks / host blocks / workers, prompts; change one as in --scope s3,host=3,lookups=yes"
    return [*_columns(rows), hint], [_entry(scope=name) for name in SCOPES]


def _properties() -> Listing:
    from kvspecs.catalogue import NAMES, sentence_of  # only here: the other listings do not need the specification

    return _columns([(name, sentence_of(name)) for name in NAMES]), [_entry(name=name) for name in NAMES]


def _pairs() -> Listing:
    from kvproof.pairs import pairs  # only here: it makes a machine for most of them

    found = pairs()
    rows = [(pair.name, f"{pair.treatment:<8}  {pair.why}") for pair in found]
    many = Counter(pair.treatment for pair in found)
    hint = ", ".join([f"{many[treatment]} {treatment}" for treatment in many])
    return [*_columns(rows), f"{len(found)} pairs of modes: {hint}"], [_entry(name=pair.name) for pair in found]


LISTINGS: Mapping[str, Callable[[], Listing]] = {
    "targets": _targets,
    "scopes": _scopes,
    "properties": _properties,
    "pairs": _pairs,
}
