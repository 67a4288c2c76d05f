"""Each sentence that a property can say, and what makes it say so: a state or a transition that no sound rule leads to.

The states begin as reachable ones; then something in them is made wrong by hand. Block numbers in the sentences are
those of the machine's LRU queues, which begin 0, 1, 2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.seeds.driving import state_after

from kvmodel import Contract, Scope, State
from kvmodel import actions as act
from kvmodel.actions import Action
from kvmodel.request import DONE, WAITING, Pins
from kvmodel.transfer_job import ABANDONED, COPIED, FORGOTTEN, LIVE, REPORTED, STORE, Job
from kvspecs.liveness.work_remaining_keeps_the_engine_stepping import stands_still
from kvspecs.property import Property
from kvspecs.safety import (
    dropped_jobs_publish_nothing,
    false_reset_has_a_cause,
    false_reset_serves_nothing_old,
    fence_before_reuse,
    free_means_unowned,
    hits_are_prefix_closed,
    ids_are_never_reused,
    no_block_stored_twice_at_once,
    no_double_free,
    no_use_after_free,
    one_copy_per_key,
    owners_account_for_references,
    pinned_is_not_evicted,
    published_after_all_copied,
    reads_what_was_written,
    refused_changes_nothing,
    stale_completions_change_nothing,
    true_reset_serves_nothing_old,
    workers_agree,
)

PINNING, FENCING = Contract("pinning"), Contract("fencing")
AB = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("ab", "ab"), resets=3, duplicates=3, losses=1)
TWO_WORKERS = AB._replace(workers=2)
RELOAD = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=3)

LAUNCHED = ('submit x "ab"', "admit x", "launch")
COMPUTED = (*LAUNCHED, "run w0 compute")
HANDLED = (*COMPUTED, "handle output")
STORED = (*HANDLED, "run w0 store", "report w0 job 0")
Y_SERVED = (
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store"),
    *("report w0 job 1", "finish y"),
)
LOADING = (*STORED, "finish x", *Y_SERVED, 'submit z "ab"', "admit z", "launch")

Change = Callable[[State], State]


def job_is(**fields: Any) -> Change:
    """The oldest job is otherwise."""
    return lambda state: state._replace(jobs=(state.jobs[0]._replace(**fields), *state.jobs[1:]))


def request_is(number: int = 0, **fields: Any) -> Change:
    def changed(state: State) -> State:
        requests = list(state.requests)
        requests[number] = requests[number]._replace(**fields)
        return state._replace(requests=tuple(requests))

    return changed


def share_is(**fields: Any) -> Change:
    def changed(state: State) -> State:
        (step,) = state.steps
        (share,) = step.shares
        return state._replace(steps=(step._replace(shares=(share._replace(**fields),)),))

    return changed


def device_is(**fields: Any) -> Change:
    return lambda state: state._replace(device=state.device._replace(**fields))


def host_is(**fields: Any) -> Change:
    return lambda state: state._replace(host=state.host._replace(**fields))


def is_so(**fields: Any) -> Change:
    return lambda state: state._replace(**fields)


def all_of(*changes: Change) -> Change:
    def changed(state: State) -> State:
        for change in changes:
            state = change(state)
        return state

    return changed


class Wrong(NamedTuple):
    """After these commands, with that change: the property says this sentence (None: nothing, it holds)."""

    of: Property
    contract: Contract
    scope: Scope
    commands: tuple[str, ...]
    change: Change
    says: str | None


SECOND_STORE = Job(1, STORE, -1, (), LIVE, (REPORTED,))

STATES = [
    Wrong(
        owners_account_for_references.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        device_is(refs=(1, 2, 0)),
        "device block 0 counts 1 references and has 2 owners (request 0, job 0 (LIVE))",
    ),
    Wrong(
        owners_account_for_references.PROPERTY,
        FENCING,
        AB,
        LAUNCHED,
        host_is(refs=(1, 1, 1)),
        "host block 2 counts 1 references and has 0 owners (none)",
    ),
    Wrong(
        free_means_unowned.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        device_is(free=(2, 0)),
        "device block 0 counts 2 references and stands 1 times in the free queue",
    ),
    Wrong(
        free_means_unowned.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        host_is(free=(2, 2)),
        "host block 2 counts 0 references and stands 2 times in the free queue",
    ),
    Wrong(
        free_means_unowned.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        device_is(free=()),
        "device block 2 counts 0 references and stands 0 times in the free queue",
    ),
    Wrong(
        free_means_unowned.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        device_is(free=(2, 7)),
        "the free queue of the device pool holds blocks that do not exist",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        request_is(table=(2, 1)),
        "launched step 0 computes in blocks that request 0 does not hold",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        AB,
        LAUNCHED,
        device_is(keys=(0, 2, 0)),
        "device block 1 can be hit while launched step 0 writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        AB,
        LAUNCHED,
        device_is(refs=(0, 1, 0)),
        "device block 0 is free while launched step 0 writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        AB,
        LAUNCHED,
        all_of(share_is(left=True), request_is(table=()), device_is(refs=(1, 0, 0))),
        "device block 1 is free while launched step 0 writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        host_is(keys=(1, 0, 0)),
        "host block 0 can be hit while job 0 still writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        host_is(refs=(1, 0, 0)),
        "host block 1 is free while job 0 still writes it",
    ),
    Wrong(no_use_after_free.PROPERTY, PINNING, AB, (*HANDLED, "run w0 store"), host_is(refs=(0, 0, 0)), None),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        RELOAD,
        LOADING,
        request_is(2, phase=WAITING, jobs=()),
        "job 2 loads for request 2, which no longer waits for it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        RELOAD,
        LOADING,
        request_is(2, table=(1,)),
        "job 2 loads into blocks that request 2 does not hold",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        RELOAD,
        LOADING,
        all_of(job_is(view=FORGOTTEN), request_is(2, phase=WAITING, table=(), jobs=()), device_is(refs=(0, 0))),
        None,
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        share_is(start=1),
        "the compute of step 0 reads device block 0 on worker 0, expects CONTENT(a) and finds UNWRITTEN",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        is_so(device_contents=((2, 1, 0),)),
        "job 0 reads device block 0 on worker 0, expects CONTENT(a) and finds CONTENT(ab)",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        STORED,
        is_so(device_contents=((1, -2, 0),)),
        "request 0 reads device block 1 on worker 0, expects CONTENT(ab) and finds BEFORE_RESET(ab)",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        (*STORED, "reset invalidate, survivors kept"),
        is_so(device_contents=((-1, 2, 0),)),
        "request 0 reads device block 1 on worker 0, expects BEFORE_RESET(ab) and finds CONTENT(ab)",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        RELOAD,
        LOADING,
        is_so(host_contents=((1, 0, 3, 4),)),
        "job 2 reads host block 1 on worker 0, expects CONTENT(ab) and finds UNWRITTEN",
    ),
    Wrong(
        published_after_all_copied.PROPERTY,
        PINNING,
        TWO_WORKERS,
        (*COMPUTED, "run w0 store"),
        host_is(keys=(1, 0, 0)),
        "host block 0 can be hit as 'a', and on worker 1 it holds UNWRITTEN",
    ),
    Wrong(
        published_after_all_copied.PROPERTY,
        PINNING,
        TWO_WORKERS,
        COMPUTED,
        device_is(keys=(1, 0, 0)),
        "device block 0 can be hit as 'a', and on worker 1 it holds UNWRITTEN",
    ),
    Wrong(
        published_after_all_copied.PROPERTY, PINNING._replace(output_from="first"), TWO_WORKERS, HANDLED, is_so(), None
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        lambda state: state._replace(jobs=(*state.jobs, state.jobs[0]._replace(id=1))),
        "two live stores carry 'a'",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        host_is(keys=(0, 0, 2)),
        "job 0 stores 'ab', which the host has",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        all_of(job_is(view=ABANDONED), host_is(keys=(0, 0, 2))),
        None,
    ),
    Wrong(
        one_copy_per_key.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        device_is(keys=(1, 2, 1)),
        "'a' can be hit in two device blocks",
    ),
    Wrong(
        one_copy_per_key.PROPERTY, PINNING, AB, STORED, host_is(keys=(2, 2, 0)), "'ab' can be hit in two host blocks"
    ),
    Wrong(
        hits_are_prefix_closed.PROPERTY,
        PINNING,
        AB,
        (*STORED, 'submit y "ab"', "lookup y"),
        request_is(1, pins=Pins((1,), ())),
        "the lookup of request 1 keeps device block 1 for 'a', which is not in it",
    ),
    Wrong(
        hits_are_prefix_closed.PROPERTY,
        PINNING,
        AB,
        (*STORED, 'submit y "ab"', "lookup y"),
        request_is(1, pins=Pins((0,), (0,))),
        "the lookup of request 1 keeps host block 0 for 'ab', which is not in it",
    ),
    Wrong(
        hits_are_prefix_closed.PROPERTY,
        PINNING,
        AB,
        (*STORED, 'submit y "ab"', "lookup y"),
        request_is(1, pins=Pins((0, 1), (1,))),
        "the lookup of request 1 found more blocks than its prompt has",
    ),
    Wrong(
        fence_before_reuse.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        job_is(after_step=-1),
        "the compute of step 0 and job 0 race for device block 0 on worker 0",
    ),
    Wrong(
        fence_before_reuse.PROPERTY,
        FENCING,
        RELOAD,
        (*LOADING, "reset invalidate", "admit z", "launch"),
        lambda state: state._replace(steps=(state.steps[0]._replace(after_jobs=()),)),
        "the compute of step 0 and job 2 race for device block 0 on worker 0",
    ),
    Wrong(
        fence_before_reuse.PROPERTY, FENCING, RELOAD, (*LOADING, "reset invalidate", "admit z", "launch"), is_so(), None
    ),
]


@pytest.mark.parametrize("wrong", STATES, ids=[f"{row.of.name}: {row.says or 'holds'}" for row in STATES])
def test_of_states(wrong: Wrong) -> None:
    machine, state = state_after(wrong.contract, wrong.scope, *wrong.commands)
    judge = wrong.of.on_state
    assert judge is not None
    assert judge(machine.setting, state) is None
    assert judge(machine.setting, wrong.change(state)) == wrong.says


class WrongStep(NamedTuple):
    """After these commands an action is taken, and its effect is changed so: the property says this sentence."""

    of: Property
    contract: Contract
    scope: Scope
    commands: tuple[str, ...]
    action: Action
    change: Change
    says: str | None


RESET = act.Reset("invalidate", "preempt")
KEEP = act.Reset("invalidate", "keep")
CLUMSY = AB._replace(double_frees=1, forgeries=1)

STEPS = [
    WrongStep(
        no_double_free.PROPERTY,
        PINNING,
        CLUMSY,
        HANDLED,
        act.FreeTwice("device"),
        device_is(free=(2, 2)),
        "freeing what is free changed the device pool",
    ),
    WrongStep(
        no_double_free.PROPERTY,
        PINNING,
        CLUMSY,
        HANDLED,
        act.FreeTwice("host"),
        host_is(refs=(1, 1, -1)),
        "freeing what is free changed the host pool",
    ),
    WrongStep(
        refused_changes_nothing.PROPERTY,
        PINNING,
        CLUMSY,
        HANDLED,
        act.ForgeReport(0),
        is_so(jobs=()),
        "ForgeReport was refused and changed the state",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        FENCING,
        AB,
        (*HANDLED, "run w0 store", "reset invalidate"),
        act.Report(0, 0),
        host_is(keys=(1, 0, 0)),
        "a stale completion of job 0 changed what can be hit",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        FENCING,
        AB,
        (*HANDLED, "run w0 store", "reset invalidate", "admit x", "launch"),
        act.Report(0, 0),
        host_is(refs=(0, 0, 0)),
        "a stale completion of job 0 moved host block 1 from 1 to 0 references",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        PINNING,
        AB,
        STORED,
        act.DuplicateReport(0, 0),
        device_is(refs=(0, 1, 0)),
        "a stale completion of job 0 moved device block 0 from 1 to 0 references",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        PINNING,
        TWO_WORKERS,
        (*COMPUTED, "run w1 compute", "handle output", "run w0 store", "reset invalidate"),
        act.Report(0, 0),
        host_is(refs=(0, 0, 0)),
        "a stale completion of job 0 moved host block 0 from 1 to 0 references",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        PINNING,
        AB,
        (*HANDLED, "run w0 store", "reset invalidate"),
        act.Report(0, 0),
        host_is(refs=(1, 0, 0)),
        "a stale completion of job 0 moved host block 0 from 1 to 1 references",
    ),
    WrongStep(
        dropped_jobs_publish_nothing.PROPERTY,
        PINNING,
        AB,
        (*HANDLED, "run w0 store", "reset invalidate"),
        act.Report(0, 0),
        host_is(keys=(1, 0, 0)),
        "a completion published 'a' in host block 0, which no live job carried there",
    ),
    WrongStep(
        dropped_jobs_publish_nothing.PROPERTY,
        PINNING,
        AB,
        (*HANDLED, "run w0 store"),
        act.Report(0, 0),
        host_is(keys=(2, 1, 0)),
        "a completion published 'ab' in host block 0, which no live job carried there",
    ),
    WrongStep(
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        AB,
        (*HANDLED, 'submit y "ab"'),
        act.Lookup(1),
        device_is(keys=(0, 2, 0)),
        "device block 0 lost its key 'a' while it had 2 references",
    ),
    WrongStep(pinned_is_not_evicted.PROPERTY, PINNING, AB, HANDLED, RESET, is_so(), None),
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
    WrongStep(
        ids_are_never_reused.PROPERTY,
        PINNING,
        AB,
        HANDLED,
        RESET,
        is_so(next_job=0),
        "the next job id went back from 1 to 0",
    ),
    WrongStep(
        ids_are_never_reused.PROPERTY,
        PINNING,
        AB,
        STORED,
        RESET,
        is_so(jobs=(Job(0, STORE, -1, (), LIVE, (COPIED,)),)),
        "job id 0 was issued again",
    ),
    WrongStep(
        ids_are_never_reused.PROPERTY,
        PINNING,
        AB,
        ('submit x "ab"', "admit x"),
        act.Launch(),
        lambda state: state._replace(jobs=state.jobs * 2),
        "two jobs have one id",
    ),
    WrongStep(
        workers_agree.PROPERTY,
        PINNING,
        TWO_WORKERS,
        (*COMPUTED, "run w0 store"),
        act.Report(0, 0),
        is_so(jobs=()),
        "job 0 was completed before every worker had reported it",
    ),
    WrongStep(
        workers_agree.PROPERTY,
        PINNING,
        AB,
        (*HANDLED, "run w0 store"),
        act.Report(0, 0),
        is_so(jobs=(Job(0, STORE, -1, (), LIVE, (REPORTED,)),)),
        "job 0 was not completed although every worker has reported it",
    ),
    WrongStep(
        workers_agree.PROPERTY,
        PINNING,
        TWO_WORKERS,
        (*COMPUTED, "run w0 store", "report w0 job 0"),
        act.DuplicateReport(0, 0),
        job_is(progress=(REPORTED, REPORTED)),
        "a completion that no worker owed changed the job table",
    ),
]


@pytest.mark.parametrize("wrong", STEPS, ids=[f"{row.of.name}: {row.says or 'holds'}" for row in STEPS])
def test_of_transitions(wrong: WrongStep) -> None:
    machine, before = state_after(wrong.contract, wrong.scope, *wrong.commands)
    machine.check(before, wrong.action)
    after = machine.step(before, wrong.action)
    judge = wrong.of.on_step
    assert judge is not None
    assert not wrong.of.actions or type(wrong.action).__name__ in wrong.of.actions
    assert judge(machine.setting, before, wrong.action, after) is None
    assert judge(machine.setting, before, wrong.action, wrong.change(after)) == wrong.says


def test_a_true_reset_whose_survivor_computes_with_the_old_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the answer is wrong, not the effect."""
    machine, before = state_after(FENCING, AB, *HANDLED)
    after = machine.step(before, KEEP)
    monkeypatch.setattr("kvmodel.rules.reset_fencing.answer", lambda state, meaning: True)
    judge = true_reset_serves_nothing_old.PROPERTY.on_step
    assert judge is not None
    sentence = "the reset answered True, and request 0 still computes with the old weights' blocks"
    assert judge(machine.setting, before, KEEP, after) == sentence


def test_a_false_reset_without_a_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, before = state_after(PINNING, AB, *STORED)
    after = machine.step(before, RESET)
    monkeypatch.setattr("kvmodel.rules.reset_pinning.answer", lambda state: False)
    judge = false_reset_has_a_cause.PROPERTY.on_step
    assert judge is not None
    sentence = "the reset answered False, although no job is live or abandoned and no request holds a block"
    assert judge(machine.setting, before, RESET, after) == sentence


@pytest.mark.parametrize(
    ("commands", "change", "says"),
    [
        (('submit x "ab"',), is_so(), "request 0 is not done, and nothing more will happen"),
        (HANDLED, request_is(phase=DONE), "job 0 is not done, and nothing more will happen"),
        (
            COMPUTED,
            all_of(request_is(phase=DONE), is_so(jobs=())),
            "the output of step 0 is not handled, and nothing more will happen",
        ),
        ((*HANDLED, "run w0 store", "lose the report of w0 for job 0", "finish x"), is_so(), None),
        ((), is_so(), None),
    ],
)
def test_of_standing_still(commands: tuple[str, ...], change: Change, says: str | None) -> None:
    """Judged where nothing is offered but what clients and faults may do; a lost report excuses what waits for it."""
    machine, state = state_after(PINNING, AB, *commands)
    assert stands_still(machine.setting, change(state), frozenset()) == says
    assert stands_still(machine.setting, change(state), frozenset({"Launch"})) is None
