"""Each sentence that a property can say of a state, and what makes it say so: a state that no sound rule leads to.

Block numbers in the sentences are those of the machine's LRU queues, which begin 0, 1, 2.
"""

import pytest
from tests.seeds.driving import state_after
from tests.specs.wrong import (
    AB,
    COMPUTED,
    FENCING,
    HANDLED,
    LAUNCHED,
    LOADING,
    PINNING,
    RELOAD,
    SLIDING,
    STORED,
    TWO_WORKERS,
    Change,
    Wrong,
    all_of,
    device_is,
    host_is,
    is_so,
    job_is,
    request_is,
    share_is,
)

from kvmodel.request import DONE, RUNNING, WAITING, Pins
from kvmodel.transfer_job import ABANDONED, FORGOTTEN, LIVE, NONE, QUEUED, REPORTED, STORE, Job
from kvspecs.liveness.work_remaining_keeps_the_engine_stepping import stands_still
from kvspecs.safety import (
    fence_before_reuse,
    free_means_unowned,
    hits_are_prefix_closed,
    no_block_stored_twice_at_once,
    no_use_after_free,
    one_copy_per_key,
    owners_account_for_references,
    published_after_all_copied,
    reads_what_was_written,
)

STORED_BY_BOTH = (
    *(*COMPUTED, "run w1 compute", "handle output", "run w0 store", "run w1 store"),
    *("report w0 job 0", "report w1 job 0"),
)
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
        request_is(2, phase=RUNNING),
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
    Wrong(  # request 0 is not there yet
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        ('submit y "ab"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
        is_so(device_contents=((1, -2, 0),)),
        "request 1 reads device block 1 on worker 0, expects CONTENT(ab) and finds BEFORE_RESET(ab)",
    ),
    Wrong(  # what does not run reads nothing
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        STORED,
        all_of(request_is(phase=WAITING), is_so(device_contents=((1, -2, 0),))),
        None,
    ),
    Wrong(  # the window has left block 0 behind, and the request still reads block 1
        reads_what_was_written.PROPERTY,
        PINNING,
        SLIDING,
        (*STORED, "grow x"),
        is_so(device_contents=((1, -2, 0),)),
        "request 0 reads device block 1 on worker 0, expects CONTENT(ab) and finds BEFORE_RESET(ab)",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        SLIDING,
        (*STORED, "grow x", "launch"),
        is_so(device_contents=((1, -2, 0),)),
        "the compute of step 0 reads device block 1 on worker 0, expects CONTENT(ab) and finds BEFORE_RESET(ab)",
    ),
    Wrong(  # nothing is read on a dead worker
        reads_what_was_written.PROPERTY,
        PINNING,
        TWO_WORKERS,
        STORED_BY_BOTH,
        is_so(dead=(True, False), device_contents=((1, -2, 0), (1, 2, 0))),
        None,
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        TWO_WORKERS,
        STORED_BY_BOTH,
        is_so(dead=(True, False), device_contents=((1, 2, 0), (1, -2, 0))),
        "request 0 reads device block 1 on worker 1, expects CONTENT(ab) and finds BEFORE_RESET(ab)",
    ),
    Wrong(  # block 0 has no key
        published_after_all_copied.PROPERTY,
        PINNING,
        TWO_WORKERS,
        COMPUTED,
        device_is(keys=(0, 2, 0)),
        "device block 1 can be hit as 'ab', and on worker 1 it holds UNWRITTEN",
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
    Wrong(  # what is abandoned comes first, and counts for nothing
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        lambda state: state._replace(
            jobs=tuple(
                state.jobs[0]._replace(id=number, view=view) for number, view in enumerate((ABANDONED, LIVE, LIVE))
            )
        ),
        "two live jobs carry 'a' to the host",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        lambda state: state._replace(jobs=(*state.jobs, state.jobs[0]._replace(id=1))),
        "two live jobs carry 'a' to the host",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        LAUNCHED,
        host_is(keys=(0, 0, 2)),
        "job 0 carries 'ab', which the host has",
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
        device_is(keys=(2, 1, 1)),
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
    assert wrong.judged() == (None, wrong.says)


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


def test_a_request_may_stand_still_that_waits_for_a_lost_report() -> None:
    machine, state = state_after(FENCING, AB, *HANDLED, "run w0 store", "lose the report of w0 for job 0", "preempt x")
    assert stands_still(machine.setting, state, frozenset()) is None


def test_a_job_may_stand_still_that_is_queued_for_a_dead_worker() -> None:
    machine, state = state_after(PINNING, AB)
    queued = Job(0, STORE, NONE, (), LIVE, (QUEUED,))
    assert stands_still(machine.setting, state._replace(jobs=(queued,), dead=(True,)), frozenset()) is None
    sentence = "job 0 is not done, and nothing more will happen"
    assert stands_still(machine.setting, state._replace(jobs=(queued,)), frozenset()) == sentence
