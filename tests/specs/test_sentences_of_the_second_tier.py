"""The sentences that properties can say of the second host tier, and of what goes there and comes back."""

import pytest
from tests.seeds.below_host import AB, CASCADED, CASCADING, PROMOTING
from tests.specs.wrong import (
    FENCING,
    PINNING,
    Wrong,
    WrongStep,
    host_is,
    is_so,
    request_is,
    second_is,
)

from kvmodel import actions as act
from kvmodel.contents import UNWRITTEN
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import LAUNCHED, LIVE, NONE, STORE, Job, Pair
from kvspecs.liveness import every_full_block_is_stored_or_refused
from kvspecs.safety import (
    dropped_jobs_publish_nothing,
    failed_copies_are_never_published,
    fence_before_reuse,
    free_means_unowned,
    no_block_stored_twice_at_once,
    no_double_free,
    no_use_after_free,
    one_copy_per_key,
    owners_account_for_references,
    pinned_is_not_evicted,
    published_after_all_copied,
    reads_what_was_written,
    stale_completions_change_nothing,
    true_reset_serves_nothing_old,
)

RESET_DEVICE = act.Reset("evict", "preempt", "device")
RESET_HOST = act.Reset("evict", "keep", "host")
FORGOTTEN = (*CASCADING, "reset evict of the host tier", "launch")
"""Under fencing: a cascade that a reset forgot, and a store into the host block that it still reads."""

STATES = [
    Wrong(
        owners_account_for_references.PROPERTY,
        PINNING,
        AB,
        CASCADED,
        second_is(refs=(1,)),
        "second block 0 counts 1 references and has 0 owners (none)",
    ),
    Wrong(
        owners_account_for_references.PROPERTY,
        PINNING,
        AB,
        PROMOTING,
        lambda state: state._replace(
            jobs=(*state.jobs, state.jobs[0]._replace(id=4)),
            host=state.host._replace(refs=(2,)),
            second=state.second._replace(refs=(3,)),
        ),
        "second block 0 counts 3 references and has 2 owners (job 3 (LIVE), job 4 (LIVE))",
    ),
    Wrong(
        free_means_unowned.PROPERTY,
        PINNING,
        AB,
        CASCADED,
        second_is(free=()),
        "second block 0 counts 0 references and stands 0 times in the free queue",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        PINNING,
        AB,
        CASCADING,
        second_is(keys=(1,)),
        "second block 0 can be hit while job 1 still writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        PINNING,
        AB,
        CASCADING,
        second_is(refs=(0,)),
        "second block 0 is free while job 1 still writes it",
    ),
    Wrong(
        no_use_after_free.PROPERTY,
        FENCING,
        AB,
        PROMOTING,
        host_is(refs=(0,)),
        "host block 0 is free while job 3 still writes it",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        CASCADING,
        is_so(host_contents=((2,),)),
        "job 1 reads host block 0 on worker 0, expects CONTENT(a) and finds CONTENT(ab)",
    ),
    Wrong(
        reads_what_was_written.PROPERTY,
        PINNING,
        AB,
        PROMOTING,
        is_so(second_contents=((UNWRITTEN,),)),
        "job 3 reads second block 0 on worker 0, expects CONTENT(a) and finds UNWRITTEN",
    ),
    Wrong(
        published_after_all_copied.PROPERTY,
        PINNING,
        AB,
        CASCADED,
        is_so(second_contents=((2,),)),
        "second block 0 can be hit as 'a', and on worker 0 it holds CONTENT(ab)",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        CASCADING,
        second_is(keys=(1,)),
        "job 1 carries 'a', which the second has",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        CASCADING,
        lambda state: state._replace(jobs=(*state.jobs, state.jobs[0]._replace(id=2))),
        "two live jobs carry 'a' to the second",
    ),
    Wrong(
        no_block_stored_twice_at_once.PROPERTY,
        PINNING,
        AB,
        PROMOTING,
        lambda state: state._replace(jobs=(*state.jobs, state.jobs[0]._replace(id=4))),
        "two live jobs carry 'a' to the host",
    ),
    Wrong(
        one_copy_per_key.PROPERTY,
        PINNING,
        AB._replace(second_blocks=2),
        CASCADED,
        second_is(keys=(1, 1)),
        "'a' can be hit in two second blocks",
    ),
    Wrong(
        fence_before_reuse.PROPERTY,
        FENCING,
        AB,
        FORGOTTEN,
        lambda state: state._replace(jobs=(state.jobs[0], state.jobs[1]._replace(after_jobs=()))),
        "job 1 and job 2 race for host block 0 on worker 0",
    ),
]

STEPS = [
    WrongStep(
        no_double_free.PROPERTY,
        PINNING,
        AB,
        CASCADED,
        act.FreeTwice("second"),
        second_is(free=(0, 0)),
        "freeing what is free changed the second pool",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        FENCING,
        AB,
        (*CASCADING, "run w0 cascade", "reset evict of the host tier"),
        act.Report(0, 1),
        second_is(keys=(1,)),
        "a stale completion of job 1 changed what can be hit",
    ),
    WrongStep(
        stale_completions_change_nothing.PROPERTY,
        PINNING,
        AB,
        (*CASCADING, "run w0 cascade", "reset evict of the host tier"),
        act.Report(0, 1),
        second_is(refs=(1,)),
        "a stale completion of job 1 moved second block 0 from 1 to 1 references",
    ),
    WrongStep(
        dropped_jobs_publish_nothing.PROPERTY,
        PINNING,
        AB,
        (*CASCADING, "run w0 cascade"),
        act.Report(0, 1),
        second_is(keys=(2,)),
        "a completion published 'ab' in second block 0, which no live job carried there",
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        AB,
        (*CASCADING, "run w0 cascade, which fails"),
        act.Report(0, 1),
        second_is(keys=(1,)),
        "the copy of 'a' into second block 0 failed, and it can be hit there",
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        AB,
        (*PROMOTING, "run w0 promotion, which fails"),
        act.Report(0, 3),
        host_is(keys=(1,)),
        "the copy of 'a' into host block 0 failed, and it can be hit there",
    ),
    WrongStep(
        failed_copies_are_never_published.PROPERTY,
        PINNING,
        AB,
        (*PROMOTING, "run w0 promotion, which fails"),
        act.Report(0, 3),
        second_is(keys=(1,)),
        "'a' could not be promoted from second block 0, and can still be hit there",
    ),
    WrongStep(
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        AB,
        PROMOTING,
        act.Run(0, STREAMS.index("promotion")),
        second_is(keys=(0,)),
        "second block 0 lost its key 'a' while it had 1 references",
    ),
    WrongStep(  # the promotion that kept the block could not read it: nobody is to hit it again
        pinned_is_not_evicted.PROPERTY,
        PINNING,
        AB,
        (*PROMOTING, "run w0 promotion, which fails"),
        act.Report(0, 3),
        is_so(),
        None,
    ),
    WrongStep(
        true_reset_serves_nothing_old.PROPERTY,
        PINNING,
        AB,
        CASCADED,
        RESET_HOST,
        second_is(keys=(1,)),
        "the reset answered True, and second block 0 can still be hit as 'a'",
    ),
    WrongStep(  # below the host all stays, and may be hit
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        CASCADED,
        RESET_DEVICE,
        is_so(),
        None,
    ),
    WrongStep(  # it will publish on the host, which was not named
        true_reset_serves_nothing_old.PROPERTY,
        FENCING,
        AB,
        CASCADED,
        RESET_DEVICE,
        is_so(jobs=(Job(7, STORE, NONE, (Pair(0, 0, 1),), LIVE, (LAUNCHED,)),)),
        None,
    ),
    WrongStep(
        every_full_block_is_stored_or_refused.PASSED_OVER,
        PINNING,
        AB,
        (
            *(*PROMOTING, 'submit y "ab"', "admit y", "launch", "run w0 compute", "handle output"),
            "run w0 promotion, which fails",
        ),
        act.Report(0, 3),
        request_is(1, stored=1),
        "the promotion of 'a' failed, and request 1 will not offer it again",
    ),
]


@pytest.mark.parametrize("wrong", STATES, ids=[f"{row.of.name}: {row.says}" for row in STATES])
def test_of_states(wrong: Wrong) -> None:
    assert wrong.judged() == (None, wrong.says)


@pytest.mark.parametrize("wrong", STEPS, ids=[f"{row.of.name}: {row.says}" for row in STEPS])
def test_of_transitions(wrong: WrongStep) -> None:
    assert wrong.judged() == (None, wrong.says)
