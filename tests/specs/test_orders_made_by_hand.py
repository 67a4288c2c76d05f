"""Operations in an order that the rules reach only by long ways, made by hand: properties look at states alone."""

import pytest
from tests.specs.wrong import FENCING, TWO_WORKERS

from kvmodel import Machine, Scope, State
from kvmodel.launched_step import Share, Step
from kvmodel.transfer_job import ABANDONED, COPIED, FORGOTTEN, LAUNCHED, LIVE, LOAD, NONE, STORE, Job, Pair
from kvspecs.safety import fence_before_reuse, no_use_after_free

INTO_2 = Job(3, LOAD, NONE, (Pair(0, 2, 1),), FORGOTTEN, (COPIED, LAUNCHED))
"""Worker 1 has yet to load into device block 2; whoever held that has lost it to a reset."""

WRITES_2 = Step(5, (Share(0, (1, 2), 1),), (True, False), handled=True)
"""Worker 1 has yet to compute block 2, and the output was taken from worker 0: the key can be hit."""

ANOTHER = Step(6, (Share(0, (1,), 0),), (False, False), handled=True)


def judged(scope: Scope, **fields: object) -> str | None:
    """What no-use-after-free says of a state in which the key of device block 2 can be hit."""
    machine = Machine(FENCING, scope)
    state = machine.initial()._replace(**fields)
    judge = no_use_after_free.PROPERTY.on_state
    assert judge is not None
    return judge(machine.setting, state._replace(device=state.device._replace(keys=(0, 0, 1))))


@pytest.mark.parametrize(
    ("job", "steps", "overwritten"),
    [
        pytest.param(INTO_2, (WRITES_2,), True, id="the compute comes after the load"),
        pytest.param(INTO_2, (ANOTHER, WRITES_2), True, id="one of two computes does"),
        pytest.param(INTO_2, (), False, id="nothing comes after it"),
        pytest.param(INTO_2, (ANOTHER,), False, id="the compute writes another block"),
        pytest.param(INTO_2._replace(view=LIVE), (WRITES_2,), False, id="the load is not forgotten"),
        pytest.param(INTO_2._replace(view=ABANDONED), (WRITES_2,), False, id="the load is only abandoned"),
        pytest.param(INTO_2, (WRITES_2._replace(ran=(True, True)),), False, id="the compute ran before the load"),
        pytest.param(
            INTO_2, (WRITES_2._replace(shares=(Share(0, (1, 2), 2),)),), False, id="the compute only reads the block"
        ),
        pytest.param(
            INTO_2._replace(progress=(LAUNCHED, LAUNCHED)), (WRITES_2,), False, id="worker 0 loads into it after all"
        ),
        pytest.param(
            INTO_2._replace(progress=(LAUNCHED, LAUNCHED)),
            (WRITES_2._replace(ran=(False, False)),),
            True,
            id="it comes after the load on both workers",
        ),
    ],
)
def test_a_key_that_a_forgotten_load_will_overwrite_and_a_compute_then_writes_again(
    job: Job, steps: tuple[Step, ...], overwritten: bool
) -> None:
    sentence = None if overwritten else "device block 2 can be hit while job 3 still writes it"
    assert judged(TWO_WORKERS, jobs=(job,), steps=steps) == sentence


def test_every_job_and_every_step_is_looked_at() -> None:
    over = Job(2, STORE, NONE, (Pair(1, 0, 1),), LIVE, (COPIED, COPIED))
    sentence = "device block 2 can be hit while job 3 still writes it"
    assert judged(TWO_WORKERS, jobs=(over, INTO_2)) == sentence
    left = Share(0, (1, 2), 1, left=True)
    sentence = "device block 2 can be hit while launched step 6 writes it"
    assert judged(TWO_WORKERS, steps=(WRITES_2, Step(6, (left,), (False, False)))) == sentence


STORES_0 = Job(0, STORE, NONE, (Pair(0, 0, 1),), FORGOTTEN, (LAUNCHED,))
"""Reads device block 0."""

LOADS_1 = Job(1, LOAD, NONE, (Pair(2, 1, 2),), FORGOTTEN, (LAUNCHED,), after_jobs=(0,))
"""Touches nothing of it, and waits for it."""

COMPUTES_0 = Step(7, (Share(0, (0,), 0),), (False,), after_jobs=(1,))
"""Writes device block 0, and waits for the second."""


def race(*operations: Job | Step) -> str | None:
    machine = Machine(FENCING, TWO_WORKERS._replace(workers=1))
    jobs = tuple(each for each in operations if isinstance(each, Job))
    steps = tuple(each for each in operations if isinstance(each, Step))
    state: State = machine.initial()._replace(jobs=jobs, steps=steps)
    judge = fence_before_reuse.PROPERTY.on_state
    assert judge is not None
    return judge(machine.setting, state)


RACES = "the compute of step 7 and job 0 race for device block 0 on worker 0"


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        pytest.param((STORES_0, LOADS_1, COMPUTES_0), None, id="through one between"),
        pytest.param((STORES_0, COMPUTES_0._replace(after_jobs=(0,))), None, id="at once"),
        pytest.param((STORES_0, COMPUTES_0._replace(after_jobs=())), RACES, id="it waits for nothing"),
        pytest.param((STORES_0, COMPUTES_0), RACES, id="it waits for one that has run"),
        pytest.param(
            (STORES_0, LOADS_1._replace(after_jobs=()), COMPUTES_0), RACES, id="the one between waits for nothing"
        ),
        pytest.param(
            (
                STORES_0,
                LOADS_1,
                Job(2, LOAD, NONE, (Pair(3, 2, 3),), FORGOTTEN, (LAUNCHED,)),
                COMPUTES_0._replace(after_jobs=(2,)),
            ),
            None,
            id="through the stream of the one between",
        ),
        pytest.param(
            (STORES_0._replace(after_step=7), COMPUTES_0._replace(after_jobs=())), None, id="the store waits for it"
        ),
    ],
)
def test_one_runs_after_the_other(operations: tuple[Job | Step, ...], says: str | None) -> None:
    assert race(*operations) == says


def test_every_worker_is_looked_at() -> None:
    machine = Machine(FENCING, TWO_WORKERS)
    state = machine.initial()._replace(
        jobs=(STORES_0._replace(progress=(COPIED, LAUNCHED)),),
        steps=(COMPUTES_0._replace(ran=(True, False), after_jobs=()),),
    )
    judge = fence_before_reuse.PROPERTY.on_state
    assert judge is not None
    assert judge(machine.setting, state) == RACES.replace("worker 0", "worker 1")
