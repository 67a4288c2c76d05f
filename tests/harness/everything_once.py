"""Every deterministic engine once, in a process of its own: prints what it did, to be compared with another process.

Of every engine each step is taken down, in its order: what was done, what came of it, what was seen afterwards. The
digest of all that is printed beside the result, and so are the numbers of steps.
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.log import a_log
from tests.obligations.test_watched_engines import __name__ as watched

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvproof.job import Job, load_engine
from kvproof.scopes import SCOPES, parse_scope
from kvproof.targets.command import Command
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

COMMANDS = 250

EXAMPLES = 2
"""Runs of one batch of fuzz (count): a third of the usual, so that these commands go through more of the modes."""

NOBODY_LEAVES = "s1,aborts=no,preempts=no"
"""Where to go through every transition takes few walks."""

STEPS = "tests.harness.step_target:StepKVOffload"
BROKEN = "tests.harness.broken_targets"

STEP_BY_STEP = (
    "kvproof.search.graph:canonical",
    "kvproof.search.product:carried_out",
    "kvproof.search.product:canonical_with",
    "kvproof.engines.conform:performed",
    "kvproof.engines.conform:carried_out",
    "kvproof.engines.run_of:performed",
    "kvproof.lockstep:performed",
    "kvproof.log.follow:Follower.take",
    "kvproof.obligations.judge:Judged.perform",
    "kvspecs.proof.proof:prove",
)
"""Where engines step: names as the modules that use them know them."""


class Steps:
    """What was done, step by step, as a digest."""

    def __init__(self) -> None:
        self.taken = 0
        self._digest = hashlib.sha256()

    def note(self, *what: object) -> None:
        self.taken += 1
        self._digest.update(repr(what).encode())

    def __str__(self) -> str:
        return self._digest.hexdigest()


def noting(steps: Steps, step: Callable[..., Any]) -> Callable[..., Any]:
    """The same step, taken down: what it was given, but for targets, which have no words for themselves."""

    def noted(*arguments: Any) -> Any:
        came = step(*arguments)
        if isinstance(came, Generator):
            return proved(came)
        steps.note(_in_order(tuple(one for one in arguments if isinstance(one, tuple))), _in_order(came))
        return came

    def proved(outcomes: Iterable[Any]) -> Iterator[Any]:
        for induction, outcome in outcomes:
            steps.note(str(outcome.obligation), outcome.verdict)
            yield induction, outcome

    return noted


def _in_order(what: object) -> object:
    """Sets have no order of their own, and none is promised: the elements of each, sorted."""
    if isinstance(what, frozenset | set):
        return sorted(map(repr, what))
    return tuple(map(_in_order, what)) if isinstance(what, tuple) else what


@contextmanager
def followed() -> Iterator[Steps]:
    steps = Steps()
    with ExitStack() as stack:
        for place in STEP_BY_STEP:
            module, _, name = place.partition(":")
            step = attrgetter(name)(importlib.import_module(module))
            stack.enter_context(patch(f"{module}.{name}", noting(steps, step)))
        stack.enter_context(patch("kvproof.engines.fuzz.EXAMPLES", EXAMPLES))
        yield steps


def main() -> None:
    said: dict[str, object] = {}

    def run(
        name: str,
        target: str,
        discipline: Discipline,
        scope: str,
        device: str = "",
        seed: int = 0,
        **options: object,
    ) -> None:
        options = {"commands": COMMANDS, "cover": "transitions", **options}
        contract = Contract(discipline)
        _, sizes = parse_scope(scope)
        job = Job(name, target, contract.discipline, scope, sizes, contract, seed, None, device, options)
        with followed() as steps:
            result = load_engine(name)(job, lambda text: None, lambda: False)
        found = result.failure
        said[f"{name} {target} {device} {discipline} {scope} {seed}"] = {
            "verdict": result.verdict,
            "states": result.states,
            "transitions": result.transitions,
            "counts": result.counts,
            "detail": result.detail,
            "steps": steps.taken,
            "given": str(steps),
            "failure": found and [found.fingerprint, found.property, found.sentence, *map(str, found.commands)],
        }

    for discipline in DISCIPLINES:
        run("explore", "machine", discipline, "s1")
        run("conform", "kvoffload", discipline, "s1", "ledger")
        for seed in (0, 1):
            run("fuzz", "kvoffload", discipline, "fuzz", "ledger", seed)
        run("fuzz", STEPS, discipline, "fuzz")
        for broken in ("AlwaysFalse", "StaleReferences", "HitsWhatIsNotCached"):
            run("fuzz", f"{BROKEN}:{broken}", discipline, "fuzz")
    run("conform", "kvoffload", "pinning", NOBODY_LEAVES, "host")
    run("prove", "", "pinning", "s1", actions=("Grow", "Wake"))
    run("search", f"{watched}:Sound", "fencing", "s1", length=6)
    run("fuzz", f"{watched}:Dies", "fencing", "s1", watched=COMMANDS)
    run("robustness", f"{watched}:Fragile", "fencing", "s1", fault="duplicate_report")
    for name in ("replay", "shrink", "tell"):
        run(name, f"{BROKEN}:AlwaysFalse", "pinning", "s1", trace=_trace())
    with TemporaryDirectory() as folder:
        run("validate", "", "pinning", "s1", log=a_log.written(Path(folder), a_log.lines()))
    print(json.dumps(said, indent=1))


def _trace() -> Trace:
    """Of a target that answers False to every reset, with a command more than it takes."""
    return Trace(
        contract=Contract("pinning"),
        scope=SCOPES["s1"],
        scope_name="s1",
        target=f"{BROKEN}:AlwaysFalse",
        commands=(Command("submit", (0,)), Command("reset", ("invalidate", "preempt"))),
        verdict=Verdict.REFUTED,
        property="false-reset-has-a-cause",
        engine="fuzz",
        device="",
        note="",
    )


if __name__ == "__main__":
    main()
