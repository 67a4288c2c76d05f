"""Workers that die: what they were given is lost, what needs them waits, and nothing of theirs is published."""

import pytest
from tests.seeds.driving import state_after

from kvmodel import Contract, Forbidden, Machine, Scope
from kvmodel import actions as act
from kvmodel.errors import BadScope
from kvmodel.streams import runnable
from kvmodel.transfer_job import COPIED, LOST, REPORTED

PINNING, FENCING = Contract("pinning"), Contract("fencing")
TWO = Scope(device_blocks=3, host_blocks=3, workers=2, prompts=("ab",), resets=2, deaths=1)
COMPUTED = ('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output")

both = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=lambda contract: contract.discipline)


@both
def test_a_dead_worker_runs_nothing_and_the_others_go_on(contract: Contract) -> None:
    machine, state = state_after(contract, TWO, *COMPUTED, "w1 dies")
    assert runnable(state) == [(0, 1)]
    assert state.jobs[0].progress[1] == LOST
    with pytest.raises(Forbidden, match="worker 1 is dead: nothing runs there"):
        machine.check(state, act.Run(1, 1))


@both
def test_what_it_has_copied_is_reported_no_more_and_what_it_has_reported_counts(contract: Contract) -> None:
    _, copied = state_after(contract, TWO, *COMPUTED, "run w1 store", "w1 dies")
    assert copied.jobs[0].progress[1] == LOST
    _, reported = state_after(contract, TWO, *COMPUTED, "run w1 store", "report w1 job 0", "w1 dies")
    assert reported.jobs[0].progress[1] == REPORTED
    _, complete = state_after(
        *(contract, TWO, *COMPUTED, "run w1 store", "report w1 job 0", "w1 dies", "run w0 store", "report w0 job 0")
    )
    assert complete.jobs == ()
    assert complete.host.keys[:2] == (1, 2)


@both
def test_the_output_of_a_step_that_it_has_not_computed_never_comes(contract: Contract) -> None:
    machine, state = state_after(contract, TWO, 'submit x "ab"', "admit x", "launch", "w1 dies", "run w0 compute")
    with pytest.raises(Forbidden, match="no step is awaited whose compute has run"):
        machine.check(state, act.HandleOutput())
    left = machine.step(state, act.Abort(0))
    assert left.device.refs == (1, 1, 0) if contract is FENCING else left.device.refs == (2, 2, 0)
    assert not any(left.device.keys)


@both
def test_what_is_launched_after_it_died_is_lost_on_it(contract: Contract) -> None:
    machine, state = state_after(contract, TWO, 'submit x "ab"', "admit x", "w1 dies")
    launched = machine.step(state, act.Launch())
    assert launched.jobs[0].progress[1] == LOST
    assert runnable(launched) == [(0, 0)]


def test_a_forgotten_job_that_only_the_dead_had_not_reported_is_gone() -> None:
    commands = (*COMPUTED, "run w0 store", "report w0 job 0", "reset invalidate")
    _, before = state_after(FENCING, TWO, *commands)
    assert len(before.jobs) == 1
    _, after = state_after(FENCING, TWO, *commands, "w1 dies")
    assert after.jobs == ()


def test_nobody_waits_for_a_copy_that_the_dead_had_not_run() -> None:
    """A store is ordered flushed by a reset; its request is launched again, and waits for it. One worker has copied."""
    commands = (*COMPUTED, "run w0 store", "reset invalidate", "admit x", "launch")
    _, before = state_after(FENCING, TWO, *commands)
    assert before.jobs[0].progress[0] == COPIED
    assert before.steps[0].after_jobs == (0,)
    _, after = state_after(FENCING, TWO, *commands, "w1 dies")
    assert after.steps[0].after_jobs == ()
    assert not after.jobs[0].flushed


def test_no_more_die_than_the_scope_says_and_nobody_twice() -> None:
    machine, dead = state_after(PINNING, TWO, "w1 dies")
    with pytest.raises(Forbidden, match="no more workers may die in this scope"):
        machine.check(dead, act.Die(0))
    machine, dead = state_after(PINNING, TWO._replace(deaths=2), "w1 dies")
    with pytest.raises(Forbidden, match="worker 1 is dead already"):
        machine.check(dead, act.Die(1))
    assert [action for action in machine.actions(dead) if isinstance(action, act.Die)] == [act.Die(0)]


@pytest.mark.parametrize(
    ("contract", "why"),
    [
        (PINNING._replace(output_from="first"), "steps end without the dead. Use output_from all"),
        (PINNING._replace(reports="marks"), "Use reports per-job"),
    ],
)
def test_modes_that_do_not_go_with_deaths(contract: Contract, why: str) -> None:
    with pytest.raises(BadScope) as refused:
        Machine(contract, TWO)
    assert why in str(refused.value)


def test_there_are_no_more_deaths_than_workers() -> None:
    with pytest.raises(BadScope, match="deaths is 3; it must be between 0 and 2"):
        Machine(PINNING, TWO._replace(deaths=3))


UNTIL = {contract.discipline: contract._replace(deadline="expire") for contract in (PINNING, FENCING)}


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_when_it_is_declared_dead_everything_ends_and_late_reports_are_absorbed_once(discipline: str) -> None:
    machine, state = state_after(UNTIL[discipline], TWO, *COMPUTED, "run w0 store", "w1 dies", "declare w1 dead")
    assert state.shut
    assert not any(state.device.refs + state.host.refs + state.device.keys + state.host.keys)
    assert [job.progress for job in state.jobs] == [(COPIED, LOST)]
    after = machine.step(state, act.Report(0, 0))
    assert after.jobs == ()
    assert not any(after.host.keys)
    with pytest.raises(Forbidden, match="which it has not just copied"):
        machine.check(after, act.Report(0, 0))


def test_a_step_that_the_living_still_run_is_given_up_with_the_blocks_that_it_kept() -> None:
    machine, state = state_after(
        UNTIL["pinning"], TWO, 'submit x "ab"', "admit x", "launch", "abort x", "w1 dies", "declare w1 dead"
    )
    assert not any(state.device.refs)
    assert [(step.handled, step.ran) for step in state.steps] == [(True, (False, True))]
    ran = machine.step(state, act.Run(0, 0))
    assert ran.steps == ()
    assert not any(ran.device.keys)


def test_nothing_is_submitted_once_the_engine_has_shut_down() -> None:
    machine, state = state_after(UNTIL["pinning"], TWO, "w1 dies", "declare w1 dead")
    with pytest.raises(Forbidden, match="the engine has shut down: a worker was declared dead"):
        machine.check(state, act.Submit(0))
    assert act.Submit not in {type(action) for action in machine.actions(state)}
    with pytest.raises(Forbidden, match="the engine has shut down already"):
        machine.check(state, act.DeclareDead(1))


def test_a_job_that_is_lost_with_its_worker_has_the_deadline_of_the_worker() -> None:
    machine, state = state_after(UNTIL["pinning"], TWO, *COMPUTED, "w1 dies")
    kinds = {type(action) for action in machine.actions(state)}
    assert act.DeclareDead in kinds
    assert act.Expire not in kinds
