"""Resets."""

from collections.abc import Callable
from typing import Any

from tests.specs.planted.plant import (
    FENCING,
    PAIR,
    PINNING,
    S1,
    TINY,
    Patch,
    changed,
    planted,
)

from kvmodel import Contract, State
from kvmodel import actions as act
from kvmodel.departure import abandoned, forgotten
from kvmodel.fence import required_flush
from kvmodel.owners import released_by_job
from kvmodel.request import LOADING, RUNNING, WAITING_AFRESH
from kvmodel.setting import Setting
from kvmodel.state import job_with, with_request
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import LIVE


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
    patch.setattr("kvmodel.rules.reset_pinning.is_drained", lambda state, tiers: True)


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
