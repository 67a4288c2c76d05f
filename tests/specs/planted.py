"""Bugs planted into the machine's rules: each is a real bug of the field, or a near relative, as a few changed lines.

A plant changes functions where they are used, for the time of one test. `explore` must find it, under the name of one
property and by a shortest path, whose length is written down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kvmodel import Contract, Scope, State, policy
from kvmodel import actions as act
from kvmodel.actions import Action
from kvmodel.block_pool import HOLE, Pool, release
from kvmodel.departure import abandoned, forgotten, load_of, table_let_go
from kvmodel.fence import required_flush
from kvmodel.launched_step import awaited, shares_of
from kvmodel.machine import RULES, Rule
from kvmodel.owners import released_by_job
from kvmodel.request import ENDED, LOADING, RUNNING, WAITING_AFRESH, Request
from kvmodel.rules import launch, report
from kvmodel.setting import Setting
from kvmodel.state import job_with, with_job, with_request
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import ABANDONED, COPIED, LAUNCHED, LIVE, LOAD, NONE, REPORTED, STORE, Job

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Plant:
    """A planted bug.

    source  where the field had it; breaks: the property that catches it
    length  actions of the shortest path to it, the one that shows it included (count)
    """

    plant: Callable[[Patch], None]
    source: str
    contract: Contract
    scope: Scope
    breaks: str
    length: int

    @property
    def name(self) -> str:
        return self.plant.__name__


PLANTS: list[Plant] = []

PINNING, FENCING = Contract("pinning"), Contract("fencing")

S1 = Scope(device_blocks=2, host_blocks=1, workers=1, prompts=("ab",))
S2 = S1._replace(workers=2)
TINY = Scope(device_blocks=1, host_blocks=1, workers=1, prompts=("a",), aborts=False, preempts=False)
PAIR = TINY._replace(prompts=("a", "a"))
SWAP = TINY._replace(host_blocks=2, prompts=("a", "b", "a"))
LOADED = SWAP._replace(failures=1, resets=0)
DEEP = S1._replace(prompts=("a",), decode=1, stops=True)
OVERDUE = TINY._replace(expiries=1)
PINNING_UNTIL = Contract("pinning", deadline="expire")


def planted(
    source: str, contract: Contract, scope: Scope, broken: str, length: int
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def added(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        PLANTS.append(Plant(plant, source, contract, scope, broken, length))
        return plant

    return added


def changed(patch: Patch, kind: type[Action], after: Callable[[Setting, State, Any, State], State]) -> None:
    """The rule of one action does what it does, and then something more."""
    rule = RULES[kind]

    def apply(setting: Setting, state: State, action: Any) -> State:
        return after(setting, state, action, rule.apply(setting, state, action))

    patch.setitem(RULES, kind, Rule(rule.check, apply))


# Resets.


def _each_job(change: Callable[[State, Any], State]) -> Callable[[Contract, State, Tiers], State]:
    def jobs_reset(_: Contract, state: State, tiers: Tiers) -> State:
        for job in state.jobs:
            state = change(state, job)
        return state

    return jobs_reset


@planted("vLLM PR 39726, first draft", PINNING, S1, "owners-account-for-references", 4)
def reset_frees_the_blocks_of_running_copies(patch: Patch) -> None:
    """The references go, the abandoned job stays: its completion would release them a second time."""

    def let_go(state: State, job: Any) -> State:
        return abandoned(released_by_job(PINNING, state, job), job)

    patch.setattr("kvmodel.rules.reset_pinning.jobs_reset", _each_job(let_go))


@planted("vLLM PR 39726, first draft, with honest bookkeeping", PINNING, S1, "fence-before-reuse", 8)
def reset_forgets_running_copies_that_nothing_fences(patch: Patch) -> None:
    """Nobody counts the references any more, so no count is wrong: the blocks are reused under the copies."""
    patch.setattr(
        "kvmodel.rules.reset_pinning.jobs_reset", _each_job(lambda state, job: forgotten(PINNING, state, job))
    )
    patch.setattr("kvmodel.policy.still_flushed", lambda state: ())


@planted("vLLM PR 39726: `return True` too early", PINNING, S1, "true-reset-serves-nothing-old", 4)
def reset_answers_true_before_copies_are_drained(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.reset_pinning.is_drained", lambda state: True)


@planted("vLLM PR 39726: one of two maps forgotten in the idle test", PINNING, S1, "false-reset-has-a-cause", 1)
def reset_answers_false_on_an_idle_engine(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.reset_pinning.answer", lambda state, tiers: False)


@planted("vLLM PR 39726", PINNING, S1, "false-reset-serves-nothing-old", 4)
def reset_leaves_jobs_live(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.reset_pinning.jobs_reset", lambda contract, state, tiers: state)


@planted("vLLM PR 39726: event counters rewound", PINNING, S1, "ids-are-never-reused", 4)
def reset_rewinds_job_ids(patch: Patch) -> None:
    changed(patch, act.Reset, lambda setting, before, action, after: after._replace(next_job=0))


@planted("vLLM PR 48102", FENCING, S1, "work-remaining-keeps-the-engine-stepping", 8)
def reset_keeps_the_job_ids_of_requests(patch: Patch) -> None:
    """The one line of the fix left out: requests wait for completions that are ignored."""

    def kept(setting: Setting, before: State, action: Any, after: State) -> State:
        requests = list(after.requests)
        for number, request in enumerate(before.requests):
            if request.phase in (RUNNING, LOADING) and after.requests[number].phase == WAITING_AFRESH.phase:
                requests[number] = requests[number]._replace(jobs=request.jobs)
        return after._replace(requests=tuple(requests))

    changed(patch, act.Reset, kept)


@planted("vLLM PR 39726: the host's prefix cache is not reset", PINNING, S1, "true-reset-serves-nothing-old", 7)
def reset_leaves_the_host_cached(patch: Patch) -> None:
    changed(
        patch,
        act.Reset,
        lambda setting, before, action, after: after._replace(host=after.host._replace(keys=before.host.keys)),
    )


@planted(
    "DESIGN 3: survivors of `invalidate`", PINNING, TINY._replace(survivors=True), "false-reset-serves-nothing-old", 3
)
def reset_leaves_survivors_up_to_date(patch: Patch) -> None:
    def fresh(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(requests=tuple(request._replace(outdated=False) for request in after.requests))

    changed(patch, act.Reset, fresh)


@planted(
    "vLLM PR 42289: pins dropped without a release",
    PINNING,
    PAIR._replace(lookups=True),
    "owners-account-for-references",
    9,
)
def reset_drops_lookup_pins_without_releasing_them(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.reset.pins_let_go",
        lambda state, number, successor: state._replace(requests=with_request(state, number, successor)),
    )


@planted(
    "vLLM PR 48102: flush ids cleared with the jobs",
    FENCING,
    TINY._replace(prompts=("a", "b")),
    "fence-before-reuse",
    8,
)
def reset_does_not_fence_what_it_forgets(patch: Patch) -> None:
    """A launch flushes only jobs that the scheduler still knows."""
    patch.setattr(
        "kvmodel.policy.required_flush",
        lambda state, tables, stores: tuple(
            number
            for number in required_flush(state, tables, stores)
            if job_with(state, number).view == LIVE  # type: ignore[union-attr]
        ),
    )


# Completions.


@planted(
    "vLLM PR 39726: the hash registered on abandoned completion", PINNING, S1, "stale-completions-change-nothing", 7
)
def completion_of_an_abandoned_job_publishes(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.report.is_live", lambda job: True)


@planted(
    "vLLM PR 46289: a copy past its deadline is taken for done",
    PINNING,
    S1._replace(losses=1),
    "dropped-jobs-publish-nothing",
    6,
)
def a_lost_report_completes_the_job(patch: Patch) -> None:
    def done(setting: Setting, before: State, action: Any, after: State) -> State:
        job = job_with(after, action.job)
        return after if job is None else report.completed(setting, after, job)

    changed(patch, act.LoseReport, done)


@planted(
    "DESIGN 3, number 7: published under another key",
    PINNING,
    S1._replace(host_blocks=2),
    "dropped-jobs-publish-nothing",
    6,
)
def completion_publishes_another_key_than_it_carried(patch: Patch) -> None:
    real = report.publish
    patch.setattr("kvmodel.rules.report.publish", lambda pool, block, key: real(pool, block, 3 - key))


@planted("TensorRT-LLM and SGLang: reports counted, not told apart", PINNING, S2, "workers-agree", 6)
def any_workers_report_completes_the_job(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.report.is_complete", lambda job: True)


@planted("vLLM PR 25067: a repeated completion counts again", PINNING, S2._replace(duplicates=1), "workers-agree", 7)
def a_repeated_report_stands_for_the_other_worker(patch: Patch) -> None:
    def counted(setting: Setting, before: State, action: Any, after: State) -> State:
        job = job_with(after, action.job)
        if job is None:
            return after
        return after._replace(jobs=with_job(after.jobs, job._replace(progress=(REPORTED,) * len(job.progress))))

    changed(patch, act.DuplicateReport, counted)


@planted("vLLM issue 43226: double delete", PINNING, S1._replace(duplicates=1), "stale-completions-change-nothing", 8)
def a_repeated_report_publishes_again(patch: Patch) -> None:
    """After a reset the completion of the finished job comes once more, and registers what the reset had dropped."""

    def again(setting: Setting, before: State, action: Any, after: State) -> State:
        if job_with(before, action.job) is not None or after.host.refs[0] or after.host.keys[0]:
            return after
        return after._replace(host=after.host._replace(keys=(1, *after.host.keys[1:])))

    changed(patch, act.DuplicateReport, again)


MARKS = Contract("pinning", reports="marks")


@planted("DESIGN 3.5: a mark of that stream", MARKS, S1._replace(prompts=("a",), host_blocks=2), "workers-agree", 16)
def a_mark_covers_both_streams(patch: Patch) -> None:
    def either(state: State, worker: int, stream: int, mark: int) -> tuple[Job, ...]:
        return tuple(job for job in state.jobs if job.id <= mark and job.progress[worker] in (LAUNCHED, COPIED))

    patch.setattr("kvmodel.rules.report_mark.covered", either)


@planted("DESIGN 3.5: reports name workers", MARKS, S2._replace(preempts=False), "workers-agree", 6)
def the_mark_of_one_worker_counts_for_all(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.report.is_complete", lambda job: True)


@planted(
    "DESIGN 3.5: a mark covers all up to it",
    MARKS,
    TINY._replace(device_blocks=2, host_blocks=2),
    "stale-completions-change-nothing",
    12,
)
def a_mark_completes_only_the_job_that_it_names(patch: Patch) -> None:
    def named(setting: Setting, state: State, action: act.ReportMark) -> State:
        job = job_with(state, action.mark)
        return state if job is None else report.credited(setting, state, job, action.worker)

    patch.setitem(RULES, act.ReportMark, Rule(RULES[act.ReportMark].check, named))


@planted("DESIGN 3.5: a repeat is a no-op", MARKS, S1._replace(duplicates=1), "stale-completions-change-nothing", 9)
def a_repeated_mark_covers_what_still_runs(patch: Patch) -> None:
    def covers(setting: Setting, before: State, action: act.RepeatMark, after: State) -> State:
        for job in after.jobs:
            if job.direction == action.stream:
                after = report.credited(setting, after, job, action.worker)
        return after

    changed(patch, act.RepeatMark, covers)


@planted("DESIGN 3: a wake keyed by request", PINNING, SWAP, "fence-before-reuse", 20)
def a_wake_does_not_look_at_the_load(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.wake.is_loaded", lambda request: request.phase == LOADING)


# Failures.


@planted(
    "vLLM and Dynamo: failure taken for success",
    PINNING,
    S1._replace(failures=1),
    "failed-copies-are-never-published",
    6,
)
def a_failed_store_publishes(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.report.intact_pairs", lambda job: job.pairs)


@planted("vLLM PR 50321: what was not loaded is counted", FENCING, LOADED, "failed-copies-are-never-published", 20)
def a_failed_load_is_counted(patch: Patch) -> None:
    real = report.request_served

    patch.setattr("kvmodel.rules.report.request_served", lambda state, job, loaded: real(state, job, len(job.pairs)))


@planted("vLLM issue 49176: the verdict is kept", PINNING, LOADED, "failed-copies-are-never-published", 21)
def what_could_not_be_read_is_offered_again(patch: Patch) -> None:
    patch.setattr("kvmodel.failure._withdrawn", lambda state, unreadable: state)


@planted("DESIGN 3: the cursor stays", PINNING, S1._replace(failures=1), "every-full-block-is-stored-or-refused", 6)
def a_failed_store_is_not_offered_again(patch: Patch) -> None:
    patch.setattr("kvmodel.failure._offered_again", lambda setting, state, keys: state)


@planted("vLLM, B45: sharers of a block that is still loaded", PINNING, LOADED, "no-use-after-free", 19)
def a_load_publishes_when_it_is_launched(patch: Patch) -> None:
    """This is what would let a request share a block that a load then fails to fill."""

    def early(setting: Setting, before: State, action: Any, after: State) -> State:
        device = after.device
        for job in after.jobs:
            if job.direction == LOAD and job.view == LIVE:
                for pair in job.pairs:
                    device = report.publish(device, pair.destination, pair.key)
        return after._replace(device=device)

    changed(patch, act.Launch, early)


# Deadlines.


@planted("vLLM PR 46019: cleaned up as success", PINNING_UNTIL, OVERDUE, "dropped-jobs-publish-nothing", 4)
def an_expired_store_is_published(patch: Patch) -> None:
    def published(setting: Setting, before: State, action: Any, after: State) -> State:
        job = job_with(before, action.job)
        host = after.host
        for pair in job.pairs if job is not None and job.direction == STORE else ():
            host = report.publish(host, pair.destination, pair.key)
        return after._replace(host=host)

    changed(patch, act.Expire, published)


@planted("vLLM PR 46289: pins released while the copy runs", PINNING_UNTIL, OVERDUE, "fence-before-reuse", 9)
def an_expired_copy_is_not_fenced(patch: Patch) -> None:
    patch.setattr("kvmodel.policy.still_flushed", lambda state: ())


@planted("DESIGN 3: expired, and abandoned again", PINNING_UNTIL, OVERDUE, "owners-account-for-references", 5)
def a_reset_abandons_what_has_expired(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.reset_pinning.jobs_reset",
        lambda contract, state, tiers: state._replace(jobs=tuple(job._replace(view=ABANDONED) for job in state.jobs)),
    )


@planted(
    "DESIGN 3: nobody looks at the clock",
    PINNING_UNTIL,
    OVERDUE._replace(losses=1, expiries=0),
    "work-remaining-keeps-the-engine-stepping",
    8,
)
def nothing_ever_expires(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.expire.is_outstanding", lambda job: False)


# Ordering.


@planted("vLLM PR 46278", PINNING, S1, "reads-what-was-written", 3)
def a_store_does_not_wait_for_the_compute(patch: Patch) -> None:
    def unordered(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(
            jobs=tuple(job._replace(after_step=NONE) if job.direction == STORE else job for job in after.jobs)
        )

    changed(patch, act.Launch, unordered)


@planted("vLLM issue 47282", Contract("pinning", "lazy", "first"), SWAP._replace(workers=2), "fence-before-reuse", 21)
def a_load_does_not_wait_for_the_last_reader(patch: Patch) -> None:
    def unordered(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(
            jobs=tuple(job._replace(after_step=NONE) if job.direction == LOAD else job for job in after.jobs)
        )

    changed(patch, act.Launch, unordered)


@planted("vLLM PR 29870", FENCING, TINY._replace(prompts=("a", "b")), "fence-before-reuse", 8)
def reused_blocks_are_not_fenced(patch: Patch) -> None:
    patch.setattr("kvmodel.policy.required_flush", lambda state, tables, stores: ())


@planted("vLLM PR 41956: waits of the compute stream alone", FENCING, SWAP, "fence-before-reuse", 17)
def a_copy_does_not_wait_for_the_flush(patch: Patch) -> None:
    def unordered(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(jobs=tuple(job._replace(after_jobs=()) for job in after.jobs))

    changed(patch, act.Launch, unordered)


# References.


@planted(
    "vLLM PR 42289: a hit is found and not pinned",
    PINNING,
    PAIR._replace(lookups=True),
    "owners-account-for-references",
    8,
)
def a_lookup_does_not_pin(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.lookup.touch", lambda pool, blocks: pool)


@planted(
    "vLLM issue 39702: the second lookup pins again",
    PINNING,
    PAIR._replace(lookups=True),
    "owners-account-for-references",
    9,
)
def a_repeated_lookup_pins_twice(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.lookup.pins_let_go",
        lambda state, number, successor: state._replace(requests=with_request(state, number, successor)),
    )


@planted(
    "vLLM PR 42289: pins kept by a request that ended",
    PINNING,
    PAIR._replace(lookups=True, aborts=True, resets=0),
    "everything-drains",
    9,
)
def an_aborted_request_keeps_its_lookup_pins(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.abort.pins_let_go",
        lambda state, number, successor: state._replace(
            requests=with_request(state, number, ENDED._replace(pins=state.requests[number].pins))
        ),
    )


@planted("vLLM PR 45357", PINNING, S1, "no-use-after-free", 4)
def blocks_of_a_launched_step_are_released(patch: Patch) -> None:
    patch.setattr("kvmodel.departure.is_in_launched_step", lambda steps, number: False)


@planted(
    "vLLM PR 45357, a fence that is off by one step",
    PINNING._replace(depth=2),
    DEEP,
    "owners-account-for-references",
    6,
)
def only_the_oldest_step_keeps_the_blocks_of_a_request_that_left(patch: Patch) -> None:
    right = shares_of
    patch.setattr("kvmodel.departure.shares_of", lambda steps, number: right(steps, number)[:1])


@planted("vLLM PR 45357: two steps, one reference", PINNING._replace(depth=2), DEEP, "owners-account-for-references", 6)
def an_older_step_has_no_references_of_its_own(patch: Patch) -> None:
    patch.setattr("kvmodel.departure.touch", lambda pool, blocks: pool)


@planted("vLLM PR 45357, at a stop token", FENCING._replace(depth=2), DEEP, "no-use-after-free", 8)
def a_stopped_request_frees_what_the_next_step_writes(patch: Patch) -> None:
    def let_go(state: State, number: int, successor: Request) -> State:
        blocks = state.requests[number].table
        return state._replace(requests=with_request(state, number, successor), device=release(state.device, blocks))

    patch.setattr("kvmodel.rules.stop.table_let_go", let_go)


@planted("outputs out of order", FENCING._replace(depth=2), DEEP, "no-use-after-free", 9)
def outputs_are_handled_youngest_first(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.awaited", lambda steps: awaited(steps[::-1]))


@planted("vLLM PR 32255, SGLang PR 35049", FENCING, SWAP._replace(aborts=True), "no-use-after-free", 12)
def an_aborted_load_frees_its_destination(patch: Patch) -> None:
    def left(contract: Contract, state: State, number: int, successor: Request) -> State:
        job = load_of(state, number)
        return table_let_go(state if job is None else abandoned(state, job), number, successor)

    patch.setattr("kvmodel.rules.abort.loading_left", left)


@planted("vLLM issue 42571", PINNING, S1, "no-double-free", 6)
def a_finished_request_releases_its_table_twice(patch: Patch) -> None:
    def twice(state: State, number: int, successor: Request) -> State:
        table = state.requests[number].table
        state = table_let_go(state, number, state.requests[number])
        return table_let_go(state, number, successor) if table else state

    patch.setattr("kvmodel.rules.finish.table_let_go", twice)


@planted(
    "vLLM issue 42571: a free block is freed and queued again",
    PINNING,
    S1._replace(double_frees=1),
    "no-double-free",
    1,
)
def a_double_free_is_accepted(patch: Patch) -> None:
    def accepted(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(device=after.device._replace(free=(*after.device.free, after.device.free[0])))

    changed(patch, act.FreeTwice, accepted)


@planted("DESIGN 3: a refusal by documented exception", PINNING, S1._replace(forgeries=1), "refused-changes-nothing", 1)
def a_forged_report_leaves_a_trace(patch: Patch) -> None:
    changed(patch, act.ForgeReport, lambda setting, before, action, after: after._replace(next_job=after.next_job + 1))


@planted("TensorRT-LLM PR 12834", PINNING, PAIR, "free-means-unowned", 10)
def a_hit_stays_in_the_free_queue(patch: Patch) -> None:
    def counted_only(pool: Pool, blocks: Any) -> Pool:
        refs = list(pool.refs)
        for block in blocks:
            refs[block] += 1
        return pool._replace(refs=tuple(refs))

    patch.setattr("kvmodel.rules.admit.touch", counted_only)


@planted(
    "vLLM issue 39702: eviction does not look at references",
    PINNING,
    SWAP._replace(host_blocks=1, lookups=True),
    "pinned-is-not-evicted",
    15,
)
def a_store_evicts_what_a_lookup_has_pinned(patch: Patch) -> None:
    def stolen(pool: Pool, block: int | None = None) -> tuple[int, Pool]:
        taken = block if block is not None else pool.free[0] if pool.free else 0
        refs, keys = list(pool.refs), list(pool.keys)
        refs[taken], keys[taken] = 1, 0
        return taken, Pool(tuple(refs), tuple(keys), tuple(other for other in pool.free if other != taken))

    patch.setattr("kvmodel.policy.is_full", lambda pool: False)
    patch.setattr("kvmodel.policy.take", stolen)
    patch.setattr("kvmodel.rules.launch.take", stolen)


# What is stored and found.


@planted("vLLM PR 41289", PINNING, S1._replace(host_blocks=2, prompts=("a",)), "no-block-stored-twice-at-once", 8)
def the_set_of_blocks_on_their_way_is_local_to_a_step(patch: Patch) -> None:
    patch.setattr("kvmodel.policy.is_being_stored", lambda state, key: False)


@planted("DESIGN 3: publication is publish-if-absent", PINNING, PAIR._replace(device_blocks=2), "one-copy-per-key", 7)
def a_key_is_published_in_a_second_block(patch: Patch) -> None:
    def publish(pool: Pool, block: int, key: int) -> Pool:
        return pool._replace(keys=(*pool.keys[:block], key, *pool.keys[block + 1 :]))

    patch.setattr("kvmodel.rules.handle_output.publish", publish)


@planted("DESIGN 3: outdated output", PINNING, TINY._replace(survivors=True), "published-after-all-copied", 6)
def output_from_before_a_reset_is_published(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.is_outdated", lambda share: False)


@planted("DESIGN 3: outdated survivors", PINNING, TINY._replace(survivors=True), "reads-what-was-written", 5)
def a_survivor_of_invalidate_is_stored(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.policy.offers_blocks",
        lambda request: request.phase == RUNNING and request.stored < len(request.table),
    )


@planted(
    "a prefix cache that is searched block by block",
    PINNING,
    S1._replace(prompts=("ab", "cd"), lookups=True),
    "hits-are-prefix-closed",
    16,
)
def a_lookup_skips_what_is_missing(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.policy.longest_hit",
        lambda pool, keys: tuple(pool.keys.index(key) for key in keys if key in pool.keys),
    )


# Progress.


@planted("vLLM PR 41180: an idle engine is not polled", PINNING, S1._replace(resets=0), "reset-converges", 0)
def reset_is_true_only_while_somebody_is_served(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.reset_pinning.answer",
        lambda state, tiers: any(r.phase not in (0, ENDED.phase) for r in state.requests),
    )


@planted("vLLM issue 27074: nothing is scheduled any more", PINNING, S1, "work-remaining-keeps-the-engine-stepping", 6)
def the_output_of_a_step_is_never_handled(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.is_computed", lambda setting, step: False)


@planted(
    "vLLM PR 49675",
    PINNING,
    TINY._replace(prompts=("a", "b"), decode=1, device_blocks=3),
    "every-request-can-finish",
    10,
)
def the_preempted_request_is_admitted_before_the_other_grows(patch: Patch) -> None:
    """Found by explore when the machine was young: two requests take turns in undoing each other's work."""
    patch.setattr("kvmodel.policy.is_outranked", lambda setting, state: False)


HALVES = Scope(2, 1, 1, ("ab", "cd"), resets=0, aborts=False, preempts=False)
PARTIAL = PINNING._replace(admission="partial")


@planted("vLLM issues 45387, 45388", PARTIAL, HALVES, "work-remaining-keeps-the-engine-stepping", 12)
def two_requests_hold_a_part_each_and_neither_gives_way(patch: Patch) -> None:
    """The circular wait of partial admission, without the rule that ends it: nothing can happen any more."""
    patch.setattr("kvmodel.policy.pressure_victim", lambda setting, state: None)


@planted("vLLM issues 45387, 45388", PARTIAL, HALVES, "every-request-can-finish", 13)
def the_one_that_gave_way_is_admitted_in_part_again(patch: Patch) -> None:
    """The other half of that rule: the block that was given up must go to the one for whom it was."""
    patch.setattr("kvmodel.policy.is_outranked", lambda setting, state: False)


WINDOW = Scope(3, 1, 1, ("ab",), decode=2, window=1, resets=0, aborts=False, preempts=False)


@planted("vLLM issue 42761", FENCING, WINDOW, "reads-what-was-written", 14)
def a_store_that_was_put_off_names_what_the_window_has_left(patch: Patch) -> None:
    """The ids were noted when the blocks were computed: the block belongs to another position by now."""
    right = policy.eager_stores

    def noted(setting: Setting, state: State) -> Any:
        request = state.requests[0]
        table = tuple(position if block == HOLE else block for position, block in enumerate(request.table))
        return right(setting, state._replace(requests=(request._replace(table=table),)))

    patch.setattr("kvmodel.policy.eager_stores", noted)


@planted(
    "vLLM PR 42903",
    PINNING,
    Scope(2, 2, 1, ("aa",), resets=0, aborts=False, repeats=True),
    "owners-account-for-references",
    8,
)
def what_stands_twice_in_a_table_is_released_once(patch: Patch) -> None:
    """The same block at two positions was collapsed, so that it should not be queued twice."""
    patch.setattr("kvmodel.departure.release", lambda pool, blocks: release(pool, tuple(dict.fromkeys(blocks))))


@planted(
    "DESIGN 3, number 10: a store that found no room is retried",
    PINNING,
    S1,
    "every-full-block-is-stored-or-refused",
    7,
)
def a_launch_is_never_made_for_stores_alone(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.launch.has_work",
        lambda setting, state: (
            launch.has_queued_load(state)
            or any(launch.wants_compute(state, number) for number in range(len(state.requests)))
        ),
    )


@planted(
    "DESIGN 3: a preempted load under fencing drains", FENCING, SWAP._replace(preempts=True), "no-use-after-free", 11
)
def a_preempted_load_frees_its_destination(patch: Patch) -> None:
    def left(contract: Contract, state: State, number: int, successor: Request) -> State:
        job = load_of(state, number)
        return table_let_go(state if job is None else abandoned(state, job), number, successor)

    patch.setattr("kvmodel.rules.preempt.loading_left", left)


@planted(
    "vLLM PR 45628: output for a request that is gone",
    PINNING,
    TINY._replace(preempts=True),
    "owners-account-for-references",
    6,
)
def the_output_of_a_request_that_left_is_handled(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.has_left", lambda share: False)


@planted(
    "DESIGN 3: a lazy store pins its sources",
    PINNING._replace(store_mode="lazy"),
    TINY,
    "owners-account-for-references",
    7,
)
def a_lazy_store_does_not_pin_its_sources(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.launch.touch", lambda pool, blocks: pool)


@planted("vLLM PR 46972: the cursor runs ahead", PINNING, S1, "every-full-block-is-stored-or-refused", 3)
def the_cursor_passes_over_what_found_no_room(patch: Patch) -> None:
    """The host has one block: `ab` finds none, and would never be offered again."""

    def ahead(setting: Setting, before: State, action: Any, after: State) -> State:
        requests = tuple(request._replace(stored=len(request.table)) for request in after.requests)
        return after._replace(requests=requests)

    changed(patch, act.Launch, ahead)
