"""The fence, row by row: which unfinished copies a launch must wait for, given what it reads and writes."""

import pytest

from kvoffload.config import Config
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.ids import Pair
from kvoffload.operations import Content
from kvoffload.plan import PlannedShare
from kvoffload.transfer_job import Direction, TransferJob

A = Content(1, 0)
NOTHING = PlannedShare(1, (), (), 0)


def connector(*jobs: TransferJob) -> FencingConnector:
    made = FencingConnector.create(Config("fencing", 8, 8))
    made.jobs = {job.id: job for job in jobs}
    return made


def store(number: int, device: int, host: int, launched: bool = True) -> TransferJob:
    return TransferJob(number, Direction.STORE, None, (Pair(7, 7, 9), Pair(device, host, 1)), {0}, launched)


def load(number: int, host: int, device: int) -> TransferJob:
    return TransferJob(number, Direction.LOAD, None, (Pair(7, 7, 9), Pair(host, device, 1)), {0}, True)


@pytest.mark.parametrize(
    ("job", "share", "stores", "loads", "waits"),
    [
        pytest.param(store(0, 2, 5), NOTHING, (), (), False, id="nothing of the store is touched"),
        pytest.param(store(0, 2, 5), PlannedShare(1, (), ((2, A),), 0), (), (), True, id="compute writes its source"),
        pytest.param(store(0, 2, 5), PlannedShare(1, ((2, A),), (), 1), (), (), False, id="compute reads its source"),
        pytest.param(store(0, 2, 5), NOTHING, (), (Pair(4, 2, 3),), True, id="a load writes its source"),
        pytest.param(store(0, 2, 5), NOTHING, (Pair(2, 4, 3),), (), False, id="a store reads its source"),
        pytest.param(store(0, 2, 5), NOTHING, (Pair(3, 5, 3),), (), True, id="a store writes its destination"),
        pytest.param(store(0, 2, 5), NOTHING, (), (Pair(5, 3, 3),), True, id="a load reads its destination"),
        pytest.param(load(0, 5, 2), NOTHING, (), (), False, id="nothing of the load is touched"),
        pytest.param(load(0, 5, 2), NOTHING, (Pair(3, 5, 3),), (), True, id="a store writes the load's source"),
        pytest.param(load(0, 5, 2), NOTHING, (), (Pair(5, 3, 3),), False, id="a load reads the load's source"),
        pytest.param(
            load(0, 5, 2), PlannedShare(1, (), ((2, A),), 0), (), (), True, id="compute writes the load's destination"
        ),
        pytest.param(
            load(0, 5, 2), PlannedShare(1, ((2, A),), (), 1), (), (), True, id="compute reads the load's destination"
        ),
        pytest.param(load(0, 5, 2), NOTHING, (), (Pair(4, 2, 3),), True, id="a load writes the load's destination"),
        pytest.param(load(0, 5, 2), NOTHING, (Pair(2, 4, 3),), (), True, id="a store reads the load's destination"),
        pytest.param(
            store(0, 2, 5, launched=False), PlannedShare(1, (), ((2, A),), 0), (), (), False, id="it is not launched"
        ),
    ],
)
def test_one_row(
    job: TransferJob, share: PlannedShare, stores: tuple[Pair, ...], loads: tuple[Pair, ...], waits: bool
) -> None:
    fencing = connector(job)
    assert fencing._fence((share,), stores, loads) == ((0,) if waits else ())
    assert job.flush_ordered is waits


def test_who_is_ordered_flushed_once_is_waited_for_by_every_later_launch() -> None:
    fencing = connector(store(0, 2, 5, launched=False), store(1, 3, 4), store(2, 4, 3))
    assert fencing._fence((PlannedShare(1, (), ((3, A),), 0),), (), ()) == (1,)
    assert fencing._fence((NOTHING,), (), ()) == (1,)
    assert fencing._fence((PlannedShare(1, (), ((4, A),), 0),), (), ()) == (1, 2)
