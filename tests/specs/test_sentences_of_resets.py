"""Each sentence that a property can say of a reset, of its effect or of its answer, and what makes it say so."""

import pytest
from tests.seeds.driving import state_after
from tests.specs.wrong import (
    AB,
    FENCING,
    HANDLED,
    PINNING,
    RESET,
    STORED,
    WrongStep,
    device_is,
    host_is,
    is_so,
    job_is,
    request_is,
)

from kvmodel import Machine, State
from kvmodel import actions as act
from kvmodel.request import Pins
from kvmodel.rules.reset import answers_true
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import CASCADE, COPIED, FORGOTTEN, LIVE, Job
from kvspecs.safety import (
    false_reset_has_a_cause,
    false_reset_serves_nothing_old,
    true_reset_serves_nothing_old,
)

KEEP = act.Reset("invalidate", "keep")

STEPS = [
    WrongStep(
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        STORED,
        RESET,
        host_is(keys=(1, 2, 0)),
        "the reset answered True, and host block 0 can still be hit as 'a'",
    ),
    WrongStep(
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        STORED,
        RESET,
        device_is(keys=(0, 2, 0)),
        "the reset answered True, and device block 1 can still be hit as 'ab'",
    ),
    WrongStep(
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        (*STORED, 'submit y "ab"', "lookup y"),
        RESET,
        request_is(1, pins=Pins((0, 1), ())),
        "the reset answered True, and the lookup of request 1 still pins what it found",
    ),
    WrongStep(
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        HANDLED,
        RESET,
        job_is(view=LIVE),
        "the reset answered True, and job 0 can still publish",
    ),
    WrongStep(false_reset_has_a_cause.PROPERTY, PINNING, AB, HANDLED, RESET, is_so(), None),
    WrongStep(
        false_reset_serves_nothing_old.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        RESET,
        device_is(keys=(1, 0, 0)),
        "the reset answered False, and device block 0 can still be hit as 'a'",
    ),
    WrongStep(
        false_reset_serves_nothing_old.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        RESET,
        job_is(view=LIVE),
        "the reset answered False, and job 0 can still publish",
    ),
    WrongStep(
        false_reset_serves_nothing_old.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        KEEP,
        request_is(outdated=False),
        "the reset answered False, and request 0 may still publish what the old weights computed",
    ),
]


@pytest.mark.parametrize("wrong", STEPS, ids=[f"{row.of.name}: {row.says or 'holds'}" for row in STEPS])
def test_of_resets(wrong: WrongStep) -> None:
    assert wrong.judged() == (None, wrong.says)


def test_a_true_reset_whose_survivor_computes_with_the_old_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the answer is wrong, not the effect."""
    machine, before = state_after(FENCING, AB, *HANDLED)
    after = machine.step(before, KEEP)
    monkeypatch.setattr("kvmodel.rules.reset_fencing.answer", lambda state, meaning: True)
    judge = true_reset_serves_nothing_old.PROPERTY.on_step
    assert judge is not None
    sentence = "the reset answered True, and request 0 still computes with the old weights' blocks"
    assert judge(machine.setting, before, KEEP, after) == sentence


def said_of_the_answer_false(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, before: State, reset: act.Reset, after: State
) -> str | None:
    """What is said of the cause, were this reset answered False."""
    monkeypatch.setattr("kvmodel.rules.reset_pinning.answer", lambda state, tiers: False)
    judge = false_reset_has_a_cause.PROPERTY.on_step
    assert judge is not None
    return judge(machine.setting, before, reset, after)


WITHOUT_A_CAUSE = "the reset answered False, although no job is live or abandoned there and no request holds a block"


def test_a_false_reset_without_a_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, before = state_after(PINNING, AB, *STORED)
    after = machine.step(before, RESET)
    assert said_of_the_answer_false(monkeypatch, machine, before, RESET, after) == WITHOUT_A_CAUSE


def test_a_false_reset_for_a_job_that_nobody_counts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds blocks, and is forgotten: no cause."""
    machine, before = state_after(PINNING, AB, *HANDLED)
    after = job_is(view=FORGOTTEN)(machine.step(before, RESET))
    assert said_of_the_answer_false(monkeypatch, machine, before, RESET, after) == WITHOUT_A_CAUSE


def test_a_store_is_a_cause_for_the_tier_that_it_reads() -> None:
    machine, before = state_after(PINNING, AB, *HANDLED)
    of_the_device = act.Reset("evict", "preempt", "device")
    after = machine.step(before, of_the_device)
    judge = false_reset_has_a_cause.PROPERTY.on_step
    assert judge is not None
    assert [job.view for job in after.jobs] == [LIVE]
    assert judge(machine.setting, before, of_the_device, after) is None


@pytest.mark.parametrize(
    ("tiers", "request_runs", "job", "has_a_cause"),
    [
        pytest.param("host", True, None, False, id="a survivor holds device blocks alone"),
        pytest.param("device", True, None, True, id="a survivor holds device blocks"),
        pytest.param("device", False, CASCADE, False, id="a cascade holds none of the device"),
        pytest.param("host", False, CASCADE, True, id="a cascade holds a host block"),
    ],
)
def test_a_cause_is_one_for_the_tiers_that_were_named(
    monkeypatch: pytest.MonkeyPatch, tiers: Tiers, request_runs: bool, job: int | None, has_a_cause: bool
) -> None:
    machine, state = state_after(PINNING, AB, *(('submit x "ab"', "admit x") if request_runs else ()))
    jobs = () if job is None else (Job(0, job, -1, (), LIVE, (COPIED,)),)
    reset = act.Reset("evict", "keep", tiers)
    found = said_of_the_answer_false(monkeypatch, machine, state, reset, state._replace(jobs=jobs))
    assert found == (None if has_a_cause else WITHOUT_A_CAUSE)


@pytest.mark.parametrize("commands", [STORED, HANDLED], ids=["its key is there", "it is on its way"])
def test_what_is_stored_outlives_a_reset_of_the_device_alone(commands: tuple[str, ...]) -> None:
    machine, before = state_after(PINNING, AB, *commands)
    of_the_device = act.Reset("evict", "keep", "device")
    after = machine.step(before, of_the_device)
    judge = false_reset_serves_nothing_old.PROPERTY.on_step
    assert judge is not None
    assert not answers_true(machine.setting, after, of_the_device)
    assert judge(machine.setting, before, of_the_device, after) is None
