"""What runs after what: the streams of each worker, the waits between them, and the fence under fencing."""

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Forbidden, Scope
from kvmodel import actions as act
from kvmodel.fence import conflicts, required_flush
from kvmodel.transfer_job import LAUNCHED, LIVE, LOAD, NONE, QUEUED, REPORTED, STORE, Job, Pair
from kvproof.targets.view import expected

PINNING, FENCING = Contract("pinning"), Contract("fencing")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])

AB = Scope(device_blocks=4, host_blocks=4, workers=2, prompts=("ab", "cd"), resets=2)
RELOAD = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=2)
X_STORED = (
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 0", "finish x"),
)


def may_run(contract: Contract, scope: Scope, *commands: str) -> str:
    machine, state = state_after(contract, scope, *commands)
    return facts(machine.setting, expected(state))["may_run"]


@BOTH
def test_a_store_runs_after_the_compute_that_writes_its_source(contract: Contract) -> None:
    """vLLM PR 46278, on each worker by itself."""
    launched = ('submit x "ab"', "admit x", "launch")
    assert may_run(contract, AB, *launched) == "w0 compute, w1 compute"
    assert may_run(contract, AB, *launched, "run w0 compute") == "w0 store, w1 compute"
    assert may_run(contract, AB, *launched, "run w0 compute", "run w0 store") == "w1 compute"
    assert may_run(contract, AB, *launched, "run w1 compute") == "w0 compute, w1 store"


def test_a_load_runs_after_the_last_compute_that_may_read_what_it_overwrites() -> None:
    """vLLM issue 47282. The output of y's step was handled when w0 had run it, w1 lags; z loads into y's block."""
    contract = Contract("pinning", "lazy", "first")
    scope = Scope(device_blocks=1, host_blocks=1, workers=2, prompts=("a", "b", "a"))
    commands = (
        *('submit x "a"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "finish x"),
        *("launch", "run w0 store", "run w1 store", "report w0 job 0", "report w1 job 0"),
        *('submit y "b"', "admit y", "launch", "run w0 compute", "handle output", "finish y"),
        *('submit z "a"', "admit z", "launch"),
    )
    assert may_run(contract, scope, *commands) == "w0 load, w1 compute"
    assert may_run(contract, scope, *commands, "run w1 compute") == "w0 load, w1 load"


@BOTH
def test_operations_of_one_stream_run_in_the_order_of_their_launches(contract: Contract) -> None:
    """x's store, then y's."""
    scope = AB._replace(workers=1)
    two = (
        *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
        *('submit y "cd"', "admit y", "launch", "run w0 compute"),
    )
    _, state = state_after(contract, scope, *two, "run w0 store")
    assert [job.progress for job in state.jobs] == [(2,), (1,)]
    _, later = state_after(contract, scope, *two, "run w0 store", "run w0 store")
    assert [job.progress for job in later.jobs] == [(2,), (2,)]


@BOTH
def test_what_runs_moves_the_contents_of_one_worker(contract: Contract) -> None:
    _, state = state_after(contract, AB, 'submit x "ab"', "admit x", "launch", "run w1 compute", "run w1 store")
    assert state.device_contents == ((0, 0, 0, 0), (1, 2, 0, 0))
    assert state.host_contents == ((0, 0, 0, 0), (1, 2, 0, 0))


@BOTH
def test_output_is_handled_when_all_workers_have_run_or_the_first(contract: Contract) -> None:
    launched = ('submit x "ab"', "admit x", "launch")
    for output_from, ran, handled in (("all", "w0", False), ("first", "w0", True), ("first", "w1", False)):
        machine, state = state_after(
            contract._replace(output_from=output_from),
            AB,
            *launched,
            f"run {ran} compute",
        )
        assert (act.HandleOutput() in machine.actions(state)) is handled


@BOTH
def test_a_worker_may_lag_by_one_step_and_no_more(contract: Contract) -> None:
    first = contract._replace(output_from="first")
    scope = Scope(device_blocks=6, host_blocks=6, workers=2, prompts=("ab", "cd", "ef"))
    one_step = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", 'submit y "cd"', "admit y")
    two_steps = (*one_step, "launch", "run w0 compute", "handle output", 'submit z "ef"', "admit z")
    machine, state = state_after(first, scope, *one_step)
    machine.check(state, act.Launch())
    machine, state = state_after(first, scope, *two_steps)
    assert act.Launch() not in machine.actions(state)
    with pytest.raises(Forbidden, match="before the one before it is done"):
        machine.check(state, act.Launch())
    machine, state = state_after(first, scope, *two_steps, "run w1 compute")
    machine.check(state, act.Launch())


def test_whatever_reuses_the_blocks_of_a_forgotten_copy_waits_for_it() -> None:
    """PRs 41956 and 48102: z is admitted into the destination of its old load, and everything of that launch waits."""
    loading = (
        *X_STORED,
        *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 1"),
        *("finish y", 'submit z "ab"', "admit z", "launch"),
    )
    after_reset = (*loading, "reset invalidate", "admit z", "launch")
    assert may_run(FENCING, RELOAD, *after_reset) == "w0 load"
    assert may_run(FENCING, RELOAD, *after_reset, "run w0 load") == "w0 compute"
    assert may_run(FENCING, RELOAD, *after_reset, "run w0 load", "run w0 compute") == "w0 store"


def test_every_later_launch_waits_for_a_job_that_was_once_to_be_flushed() -> None:
    """Also one that touches none of its blocks."""
    scope = AB._replace(workers=1)
    reset = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "reset invalidate", "abort x")
    assert may_run(FENCING, scope, *reset, 'submit y "cd"', "admit y") == "w0 store"
    assert may_run(FENCING, scope, *reset, 'submit y "cd"', "admit y", "launch") == "w0 store"


def test_pinning_never_waits_for_copies() -> None:
    scope = AB._replace(workers=1)
    reset = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "reset invalidate", "admit x")
    assert may_run(PINNING, scope, *reset, "launch") == "w0 compute, w0 store"


STORING = Job(3, STORE, NONE, (Pair(source=5, destination=8, key=1),), LIVE, (LAUNCHED,))
LOADING = Job(4, LOAD, 0, (Pair(source=8, destination=5, key=1),), LIVE, (LAUNCHED,))
OVERWRITES = "device writes", "host writes", "device reads", "host reads"


@pytest.mark.parametrize(
    ("job", "block", "clashes"),
    [
        (STORING, 5, {"device writes"}),
        (STORING, 8, {"host writes", "host reads"}),
        (LOADING, 5, {"device writes", "device reads"}),
        (LOADING, 8, {"host writes"}),
        (STORING, 7, set[str]()),
        (LOADING, 7, set[str]()),
    ],
)
def test_a_copy_and_a_launch_conflict_where_one_writes_what_the_other_touches(
    job: Job, block: int, clashes: set[str]
) -> None:
    """Device block 5, host block 8. Two readers never conflict."""
    for touched in OVERWRITES:
        sets = [{block} if touched == name else set[int]() for name in OVERWRITES]
        assert conflicts(job, *sets) is (touched in clashes)


@pytest.mark.parametrize(
    ("progress", "flushed", "flush"),
    [((LAUNCHED,), False, (0,)), ((QUEUED,), False, ()), ((REPORTED,), False, ()), ((LAUNCHED,), True, (0,))],
)
def test_the_flush_set_holds_the_unfinished_launched_jobs(
    progress: tuple[int, ...], flushed: bool, flush: tuple[int, ...]
) -> None:
    machine, state = state_after(
        FENCING, AB._replace(workers=1), 'submit x "ab"', "admit x", "launch", "run w0 compute"
    )
    job = state.jobs[0]._replace(progress=progress, flushed=flushed)
    changed = state._replace(jobs=(job,))
    assert required_flush(changed, (((0, 1), 0),), ()) == flush
    assert required_flush(changed, (((0, 1), 2),), ()) == (flush if flushed else ())
    assert required_flush(changed, (), ((Pair(3, 0, 2),),)) == flush
    assert machine.setting.contract is FENCING
