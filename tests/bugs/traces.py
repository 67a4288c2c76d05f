"""The stored traces of the bank: the commands of the shortest way to each bug, in `tests/traces/bugs`."""

from collections.abc import Sequence
from pathlib import Path

from kvproof.search.modes import Variant
from kvproof.targets.command import Command
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict
from tests.bugs.bug import Bug, Engine, variant_of
from tests.bugs.planting import ROOT

FOLDER = ROOT / "tests" / "traces" / "bugs"

DEVICES: dict[Engine, str] = {"conform ledger": "ledger", "conform host": "host"}


def trace_file(bug: Bug) -> Path:
    """Where the bug's trace is."""
    return FOLDER / f"{bug.id}.trace.itf.json"


def trace_of(bug: Bug, commands: Sequence[Command]) -> Trace:
    """The trace of a bug: REFUTED with the bug in kvoffload, and accounted for to the end without it."""
    variant: Variant = variant_of(bug.variant, bug.discipline)
    return Trace(
        contract=variant.contract,
        scope=variant.scope,
        scope_name=bug.variant,
        target="kvoffload",
        commands=tuple(commands),
        verdict=Verdict.REFUTED,
        property=bug.property,
        engine=bug.engine.split()[0],
        device=DEVICES[bug.engine],
        note=f"Planted bug {bug.id}: {bug.mechanism}",
    )
