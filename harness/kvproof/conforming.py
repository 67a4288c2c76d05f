"""`kvproof.conformance(MyTarget)`: a test that holds a target against the contract, in anybody's pytest or unittest.

Under pytest, with kvproof's plugin, what fails is kept as `kvproof check` keeps it, and tried first the next time.
"""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import SkipTest, TestCase

from hypothesis import Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from kvmodel import Contract, Scope
from kvproof.bundle import files_of
from kvproof.commit import current_commit
from kvproof.engines import apart as dying
from kvproof.engines import replay, tell
from kvproof.engines.run_of import failure_of
from kvproof.engines.shrink import shrunk_with_scope
from kvproof.failure import Failure
from kvproof.job import Job, Progress
from kvproof.lockstep import DEFAULT_SCOPE, HEALTH_CHECKS, Lockstep, Nonconforming, Spent, lockstep_class, told
from kvproof.report.failure_text import failure_text
from kvproof.report.timeline import timeline
from kvproof.scopes import SCOPES, name_of
from kvproof.search.modes import Variant
from kvproof.targets.declared import declared_contract
from kvproof.targets.divergence import Divergence
from kvproof.targets.guarded import watch
from kvproof.targets.open_for import opener
from kvproof.targets.registry import lend
from kvproof.targets.target import Target
from kvproof.trace import itf, store
from kvproof.trace.trace import BadTrace, Trace, of_failure
from kvproof.verdict import Result, Verdict

ENGINE = "conformance"


@dataclass(frozen=True)
class Session:
    """What a run of pytest says to all of its conformance tests.

    root      where failures are kept
    budget_s  how long one test may take; None: as long as it takes
    replay    an id: only this kept failure is tried, by the tests of its target
    """

    root: Path
    budget_s: float | None = None
    replay: str | None = None


session: Session | None = None
"""Of this process; None: nobody asked for anything to be kept."""


class CutShort(AssertionError):
    """The budget was spent before the planned runs were done. Nothing was found, and nothing is green."""


def conformance(
    target_class: type[Target],
    contract: Contract | None = None,
    scope: Scope | None = None,
    max_examples: int = 50,
    stateful_step_count: int = 100,
    apart: bool = False,
) -> type:
    """A `unittest.TestCase` that holds a target against the contract, for use in any pytest file:

        TestMyEngine = kvproof.conformance(MyTarget)

    contract  that of the target class (its attribute `contract`) unless given; without either, pinning
    scope     the named scope `fuzz` unless given
    max_examples, stateful_step_count   runs, and commands of a run at most (counts)
    apart     in a forked process: for a target that may end its process or never come back

    It fails with the shortest sequence of commands that shrinking leads to. Its attribute `settings` is Hypothesis's,
    to be replaced as a project likes: `derandomize=True` gives the same commands every time.
    """
    chosen = contract or declared_contract(target_class) or Contract("pinning")
    conforming = _Conforming(lockstep_class(target_class, chosen, scope or SCOPES[DEFAULT_SCOPE]), apart)

    class Conformance(TestCase):
        kvproof_target = conforming.name
        settings = settings(
            max_examples=max_examples,
            stateful_step_count=stateful_step_count,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=HEALTH_CHECKS,
        )

        def runTest(self) -> None:  # noqa: N802 (unittest's name)
            said = conforming.said(self.settings)
            if said:
                raise Nonconforming(said) from None

    return Conformance


def name_of_class(target_class: type[Any]) -> str:
    """The class as `--target` takes it, as far as it can be had from elsewhere: a module's by the module if that is in
    a package, else by its file."""
    module = target_class.__module__
    file = inspect.getsourcefile(target_class) if "." not in module else None
    place = module if file is None else store.shown(Path(file))
    return f"{place}:{target_class.__qualname__}"


class _Conforming:
    """One target in one contract at one scope."""

    def __init__(self, cls: type[Lockstep], apart: bool) -> None:
        self.cls = cls
        self.apart = apart
        self.name = name_of_class(cls.target_class)
        self.job = Job(ENGINE, self.name, cls.contract.discipline, name_of(cls.scope), cls.scope, cls.contract)
        lend(self.name, cls.target_class)

    def said(self, chosen: settings) -> str:
        """What is wrong, as the text of an error; empty: nothing. Raises CutShort, and SkipTest where the session
        replays a failure of another target."""
        wanted = session.replay if session is not None else None
        kept = [(name, trace) for name, trace in self._kept() if wanted is None or name.startswith(wanted)]
        for identifier, trace in kept:
            result = self._replayed(trace)
            if result.failure is not None:
                return self._kept_text(result.failure, identifier)
            if result.verdict is Verdict.ERROR:
                unjudged = f"kept failure {identifier} cannot be replayed: {result.detail}"
                if wanted is not None:
                    raise RuntimeError(unjudged)
                warnings.warn(unjudged, stacklevel=2)
        if wanted is not None and not kept:
            raise SkipTest(f"no failure {wanted} of {self.name} is kept")
        if wanted is not None:
            return ""
        result = self._run(self.job, lambda progress: self._searched(chosen, progress))
        if result.verdict is Verdict.UNDETERMINED:
            raise CutShort(result.detail)
        if result.verdict is Verdict.ERROR:
            raise RuntimeError(result.detail)
        if result.failure is None:
            return ""
        return _message(result.failure) if session is None else self._keep(result, session.root)

    def _kept(self) -> Iterator[tuple[str, Trace]]:
        """The kept failures of this target in this contract."""
        if session is None:
            return
        for identifier in store.ids(session.root):
            try:
                trace = itf.read(session.root / identifier / store.TRACE_FILE)
            except BadTrace as error:
                warnings.warn(str(error), stacklevel=2)
                continue
            if (trace.target, trace.contract) == (self.name, self.cls.contract):
                yield identifier, trace

    def _replayed(self, trace: Trace) -> Result:
        job = Job(
            "replay", self.name, self.job.discipline, trace.scope_name, trace.scope, trace.contract,
            options={"trace": trace},
        )  # fmt: skip
        return self._run(job, lambda progress: replay.run(job, progress, _never))

    def _run(self, job: Job, engine: Callable[[Progress], Result]) -> Result:
        if not self.apart:
            return engine(_silent)

        def watched(progress: Progress) -> Result:
            watch()
            return engine(progress)

        return dying.run(job, watched, _silent, _never)

    def _searched(self, chosen: settings, progress: Progress) -> Result:
        """Hypothesis's runs, and what they found, shrunk."""
        cls, began = self.cls, time.monotonic()
        budget_s = session.budget_s if session is not None else None
        cls.deadline = None if budget_s is None else began + budget_s
        before = cls.performed
        try:
            run_state_machine_as_test(cls, settings=chosen)
        except (Nonconforming, Flaky):
            failure = self._shrunk(progress)
            return self.job.result(Verdict.REFUTED, time.monotonic() - began, failure=failure)
        except Spent:
            detail = f"the budget of {budget_s:g} s was spent after {cls.performed - before:,} commands"
            return self.job.result(Verdict.UNDETERMINED, time.monotonic() - began, detail=detail)
        return self.job.result(Verdict.PASSED, time.monotonic() - began)

    def _shrunk(self, progress: Progress) -> Failure:
        assert self.cls.failed is not None
        commands, divergence = self.cls.failed
        variant = Variant(self.job.scope_name, self.cls.scope, self.cls.contract)
        found = shrunk_with_scope(
            variant, lambda machine: opener(self.name, "", machine), commands, divergence, _never, progress
        )
        again = found.run.divergence
        remark = "" if again is not None else "(It did not occur when the same commands were run again.)"
        return failure_of(
            found.variant, self.name, ENGINE, "", found.commands, again or divergence, found.run.notes, found.minimal,
            remark,
        )  # fmt: skip

    def _keep(self, result: Result, root: Path) -> str:
        """Keep the failure with all that belongs to it, and tell it."""
        failure = result.failure
        assert failure is not None
        trace = of_failure(self.job, failure, current_commit())
        story = self._run_told(trace).story
        page = timeline(story) if story is not None and story.property is not None else None
        text = self._kept_text(failure, failure.fingerprint)
        try:
            store.save(root, failure.fingerprint, trace, text + "\n", files_of(failure, trace, result.seconds, page))
        except OSError as error:  # the verdict matters more than the files
            return f"{failure_text(failure)} ({error})"
        return text

    def _run_told(self, trace: Trace) -> Result:
        job = Job(
            "tell", self.name, self.job.discipline, trace.scope_name, trace.scope, trace.contract,
            options={"trace": trace},
        )  # fmt: skip
        return self._run(job, lambda progress: tell.run(job, progress, _never))

    def _kept_text(self, failure: Failure, identifier: str) -> str:
        assert session is not None
        text = failure_text(failure, saved=store.shown(session.root / identifier), replay=identifier)
        return f"{text}\nIn pytest: --kvproof-replay {identifier}"


def _message(failure: Failure) -> str:
    """A violation as the message of an assertion, where nothing is kept."""
    found = Divergence(
        failure.property, failure.sentence, failure.contract_lines, failure.target_lines, None, failure.cause
    )
    return told(failure.commands, found, failure.scope)


def _silent(words: str) -> None:
    """Pytest shows its own progress."""


def _never() -> bool:
    return False
