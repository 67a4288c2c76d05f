"""Reproduction: a kept trace as a test that fails while the bug is there. What `test_repro.py` of a failure calls."""

import textwrap
from pathlib import Path

from kvmodel import Machine
from kvproof import __version__
from kvproof.engines.apart import may_die, told_apart
from kvproof.engines.run_of import failure_of, run_of
from kvproof.failure import Failure
from kvproof.report.failure_text import failure_text
from kvproof.search.modes import Variant
from kvproof.targets.open_for import not_taken, opener
from kvproof.targets.registry import is_ours
from kvproof.trace import itf


class Reproduced(AssertionError):
    """The target still does what the trace shows, or something else that cannot be accounted for: the report says."""


def reproduce(trace: str | Path, *, target: str | None = None, device: str | None = None, here: bool = False) -> None:
    """Perform a saved trace. Returns if every command can be accounted for.

    target, device  in place of those that the trace names, as `--target` and `--device` take them
    here            in this process, as debuggers want it, whatever the target does to it; else code that is not ours
                    runs in a forked one

    Raises Reproduced if not; BadTrace for a file that is none; ValueError for commands that the target does not take.
    """
    read = itf.read(Path(trace))
    name = read.target if target is None else target
    on = (read.device if device is None else device) if is_ours(name) else ""
    reason = not_taken(name, on, read.commands)
    if reason:
        raise ValueError(reason)
    machine = Machine(read.contract, read.scope)
    open_target = opener(name, on, machine, read.reading)
    if may_die(name) and not here:
        run = told_apart(machine, open_target, read.commands)
    else:
        run = run_of(machine, open_target, read.commands, lambda: False)
    if run.beyond:
        raise ValueError(run.beyond)
    if run.divergence is not None:
        failure = failure_of(
            Variant(read.scope_name, read.scope, read.contract),
            name, read.engine, on, read.commands[: run.done], run.divergence, run.notes, "",
        )  # fmt: skip
        raise Reproduced("\n" + failure_text(failure, saved=str(Path(trace).parent)))


def test_of(failure: Failure, device: str) -> str:
    """The text of `test_repro.py` for a failure that is kept beside its trace.

    Only literals of ours, and names written as Python writes them, get into it: what a trace says is never code.
    """
    return "\n".join(
        [
            documented(failure, lacking=failure.alone_lacks),
            "from pathlib import Path",
            "",
            "from kvproof import reproduce",
            "",
            "",
            f"def test_{failure.fingerprint}() -> None:",
            '    trace = Path(__file__).with_name("trace.itf.json")',
            f"    reproduce(trace, target={failure.target!a}, device={device!a})",
            "",
        ]
    )


def documented(failure: Failure, imported: str = "the target", lacking: str = "") -> str:
    """What a test says of itself, with a line break at its end.

    imported  what it imports; lacking: why there is none that needs no kvproof
    """
    said = _harmless(f"{failure.property}: {failure.sentence}")
    first = f'"""{said[:90].strip()}' + (" ..." if len(said) > 90 else "")
    without = f"There is no test_alone.py beside this, which would need no kvproof: {_harmless(lacking)}."
    return "\n".join(
        [
            first,
            "",
            f"Written by kvproof {__version__}. Run it with pytest where {imported} can be imported: it fails while",
            "the target does what the trace beside it shows, and passes when that is mended.",
            *(["", *textwrap.wrap(without, 100)] if lacking else []),
            '"""',
            "",
        ]
    )


def _harmless(text: str) -> str:
    """As it may stand in a docstring."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else " " for c in text)
