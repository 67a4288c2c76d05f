"""Deadlines."""

from typing import Any

from tests.specs.planted.plant import OVERDUE, PINNING_UNTIL, Patch, changed, planted

from kvmodel import State
from kvmodel import actions as act
from kvmodel.rules import report
from kvmodel.setting import Setting
from kvmodel.state import job_with
from kvmodel.transfer_job import ABANDONED, STORE


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
