"""What a refusal says, word for word: what is wrong, and where. Whoever is refused has nothing else to go by."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.block_pool import BlockPool
from kvoffload.config import Config
from kvoffload.deadlines import Deadlines
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import (
    DoubleFree,
    NoDeadline,
    NotBound,
    NothingToLaunch,
    NotOutstanding,
    NotRunnable,
    OutOfBlocks,
    UnknownBlock,
    UnknownJob,
    UnknownRequest,
    WrongPhase,
)
from kvoffload.operations import Stream
from kvoffload.plan import LaunchPlan
from kvoffload.runtime import Runtime
from kvoffload.transfer_job import Direction
from kvoffload.worker import Worker

Make = Callable[..., Any]


def refused(kind: type[Exception], call: Callable[[], object]) -> str:
    """The sentence of a refusal of exactly this kind."""
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    return str(raised.value)


def test_of_a_block_pool() -> None:
    pool = BlockPool.of_size(3)
    assert refused(UnknownBlock, lambda: pool.touch([3])) == "block 3 of a pool of 3"
    assert refused(UnknownBlock, lambda: pool.release([-1])) == "block -1 of a pool of 3"
    assert refused(DoubleFree, lambda: pool.release([1])) == "block 1 is released 1 times and referenced 0 times"
    taken = pool.take(2)
    assert refused(OutOfBlocks, lambda: pool.take(2)) == "2 blocks of 3, of which 1 are free"
    twice = "block 1 is released 2 times and referenced 1 times"
    assert refused(DoubleFree, lambda: pool.release([*taken, 1])) == twice


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"discipline": "fence"}, "discipline 'fence' does not exist; use pinning or fencing"),
        ({"store_mode": "late"}, "store mode 'late' does not exist; use eager or lazy"),
        ({"output_from": "last"}, "output_from 'last' does not exist; use all or first"),
        ({"depth": 0}, "depth 0 does not exist; use 1 or 2"),
        ({"admission": "half"}, "admission 'half' does not exist; use whole or partial"),
        ({"reports": "mark"}, "reports 'mark' do not exist; use per-job or marks"),
        ({"device_blocks": 0}, "device_blocks, host_blocks and workers must be at least 1"),
        ({"host_blocks": 0}, "device_blocks, host_blocks and workers must be at least 1"),
        ({"workers": 0}, "device_blocks, host_blocks and workers must be at least 1"),
        ({"window": -1}, "window must not be negative; 0 reads every block"),
        ({"window": 1, "depth": 2}, "window 1 needs depth 1: at depth 2 what it leaves is still read"),
        ({"deadline": 0.0}, "deadline must be a positive number of seconds, or None"),
        ({"lazy_window": -1}, "lazy_window must not be negative; 0 examines every free block"),
        ({"second_blocks": -1}, "second_blocks must not be negative; 0 is no second tier"),
        (
            {"second_blocks": 1, "reports": "marks"},
            "a second tier needs reports per-job: there are marks of stores and loads alone",
        ),
    ],
)
def test_of_a_configuration(values: dict[str, Any], sentence: str) -> None:
    sizes: dict[str, Any] = {"discipline": "pinning", "device_blocks": 2, "host_blocks": 2}
    assert refused(ValueError, lambda: Config(**{**sizes, **values})) == sentence


@pytest.mark.parametrize(
    "values",
    [
        {"device_blocks": 1, "host_blocks": 1, "workers": 1},
        {"window": 1},
        {"depth": 2},
        {"lazy_window": 1},
        {"deadline": 0.5},
    ],
)
def test_the_smallest_values_that_make_sense_are_taken(values: dict[str, Any]) -> None:
    config = Config(**{"discipline": "fencing", "device_blocks": 2, "host_blocks": 2, **values})
    assert {name: getattr(config, name) for name in values} == values


def test_of_what_a_request_is_submitted_with(serving: Make) -> None:
    engine = serving("pinning", 2, 2).engine
    must_begin = "request 1: total must begin with the prompt, which must not be empty"
    assert refused(ValueError, lambda: engine.submit(1, (), (1,))) == must_begin
    assert refused(ValueError, lambda: engine.submit(1, (1,), (2, 1))) == must_begin
    assert (
        refused(ValueError, lambda: engine.submit(1, (1, 1), (1, 1))) == "request 1: keys must differ from each other"
    )
    assert refused(ValueError, lambda: engine.submit(1, (1,), (1, 0))) == "request 1: keys must be positive"
    assert (
        refused(ValueError, lambda: engine.submit(1, (1,), (1, 2, 3)))
        == "request 1 needs 3 device blocks of 2: it cannot end"
    )
    engine.submit(1, (1,), (1, 2))
    assert (
        refused(WrongPhase, lambda: engine.submit(1, (1,), (1, 2)))
        == "request 1 was submitted before; ids are not used twice"
    )


def test_of_requests_in_the_wrong_phase(serving: Make) -> None:
    s = serving("fencing", 4, 4)
    engine = s.engine
    s.submit(1, "ab", "c")
    assert refused(WrongPhase, lambda: engine.release_lookup(1)) == "request 1 was not looked up"
    assert refused(WrongPhase, lambda: engine.wake(1)) == "request 1 is WAITING, not LOADING"
    assert refused(WrongPhase, lambda: engine.grow(1)) == "request 1 is WAITING, not RUNNING"
    assert refused(WrongPhase, lambda: engine.collect(1)) == "request 1 is WAITING, not DONE"
    assert (
        refused(WrongPhase, lambda: engine.preempt(1))
        == "request 1 is WAITING; only LOADING and RUNNING ones can be preempted"
    )
    s.compute()
    assert refused(WrongPhase, lambda: engine.lookup(1)) == "request 1 is RUNNING, not WAITING"
    assert refused(WrongPhase, lambda: engine.finish(1)) == "request 1 has not computed all of its blocks"
    engine.grow(1)
    assert refused(WrongPhase, lambda: engine.grow(1)) == "request 1 has no use for another block now"
    engine.preempt(1)
    assert refused(WrongPhase, lambda: engine.admit(1)) == "request 1 is deferred: own jobs outstanding"


def test_of_a_request_whose_output_cannot_stop_it(serving: Make) -> None:
    s = serving("pinning", 4, 4)
    s.submit(1, "a", "b")
    s.runtime.schedule()
    no_output = "request 1 has no output that could stop it, or has had its last one"
    assert refused(WrongPhase, lambda: s.engine.stop(1)) == no_output
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    s.compute()
    assert refused(WrongPhase, lambda: s.engine.stop(1)) == no_output


def test_of_a_request_whose_load_is_on_its_way(serving: Make) -> None:
    s = serving("fencing", 2, 4)
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "yz")
    s.serve()
    s.submit(2, "ab")
    s.engine.admit(2)
    s.runtime.launch()
    assert refused(WrongPhase, lambda: s.engine.wake(2)) == "request 2 still waits for its load"
    s.engine.abort(2)
    assert refused(WrongPhase, lambda: s.engine.abort(2)) == "request 2 was aborted before; its load drains"


def test_of_requests_that_are_not_there(serving: Make) -> None:
    s = serving("pinning", 2, 2)
    s.submit(1, "a")
    s.serve()
    assert refused(UnknownRequest, lambda: s.engine.abort(1)) == "request 1"
    assert refused(UnknownRequest, lambda: s.engine.lookup(7)) == "request 7"
    assert refused(UnknownRequest, lambda: s.engine.collect(7)) == "request 7"


def test_of_too_few_blocks(serving: Make) -> None:
    s = serving("pinning", 2, 4, admission="partial")
    s.submit(1, "ab")
    s.submit(2, "cd")
    s.submit(3, "e")
    s.compute()
    s.drain()
    assert refused(OutOfBlocks, lambda: s.engine.grow(1)) == "request 1 wants a block, and all 2 are referenced"
    assert (
        refused(OutOfBlocks, lambda: s.engine.admit(3))
        == "request 3 waits until those that run have the blocks that they need"
    )
    whole = serving("pinning", 2, 4)
    whole.submit(1, "a")
    whole.engine.admit(1)
    whole.submit(2, "cd")
    assert refused(OutOfBlocks, lambda: whole.engine.admit(2)) == "request 2 needs 2 fresh blocks; 1 are free"


def test_of_launches_and_outputs(serving: Make) -> None:
    s = serving("pinning", 2, 2, workers=2, output_from="first")
    nothing = "no request computes, and there is nothing to copy"
    assert refused(NothingToLaunch, s.engine.launch) == nothing
    assert refused(NotRunnable, s.engine.handle_output) == "no step is launched whose output could be handled"
    not_run = "no step is awaited, or its compute has not run yet"
    assert refused(NotRunnable, s.runtime.handle_output) == not_run
    s.submit(1, "a", "b")
    s.runtime.schedule()
    assert refused(NothingToLaunch, s.engine.launch) == "the output of step 0 is not handled yet"
    assert refused(NotRunnable, s.runtime.handle_output) == not_run


def test_of_a_launch_that_a_worker_is_too_far_behind_for(serving: Make) -> None:
    s = serving("pinning", 3, 3, workers=2, output_from="first")
    s.submit(1, "a", "bc")
    for _ in range(2):
        s.runtime.schedule()
        s.ledger.run(0, Stream.COMPUTE)
        s.runtime.handle_output()
    s.engine.grow(1)
    assert refused(NothingToLaunch, s.runtime.launch) == "a worker has not run the step before the last one"


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_before_the_device_pool_is_bound(discipline: Any) -> None:
    engine = Engine(Config(discipline, 2, 2))
    engine.submit(1, (1,), (1,))
    unbound = "the device pool is not bound to the connector yet"
    for call in (
        lambda: engine.reset("evict", "keep"),
        lambda: engine.lookup(1),
        lambda: engine.admit(1),
        engine.launch,
        engine.schedule,
        lambda: engine.connector.reset_cache("evict", (), "all"),
        lambda: engine.scheduler.launch(),
    ):
        assert refused(NotBound, call) == unbound
    assert (engine.can_lookup(1), engine.can_admit(1), engine.can_launch()) == (False, False, False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("flush", "keep", "all"), "no reset of tiers 'all' means 'flush' with requests 'keep'"),
        (("evict", "abort", "all"), "no reset of tiers 'all' means 'evict' with requests 'abort'"),
        (("evict", "keep", "disk"), "no reset of tiers 'disk' means 'evict' with requests 'keep'"),
        (
            ("invalidate", "keep", "device"),
            "after an invalidating reset of the device tier alone the other one would serve old KV",
        ),
        (
            ("evict", "preempt", "host"),
            "no request holds host blocks: a reset of the host tier alone preempts nobody",
        ),
    ],
)
def test_of_resets_that_do_not_exist(serving: Make, words: tuple[Any, Any, Any], sentence: str) -> None:
    assert refused(ValueError, lambda: serving("pinning", 2, 2).engine.reset(*words)) == sentence


def test_of_reports(serving: Make) -> None:
    s = serving("pinning", 2, 2)
    s.submit(1, "ab")
    s.compute()
    never = "job 1 was never issued; the next one is 1"
    assert refused(UnknownJob, lambda: s.engine.report(0, [0, 1])) == never
    assert refused(UnknownJob, lambda: s.engine.report(0, [-1])) == "job -1 was never issued; the next one is 1"
    assert refused(UnknownJob, lambda: s.engine.report_mark(0, Direction.STORE, 1)) == never
    for position in (-1, 2):
        assert (
            refused(ValueError, lambda position=position: s.engine.report(0, [0], {0: (0, position)}))
            == f"pair {position} of job 0 is said to have failed; it has 2"
        )
    assert refused(UnknownJob, lambda: s.runtime.deliver(0, [0])) == "worker 0 has no uncollected copy of job 0"


def test_of_marks(serving: Make) -> None:
    s = serving("pinning", 2, 2, reports="marks")
    assert (
        refused(UnknownJob, lambda: s.runtime.deliver_mark(0, Direction.LOAD, 0))
        == "worker 0 has not copied every load up to job 0"
    )


def test_of_what_cannot_expire(serving: Make) -> None:
    s = serving("pinning", 2, 2)
    assert refused(NoDeadline, lambda: s.engine.expire(3)) == "transfers have no deadline here; job 3 is waited for"
    assert refused(ValueError, lambda: Deadlines(s.engine, lambda: 0.0)) == "the engine's configuration has no deadline"
    s = serving("pinning", 2, 2, deadline=1.0)
    assert refused(UnknownJob, lambda: s.engine.expire(0)) == "job 0 was never issued; the next one is 0"
    s.submit(1, "a")
    s.serve()
    assert refused(NotOutstanding, lambda: s.engine.expire(0)) == "job 0 is complete, dropped or not launched"


def test_of_a_worker_and_of_a_runtime() -> None:
    ledger = Ledger.create(1, 2, 2)
    worker = Worker(0, ledger)
    no_launch = "handle_preemptions begins a launch; it was not called"
    for hook in (worker.start_load_kv, worker.compute, worker.wait_for_save):
        assert refused(RuntimeError, hook) == no_launch
    worker.launch(LaunchPlan(None, (), (), (), (), 0, ()))
    assert refused(RuntimeError, worker.compute) == no_launch
    assert (
        refused(RuntimeError, lambda: worker.get_mark(Direction.LOAD))
        == "this worker reports single jobs, and has no marks"
    )
    engine = Engine.create(Config("pinning", 2, 2, 3))
    assert refused(ValueError, lambda: Runtime(engine, ledger)) == "the device has 1 workers, the engine 3"
