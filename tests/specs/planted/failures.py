"""Copies that fail."""

from typing import Any

from tests.specs.planted.plant import FENCING, LOADED, PINNING, S1, Patch, changed, planted

from kvmodel import State
from kvmodel import actions as act
from kvmodel.rules import report
from kvmodel.setting import Setting
from kvmodel.transfer_job import LIVE, LOAD


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
