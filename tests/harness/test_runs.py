"""Runs of commands on fresh targets: what replay, shrinking and reports are made of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kvmodel import Machine
from kvmodel import actions as act
from kvmodel.contract import Contract
from kvproof.engines import replay, shrink
from kvproof.engines.run_of import RunOf, failure_of, rule_of, run_of
from kvproof.engines.shrink import shrunk
from kvproof.job import Job
from kvproof.report.failure_text import failure_text
from kvproof.scopes import SCOPES
from kvproof.search.modes import Variant
from kvproof.targets.command import Command
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.target import Target
from kvproof.trace.trace import Trace, of_failure
from kvproof.verdict import Result, Verdict

C = Command
SERVED = (
    C("submit", (0,)),
    C("admit", (0,)),
    C("launch"),
    C("run", (0, "compute")),
    C("handle_output"),
    C("run", (0, "store")),
    C("report", (0, 0)),
    C("finish", (0,)),
)
RESET = C("reset", ("invalidate", "preempt"))


class Forgetful(Ledger):
    """Loses a reference whenever an output is handled."""

    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if command.verb == "handle_output" and isinstance(outcome, Answer):
            self.engine.device_pool.counts[0] -= 1
        return outcome


def opened_in(machine: Machine, target: type[Ledger]):
    def opened() -> Target:
        return target(machine.setting)

    return opened


def ran(target: type[Ledger], commands: Sequence[Command]) -> RunOf:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    return run_of(machine, opened_in(machine, target), commands, lambda: False)


def test_a_run_says_what_each_command_did() -> None:
    run = ran(Ledger, (*SERVED, RESET))
    assert (run.done, run.divergence) == (9, None)
    assert run.notes == (
        "",
        "admit x: d0 d1, fresh d0 d1",
        "compute; job 0: store d0 -> h0, launched",
        'd0 holds "a", d1 holds "ab"',
        'd0 published as "a", d1 published as "ab"',
        "job 0 copied on w0",
        'LIVE, complete, h0 published as "a"',
        "",
        "answered True",
    )
    assert run.state.requests[0].phase == 5


def test_what_is_refused_is_noted() -> None:
    run = ran(Ledger, (C("admit", (0,)), C("report", (0, 3)), RESET))
    assert (run.done, run.divergence) == (3, None)
    assert run.notes[0].startswith("refused: UnknownRequest")
    assert run.notes[1].startswith("refused: UnknownJob")


def test_a_run_ends_at_the_first_command_that_cannot_be_accounted_for() -> None:
    run = ran(Forgetful, (*SERVED, RESET))
    assert run.divergence is not None
    assert (run.done, len(run.notes)) == (5, 5)
    assert run.divergence.property == "owners-account-for-references"


def test_a_run_can_be_cut() -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    calls = iter([False, False, False, True])
    run = run_of(machine, opened_in(machine, Ledger), SERVED, lambda: next(calls))
    assert (run.done, run.divergence, len(run.notes)) == (3, None, 3)


def job(engine: str, trace: Trace, target: str) -> Job:
    contract = trace.contract
    options = {"trace": trace}
    return Job(engine, target, contract.discipline, trace.scope_name, trace.scope, contract, options=options)


def trace_of(commands: Sequence[Command], target: str = "kvoffload", scope: str = "s1") -> Trace:
    return Trace(Contract("pinning"), SCOPES[scope], scope, target, tuple(commands), Verdict.REFUTED, "no-double-free")


def replayed(trace: Trace, target: str) -> Result:
    return replay.run(job("replay", trace, target), lambda text: None, lambda: False)


def shrunk_by_verb(trace: Trace, target: str) -> Result:
    return shrink.run(job("shrink", trace, target), lambda text: None, lambda: False)


BROKEN = """
from kvproof.targets.kvoffload import Ledger

class Engine(Ledger):
    def perform(self, command):
        outcome = super().perform(command)
        if command.verb == "handle_output":
            self.engine.device_pool.counts[0] -= {lost}
        return outcome
"""


@pytest.fixture
def engine(tmp_path: Path) -> Callable[[int], str]:
    """Writes a target that loses so many references with each output; 0: it is sound."""

    def write(lost: int) -> str:
        path = tmp_path / f"engine{lost}.py"
        path.write_text(BROKEN.format(lost=lost))
        return f"{path}:Engine"

    return write


def test_replay_refutes_a_broken_target_and_passes_a_sound_one(engine: Callable[[int], str]) -> None:
    trace = trace_of((*SERVED, RESET))
    for target, verdict, done in ((engine(0), Verdict.PASSED, 9), (engine(1), Verdict.REFUTED, 5)):
        result = replayed(trace, target)
        assert result.verdict is verdict
        assert (result.counts["commands"], result.counts["planned_commands"]) == (done, 9)
    failure = result.failure
    assert failure is not None
    assert failure.commands == SERVED[:5]
    assert failure.property == "owners-account-for-references"
    assert failure.sentence == "Device block 0 counts 1 references and has 2 owners (request 0, job 0 (LIVE))."


def test_replay_of_a_trace_that_is_cut_is_undetermined() -> None:
    calls = iter([False, False, True])
    todo = job("replay", trace_of(SERVED), "kvoffload")
    result = replay.run(todo, lambda text: None, lambda: next(calls))
    assert (result.verdict, result.detail) == (Verdict.UNDETERMINED, "cut short after 2 of 8 commands")


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ((RESET, RESET), "command 2, reset(invalidate, preempt), is beyond the scope: no more resets in this scope"),
        ((C("forge_report", (0,)),), "command 1, forge_report(0), is beyond the scope: no more reports may be forged"),
        ((*SERVED[:5], C("lose_report", (0, 0))), "command 6, lose_report(0, 0), is beyond the scope: no more reports"),
        ((C("free_twice", ("request",)),), "command 1, free_twice(request), is beyond the scope: nothing more may be"),
    ],
)
def test_what_the_scope_does_not_have_is_no_violation(
    commands: tuple[Command, ...], said: str, engine: Callable[[int], str]
) -> None:
    """Nothing follows from what a target does then: the trace is wrong, and that is said."""
    for result in (replayed(trace_of(commands), engine(0)), shrunk_by_verb(trace_of(commands), engine(0))):
        assert result.verdict is Verdict.ERROR
        assert result.detail.startswith(said)


def test_a_trace_of_single_decisions_is_not_for_a_step_target() -> None:
    target = "tests.harness.step_target:StepKVOffload"
    for result in (replayed(trace_of(SERVED), target), shrunk_by_verb(trace_of(SERVED), target)):
        assert result.verdict is Verdict.ERROR
        assert result.detail == f"target {target} takes no admit, which is command 2 of the trace"
    whole = (C("submit", (0,)), C("schedule"), C("run", (0, "compute")), C("handle_output"), C("schedule"))
    assert replayed(trace_of(whole), target).verdict is Verdict.PASSED


def test_a_failure_keeps_what_is_needed_to_find_it_again(engine: Callable[[int], str]) -> None:
    """Also the modes that an engine took in turn: without them a replay would be of another contract."""
    machine = Machine(Contract("fencing", "lazy", "first"), SCOPES["s1"])
    run = run_of(machine, opened_in(machine, Forgetful), SERVED, lambda: False)
    assert run.divergence is not None
    variant = Variant("s1+lazy+first", machine.setting.scope, machine.setting.contract)
    failure = failure_of(variant, "mine.py:Engine", "fuzz", "", SERVED[: run.done], run.divergence, run.notes, "shrunk")
    todo = Job("fuzz", "mine.py:Engine", "fencing", "s1", SCOPES["s1"], Contract("fencing"), seed=7)
    trace = of_failure(todo, failure, "abc1234")
    assert trace.contract == Contract("fencing", "lazy", "first")
    assert (trace.scope_name, trace.commands, trace.seed) == ("s1+lazy+first", SERVED[:5], 7)
    assert failure.rule == "kvmodel/rules/handle_output.py"
    head, sentence, *rest = failure_text(failure, saved=".kvproof/failures/x").splitlines()
    assert head == (
        "REFUTED owners-account-for-references   mine.py:Engine, fencing, s1+lazy+first, fuzz   "
        f"5 commands (shrunk)   id {failure.fingerprint}"
    )
    assert sentence == "Device block 0 counts 0 references and has 1 owners (request 0)."
    assert rest[4] == "> 5 handle output"
    assert rest[5:7] == ["      contract  d0 references 1: x", "      Engine    d0 references 0: x"]
    assert rest[-1].endswith(f"Replay: kvproof replay {failure.fingerprint} --target mine.py:Engine")


def test_the_rule_behind_a_divergence() -> None:
    assert rule_of(act.Reset, "pinning") == ("kvmodel/rules/reset_pinning.py", "vLLM PR 39726")
    assert rule_of(act.Reset, "fencing") == ("kvmodel/rules/reset_fencing.py", "vLLM PRs 41956 and 48102")
    assert rule_of(act.Finish, "pinning") == ("kvmodel/rules/finish.py", "")
    assert rule_of(None, "pinning") == ("", "")


# Shrinking.

USELESS = (C("submit", (1,)), C("reset", ("invalidate", "preempt")), C("schedule"))


def test_shrinking_drops_what_is_irrelevant_and_keeps_the_failure(engine: Callable[[int], str]) -> None:
    long = (*USELESS, *SERVED[:2], C("admit", (1,)), *SERVED[2:], C("abort", (1,)))
    result = shrunk_by_verb(trace_of(long, scope="s3"), engine(1))
    assert result.verdict is Verdict.REFUTED
    assert result.failure is not None
    assert result.failure.commands == (C("submit", (0,)), C("schedule"), C("run", (0, "compute")), C("handle_output"))
    assert result.failure.scope_name == "s1,device=1,prompts=a,resets=0,aborts=no,preempts=no"
    assert result.failure.minimal == "shortest"
    smaller = replace(trace_of(result.failure.commands), scope=result.failure.scope)
    again = shrunk_by_verb(smaller, engine(1)).failure
    assert again is not None
    assert (again.commands, again.scope) == (result.failure.commands, result.failure.scope)
    assert again.fingerprint == result.failure.fingerprint
    unshrunk = replayed(trace_of(long, scope="s3"), engine(1)).failure
    assert unshrunk is not None
    assert unshrunk.fingerprint == result.failure.fingerprint


def test_shrinking_what_does_not_fail_any_more(engine: Callable[[int], str]) -> None:
    result = shrunk_by_verb(trace_of(SERVED), engine(0))
    assert (result.verdict, result.detail) == (Verdict.FIXED, "it does not fail any more")


def test_shrinking_keeps_to_what_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that asserts on a command that nobody would give fails in the same way on fewer commands: that is no
    violation, and not what was found."""
    scope = SCOPES["s3"]
    machine = Machine(Contract("pinning"), scope)
    commands = (*SERVED[:5], C("submit", (1,)), C("finish", (0,)))

    class Touchy(Ledger):
        def perform(self, command: Command) -> Outcome:
            assert command.verb != "finish" or self.engine.can_finish(0)
            assert command.verb != "finish" or not self.engine.device_pool.free_blocks
            return super().perform(command)

    run = run_of(machine, opened_in(machine, Touchy), commands, lambda: False)
    assert run.divergence is not None
    assert run.divergence.cause == ("crash", "finish", "AssertionError")
    shorter, again, minimal = shrunk(machine, opened_in(machine, Touchy), commands, run.divergence, lambda: False)
    assert shorter == (*SERVED[:5], C("finish", (0,)))
    assert (again.divergence, minimal) == (run.divergence, "shrunk")


def test_a_trace_of_odd_commands_is_shrunk_all_the_same() -> None:
    """Written by a person, it may hold what neither client nor environment would do."""

    class Gullible(Ledger):
        def perform(self, command: Command) -> Outcome:
            outcome = super().perform(command)
            return Answer() if command.verb == "report" and not isinstance(outcome, Answer) else outcome

    machine = Machine(Contract("pinning"), SCOPES["s1"])
    commands = (*SERVED[:3], C("report", (0, 0)))
    run = run_of(machine, opened_in(machine, Gullible), commands, lambda: False)
    assert run.divergence is not None
    shorter, _, minimal = shrunk(machine, opened_in(machine, Gullible), commands, run.divergence, lambda: False)
    assert (shorter, minimal) == ((C("report", (0, 0)),), "shrunk")


def test_what_fails_once_is_left_as_it_is() -> None:
    """A failure that does not come back is shown with all its commands."""
    opens = 0

    class Flaky(Forgetful):
        def __init__(self, setting) -> None:
            nonlocal opens
            opens += 1
            super().__init__(setting)

        def perform(self, command: Command) -> Outcome:
            return super().perform(command) if opens == 1 else Ledger.perform(self, command)

    machine = Machine(Contract("pinning"), SCOPES["s1"])
    run = run_of(machine, opened_in(machine, Flaky), SERVED, lambda: False)
    assert run.divergence is not None
    same, again, minimal = shrunk(machine, opened_in(machine, Flaky), SERVED[:5], run.divergence, lambda: False)
    assert (same, again.divergence, minimal) == (SERVED[:5], None, "")
