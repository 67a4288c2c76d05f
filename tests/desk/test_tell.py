"""A trace, performed and told."""

import pytest

from kvmodel import Scope
from kvmodel.contract import Contract
from kvproof.engines import tell
from kvproof.job import Job
from kvproof.report.story import changes, disputed
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict

COMMANDS = (
    Command("submit", (0,)),
    Command("schedule"),
    Command("run", (0, "compute")),
    Command("handle_output"),
)


def told(
    commands: tuple[Command, ...], target: str = "kvoffload", device: str = "ledger", scope: Scope = SCOPES["s1"]
) -> Result:
    contract = Contract("pinning")
    trace = Trace(contract, scope, "s1", target, commands, Verdict.REFUTED, device=device)
    job = Job("tell", target, "pinning", "s1", scope, contract, device=device, options={"trace": trace})
    return tell.run(job, lambda words: None, lambda: False)


def test_a_sound_target_is_told_to_the_end() -> None:
    result = told(COMMANDS)
    assert result.verdict is Verdict.PASSED
    story = result.story
    assert story is not None
    assert [step.command for step in story.steps] == ['submit x "ab"', "schedule", "run w0 compute", "handle output"]
    assert story.property is None
    assert disputed(story) == ()
    assert changes(story.steps[0].picture, story.steps[1].picture) == (
        ("x", "WAITING", "RUNNING 0/2"),
        ("d0", "free", "x job 0"),
        ("d1", "free", "x"),
        ("h0", "free", "job 0"),
        ("job 0", "", "store launched"),
        ("w0 compute", "", "step 0"),
        ("w0 store", "", "job 0"),
    )
    assert changes(story.steps[1].picture, story.steps[2].picture) == (
        ("d0", "holds UNWRITTEN", "holds CONTENT(a)"),
        ("d1", "holds UNWRITTEN", "holds CONTENT(ab)"),
        ("w0 compute", "step 0", ""),
        ("w0 store", "the first waits", "the first may run now"),
    )
    assert story.steps[3].picture["d1"].detail == ('d1: 1 reference, owned by x; can be hit as "ab"; holds CONTENT(ab)')


def test_what_would_not_fit_into_memory_is_not_drawn() -> None:
    result = told(COMMANDS, scope=SCOPES["s1"]._replace(device_blocks=90_000))
    assert (result.verdict, result.story) == (Verdict.ERROR, None)
    assert result.detail == (
        "the trace has 4 commands at a scope with 90,007 things to be drawn, and at most 500,000 cells are; "
        "shrink it first"
    )


def test_the_last_step_of_a_violation_has_both_sides() -> None:
    result = told(COMMANDS[:2], "tests.harness.broken_targets:StaleReferences", "")
    assert result.verdict is Verdict.REFUTED
    story = result.story
    assert story is not None
    assert story.property == "owners-account-for-references"
    assert len(story.steps) == 2
    assert disputed(story) == ("d0", "d1")
    assert story.contract is not None
    assert story.target is not None
    assert story.contract["d1"].text == "x"
    assert story.target["d1"] == ("x (0 counted)", "wrong", story.target["d1"].detail)


def test_a_trace_that_nobody_would_read_is_refused() -> None:
    result = told(COMMANDS[:1] * 5001)
    assert result.verdict is Verdict.ERROR
    assert result.detail == "the trace has 5,001 commands, and at most 5,000 are shown; shrink it first"


@pytest.mark.parametrize("verb", ["lookup", "admit"])
def test_a_command_that_the_target_does_not_take(verb: str) -> None:
    result = told((Command(verb, (0,)),), "tests.harness.broken_targets:StaleReferences", "")
    assert result.verdict is Verdict.ERROR
    assert result.detail.endswith(f"takes no {verb}, which is command 1 of the trace")


def test_of_a_watched_target_only_what_was_said_is_told() -> None:
    """No machine goes with it: a picture would show requests as absent that the engine serves."""
    commands = (*[Command("schedule"), Command("abort", (0,))] * 3,)
    result = told(commands, "tests.obligations.test_watched_engines:Dies", "")
    assert result.verdict is Verdict.REFUTED
    story = result.story
    assert story is not None
    assert (story.lanes, story.start, story.contract, story.target) == ((), {}, None, None)
    assert [(step.command, step.note, step.picture) for step in story.steps[:2]] == [
        ("schedule", "done", {}),
        ("abort x", "done", {}),
    ]
    assert len(story.steps) == 6
    assert "KeyError" in story.sentence
