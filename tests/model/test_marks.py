"""High-water marks: what one covers, what it must not pass, and that it may come late, again or never."""

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Forbidden, Machine, Scope, State
from kvmodel import actions as act
from kvmodel.rules.report_mark import covered
from kvmodel.transfer_job import LOAD, STORE
from kvproof.targets.view import expected

PINNING, FENCING = Contract("pinning", reports="marks"), Contract("fencing", reports="marks")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])

DECODING = Scope(device_blocks=3, host_blocks=3, workers=2, prompts=("ab",), decode=1)
ONE = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("a", "b"), duplicates=1, losses=1)

TWO_STORES = (
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "grow x"),
    *("launch", "run w0 compute", "run w1 compute", "run w0 store", "run w0 store", "run w1 store"),
)
LOAD_AND_STORE = (
    *('submit x "a"', "admit x", "launch", "run w0 compute", "run w0 store", "report w0 stores up to job 0"),
    *("preempt x", "handle output", "admit x", 'submit y "b"', "admit y", "launch", "run w0 compute", "run w0 store"),
)


def marks(machine: Machine, state: State) -> list[act.Action]:
    kinds = act.Report | act.ReportMark | act.RepeatMark | act.LoseMark
    return [action for action in machine.actions(state) if isinstance(action, kinds)]


@BOTH
def test_every_mark_that_is_true_and_news_may_be_reported(contract: Contract) -> None:
    """Also one below the highest: it was sent before the last copy ran."""
    machine, state = state_after(contract, DECODING, *TWO_STORES)
    assert marks(machine, state) == [
        act.ReportMark(0, STORE, 0),
        act.ReportMark(1, STORE, 0),
        act.ReportMark(0, STORE, 1),
    ]


@BOTH
def test_a_mark_covers_the_jobs_of_its_stream_that_the_worker_has_not_reported(contract: Contract) -> None:
    _, state = state_after(contract, DECODING, *TWO_STORES)
    assert [job.id for job in covered(state, 0, STORE, 1)] == [0, 1]
    assert [job.id for job in covered(state, 1, STORE, 1)] == [0]
    assert covered(state, 0, LOAD, 1) == ()
    _, state = state_after(contract, DECODING, *TWO_STORES, "report w0 stores up to job 0")
    assert [job.id for job in covered(state, 0, STORE, 1)] == [1]


@BOTH
@pytest.mark.parametrize(
    ("commands", "action", "why"),
    [
        ((), act.ReportMark(0, STORE, 0), "worker 0 reports mark 0, and no such job was issued"),
        (TWO_STORES, act.ReportMark(0, STORE, 2), "worker 0 reports mark 2, and no such job was issued"),
        (TWO_STORES, act.ReportMark(0, STORE, -1), "worker 0 reports mark -1, and no such job was issued"),
        (TWO_STORES, act.ReportMark(1, STORE, 1), "worker 1 reports mark 1 and has not copied all jobs up to it"),
        (TWO_STORES, act.ReportMark(0, LOAD, 1), "worker 0 reports mark 1, up to which it has reported everything"),
        (
            (*TWO_STORES, "report w0 stores up to job 1"),
            act.ReportMark(0, STORE, 1),
            "worker 0 reports mark 1, up to which it has reported everything",
        ),
        (TWO_STORES, act.Report(0, 0), "worker 0 reports a single job, and the contract has reports of marks"),
    ],
)
def test_what_a_mark_must_not_say(contract: Contract, commands: tuple[str, ...], action: act.Action, why: str) -> None:
    machine, state = state_after(contract, DECODING, *commands)
    with pytest.raises(Forbidden) as forbidden:
        machine.check(state, action)
    assert (forbidden.value.rule, forbidden.value.why) == ("report", why)


def test_single_reports_and_marks_exclude_each_other() -> None:
    machine, state = state_after(Contract("pinning"), ONE, *LOAD_AND_STORE[:5])
    for action, rule in (
        (act.ReportMark(0, STORE, 0), "report"),
        (act.LoseMark(0, STORE), "report"),
        (act.RepeatMark(0, STORE, "last"), "duplicate-report"),
    ):
        with pytest.raises(Forbidden) as forbidden:
            machine.check(state, action)
        assert forbidden.value.rule == rule
    assert marks(machine, state) == [act.Report(0, 0)]


@BOTH
def test_a_younger_store_does_not_complete_an_older_load(contract: Contract) -> None:
    machine, state = state_after(contract, ONE, *LOAD_AND_STORE)
    assert covered(state, 0, STORE, 2) == tuple(job for job in state.jobs if job.id == 2)
    with pytest.raises(Forbidden, match="has not copied all jobs up to it"):
        machine.check(state, act.ReportMark(0, LOAD, 2))
    after = machine.step(state, act.ReportMark(0, STORE, 2))
    assert facts(machine.setting, expected(after))["jobs"] == "1 load LIVE w0"


@BOTH
def test_a_lost_mark_costs_nothing_but_time(contract: Contract) -> None:
    machine, state = state_after(contract, ONE, *LOAD_AND_STORE[:5])
    assert act.LoseMark(0, STORE) in machine.actions(state)
    assert act.LoseMark(0, LOAD) not in machine.actions(state)
    lost = machine.step(state, act.LoseMark(0, STORE))
    assert lost == state._replace(faults_left=state.faults_left._replace(losses=0))
    assert machine.step(lost, act.ReportMark(0, STORE, 0)).jobs == ()
    with pytest.raises(Forbidden, match="no more reports may be lost"):
        machine.check(lost, act.LoseMark(0, STORE))


@BOTH
def test_a_repeated_mark_changes_nothing(contract: Contract) -> None:
    """Not even when it is of a stream on which something new runs."""
    machine, state = state_after(contract, ONE, *LOAD_AND_STORE)
    repeats: list[act.Action] = [act.RepeatMark(0, s, which) for s in (STORE, LOAD) for which in ("last", "first")]
    assert [action for action in machine.actions(state) if isinstance(action, act.RepeatMark)] == repeats
    for action in repeats:
        machine.check(state, action)
        after = machine.step(state, action)
        assert after == state._replace(faults_left=state.faults_left._replace(duplicates=0))
        with pytest.raises(Forbidden, match="no more reports may be repeated"):
            machine.check(after, action)


@BOTH
def test_what_was_never_reported_cannot_be_repeated(contract: Contract) -> None:
    machine, state = state_after(contract, ONE, *LOAD_AND_STORE[:5])
    assert not [action for action in machine.actions(state) if isinstance(action, act.RepeatMark)]
    with pytest.raises(Forbidden, match="has reported no mark that could be repeated"):
        machine.check(state, act.RepeatMark(0, STORE, "last"))
    machine, state = state_after(contract, DECODING._replace(duplicates=1), *TWO_STORES, "report w1 stores up to job 0")
    repeats = [action for action in machine.actions(state) if isinstance(action, act.RepeatMark)]
    assert repeats == [act.RepeatMark(1, STORE, "last"), act.RepeatMark(1, STORE, "first")]
