"""Each sentence that a property can say of a transition, and what makes it say so: an effect that no sound rule has."""

import pytest
from tests.seeds.driving import state_after
from tests.specs.wrong import (
    AB,
    COMPUTED,
    FENCING,
    HANDLED,
    LOADING,
    PINNING,
    RELOAD,
    RESET,
    SLIDING,
    STORED,
    TWO_WORKERS,
    WrongStep,
    all_of,
    device_is,
    host_is,
    is_so,
    job_is,
    request_is,
)

from kvmodel import Scope
from kvmodel import actions as act
from kvmodel.request import DRAINING, Request
from kvmodel.transfer_job import COPIED, FORGOTTEN, LAUNCHED, LIVE, LOAD, LOST, REPORTED, STORE, Job, Pair
from kvspecs.liveness import every_full_block_is_stored_or_refused
from kvspecs.safety import (
    dropped_jobs_publish_nothing,
    failed_copies_are_never_published,
    ids_are_never_reused,
    no_double_free,
    pinned_is_not_evicted,
    refused_changes_nothing,
    stale_completions_change_nothing,
    workers_agree,
)

CLUMSY = AB._replace(double_frees=1, forgeries=1)
FAILING_LOAD = RELOAD._replace(partial_failures=1)
FIRST_FAILS = (*LOADING, "run w0 load, of which pair 0 fails")
SECOND_FAILS = (*LOADING, "run w0 load, of which pair 1 fails")
UNOWED = "a completion that no worker owed changed the job table"

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
    WrongStep(  # that a copy failed excuses a live job alone
        stale_completions_change_nothing.PROPERTY,
        PINNING,
        AB._replace(partial_failures=1),
        (*HANDLED, "run w0 store, of which pair 1 fails", "reset invalidate"),
        act.Report(0, 0),
        host_is(keys=(1, 0, 0)),
        "a stale completion of job 0 changed what can be hit",
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
    WrongStep(  # the window has passed block 0, and the growing request takes it itself
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        SLIDING,
        (*HANDLED, "run w0 store", "report w0 job 0"),
        act.Grow(0),
        is_so(),
        None,
    ),
    WrongStep(  # the same of block 1 one step later, when its table has a hole already
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        SLIDING._replace(decode=3),
        (*HANDLED, "run w0 store", "report w0 job 0", "grow x", "launch", "run w0 compute", "handle output"),
        act.Grow(0),
        is_so(),
        None,
    ),
    WrongStep(
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        SLIDING,
        (*HANDLED, "run w0 store", "report w0 job 0"),
        act.Grow(0),
        device_is(keys=(0, 0)),
        "device block 1 lost its key 'ab' while it had 1 references",
    ),
    WrongStep(  # the request leaves it, and a store still reads it
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        SLIDING._replace(device_blocks=3),
        HANDLED,
        act.Grow(0),
        device_is(keys=(0, 2, 0)),
        "device block 0 lost its key 'a' while it had 2 references",
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
        is_so(next_job=0),
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
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        AB._replace(partial_failures=1),
        (*HANDLED, "run w0 store, of which pair 1 fails"),
        act.Report(0, 0),
        host_is(keys=(1, 2, 0)),
        "the copy of 'ab' into host block 1 failed, and it can be hit there",
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        FENCING,
        FAILING_LOAD,
        FIRST_FAILS,
        act.Report(0, 2),
        host_is(keys=(1, 2, 3, 4)),
        "'a' could not be loaded from host block 0, and can still be hit there",
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        FAILING_LOAD,
        SECOND_FAILS,
        act.Report(0, 2),
        request_is(2, computed=2),
        "request 2 counts 2 blocks as loaded, and only 1 were",
    ),
    WrongStep(
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        FAILING_LOAD,
        SECOND_FAILS,
        act.Report(0, 2),
        host_is(keys=(0, 0, 3, 4)),
        "host block 0 lost its key 'a' while it had 1 references",
    ),
    WrongStep(  # one block could not be read, and loses its key; the next could
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        FAILING_LOAD,
        FIRST_FAILS,
        act.Report(0, 2),
        host_is(keys=(0, 0, 3, 4)),
        "host block 1 lost its key 'ab' while it had 1 references",
    ),
    WrongStep(
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING,
        AB._replace(failures=1),
        (*HANDLED, "run w0 store, which fails"),
        act.Report(0, 0),
        request_is(stored=2),
        "the store of 'a' failed, and request 0 will not offer it again",
    ),
    WrongStep(  # what the host has need not be offered again
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING,
        AB._replace(failures=1),
        (*HANDLED, "run w0 store, which fails"),
        act.Report(0, 0),
        all_of(request_is(stored=2), host_is(keys=(1, 2, 0))),
        None,
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        FAILING_LOAD,
        FIRST_FAILS,
        act.Report(0, 2),
        device_is(keys=(1, 0)),
        "the copy of 'a' into device block 0 failed, and it can be hit there",
    ),
    WrongStep(  # the other worker has not reported it: that is another property's concern
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        TWO_WORKERS._replace(partial_failures=1),
        (*COMPUTED, "run w0 store, of which pair 1 fails"),
        act.Report(0, 0),
        host_is(keys=(1, 2, 0)),
        None,
    ),
    WrongStep(  # what a request has computed is not what its stores brought over
        failed_copies_are_never_published.PROPERTY,
        FENCING,
        AB._replace(partial_failures=1),
        (*HANDLED, "run w0 store, of which pair 1 fails"),
        act.Report(0, 0),
        request_is(computed=5),
        None,
    ),
    WrongStep(
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING._replace(deadline="expire"),
        AB._replace(expiries=1),
        HANDLED,
        act.Expire(0),
        request_is(stored=2),
        "the store of 'a' failed, and request 0 will not offer it again",
    ),
    WrongStep(  # nobody counts on a store that a reset had given up, and the new one is on its way
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING._replace(deadline="expire"),
        AB._replace(device_blocks=4, host_blocks=4, expiries=1),
        (*HANDLED, "reset invalidate", "admit x", "launch"),
        act.Expire(0),
        request_is(stored=2),
        None,
    ),
    WrongStep(  # another request's store is on its way meanwhile, and has not failed
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING,
        Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab", "cd"), failures=1),
        (*HANDLED, 'submit y "cd"', "admit y", "launch", "run w0 store, which fails"),
        act.Report(0, 0),
        request_is(stored=1),
        "the store of 'a' failed, and request 0 will not offer it again",
    ),
]


@pytest.mark.parametrize("wrong", STEPS, ids=[f"{row.of.name}: {row.says or 'holds'}" for row in STEPS])
def test_of_transitions(wrong: WrongStep) -> None:
    assert wrong.judged() == (None, wrong.says)


def test_a_mark_that_came_before_changes_nothing() -> None:
    machine, before = state_after(PINNING, AB, *HANDLED)
    action = act.RepeatMark(0, STORE, "last")
    after = host_is(keys=(1, 0, 0))(before)
    stale, agreeing = stale_completions_change_nothing.PROPERTY.on_step, workers_agree.PROPERTY.on_step
    assert stale is not None
    assert agreeing is not None
    sentence = "a mark that came before changed what can be hit"
    assert stale(machine.setting, before, action, after) == sentence
    assert agreeing(machine.setting, before, action, before._replace(jobs=())) == UNOWED


def test_a_mark_that_passes_a_forgotten_store_completes_the_next_as_well() -> None:
    machine, before = state_after(FENCING, AB, *HANDLED, "run w0 store")
    of_before = before.jobs[0]._replace(id=0, view=FORGOTTEN)
    before = before._replace(jobs=(of_before, of_before._replace(id=1, view=LIVE)))
    judge = workers_agree.PROPERTY.on_step
    assert judge is not None
    mark = act.ReportMark(0, STORE, 1)
    assert judge(machine.setting, before, mark, before._replace(jobs=())) is None
    sentence = "job 1 was not completed although every worker has reported it"
    assert judge(machine.setting, before, mark, before._replace(jobs=before.jobs[1:])) == sentence


def test_what_a_mark_says_nothing_of_is_not_changed_by_it() -> None:
    """A report of one job is asked of that job alone: other properties look at the rest."""
    machine, before = state_after(PINNING, AB, *HANDLED, "run w0 store")
    other = before.jobs[0]._replace(id=1, progress=(LAUNCHED,))
    before = before._replace(jobs=(*before.jobs, other))
    after = before._replace(jobs=(other._replace(flushed=True),))
    judge = workers_agree.PROPERTY.on_step
    assert judge is not None
    sentence = "a mark of worker 0 changed job 1, of which it says nothing new"
    assert judge(machine.setting, before, act.ReportMark(0, STORE, 1), after) == sentence
    assert judge(machine.setting, before, act.Report(0, 0), after) is None


def test_a_mark_that_passes_stale_loads_frees_what_those_of_aborted_requests_have_held_until_then() -> None:
    """Made by hand: of three loads the first is forgotten, and of the others each request waits for its own to end."""
    machine, state = state_after(FENCING, RELOAD)
    loads = (
        Job(0, LOAD, 0, (Pair(2, 0, 3),), FORGOTTEN, (COPIED,)),
        Job(1, LOAD, 1, (Pair(0, 0, 1),), LIVE, (COPIED,)),
        Job(2, LOAD, 2, (Pair(1, 1, 2),), LIVE, (COPIED,)),
    )
    draining = [Request(phase=DRAINING, table=(number - 1,), jobs=(number,)) for number in (1, 2)]
    before = state._replace(requests=(state.requests[0], *draining), jobs=loads)
    before = device_is(refs=(1, 1))(host_is(refs=(1, 1, 0, 0))(before))
    judge = stale_completions_change_nothing.PROPERTY.on_step
    assert judge is not None
    action = act.ReportMark(0, LOAD, 2)
    after = before._replace(jobs=(), device=state.device, host=state.host)
    assert judge(machine.setting, before, action, after) is None
    sentence = "mark 2, which reports what is stale, moved device block 0 from 1 to 1 references"
    assert judge(machine.setting, before, action, device_is(refs=(1, 0))(after)) == sentence


def test_a_host_block_is_not_left_by_a_request_that_grows() -> None:
    """The device block of its number is."""
    machine, before = state_after(PINNING, SLIDING, *HANDLED, "run w0 store", "report w0 job 0")
    before = host_is(refs=(1, 0), keys=(1, 0))(before)
    after = host_is(refs=(1, 0), keys=(0, 0))(machine.step(before, act.Grow(0)))
    after = after._replace(device=before.device)
    judge = pinned_is_not_evicted.PROPERTY.on_step
    assert judge is not None
    sentence = "host block 0 lost its key 'a' while it had 1 references"
    assert judge(machine.setting, before, act.Grow(0), after) == sentence


def test_what_was_computed_before_a_load_is_not_counted_with_it() -> None:
    machine, before = state_after(PINNING, FAILING_LOAD, *SECOND_FAILS)
    action = act.Report(0, 2)
    after = machine.step(before, action)
    judge = failed_copies_are_never_published.PROPERTY.on_step
    assert judge is not None
    had_one, has_three = request_is(2, computed=1)(before), request_is(2, computed=3)(after)
    sentence = "request 2 counts 2 blocks as loaded, and only 1 were"
    assert judge(machine.setting, had_one, action, has_three) == sentence
    assert judge(machine.setting, had_one, action, request_is(2, computed=2)(after)) is None


@pytest.mark.parametrize(
    ("view", "progress", "left", "says"),
    [
        pytest.param(FORGOTTEN, LOST, 1, None, id="it was lost: an engine that waited for it drops the job now"),
        pytest.param(LIVE, LOST, 1, UNOWED, id="the job was live"),
        pytest.param(FORGOTTEN, COPIED, 1, UNOWED, id="it was not lost"),
        pytest.param(FORGOTTEN, LOST, 0, UNOWED, id="another job goes with it"),
    ],
)
def test_the_late_report_of_a_job_that_was_given_up(view: int, progress: int, left: int, says: str | None) -> None:
    """left: jobs that are there afterwards. The machine drops such a job before: only engines come here."""
    machine, state = state_after(PINNING, AB, *HANDLED)
    job = state.jobs[0]
    given_up = job._replace(view=view, progress=(progress,))
    before = state._replace(jobs=(given_up, job._replace(id=1)))
    judge = workers_agree.PROPERTY.on_step
    assert judge is not None
    after = before._replace(jobs=before.jobs[2 - left :])
    assert judge(machine.setting, before, act.DuplicateReport(0, 0), after) == says
