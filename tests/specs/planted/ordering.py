"""Ordering: waits and fences that are missing."""

from typing import Any

from tests.specs.planted.plant import FENCING, PINNING, S1, SWAP, TINY, Patch, changed, planted

from kvmodel import Contract, State
from kvmodel import actions as act
from kvmodel.setting import Setting
from kvmodel.transfer_job import LOAD, NONE, STORE


def _unordered(patch: Patch, direction: int) -> None:
    """Copies of this direction are launched without waiting for any compute."""

    def launched(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(
            jobs=tuple(job._replace(after_step=NONE) if job.direction == direction else job for job in after.jobs)
        )

    changed(patch, act.Launch, launched)


@planted("vLLM PR 46278", PINNING, S1, "reads-what-was-written", 3)
def a_store_does_not_wait_for_the_compute(patch: Patch) -> None:
    _unordered(patch, STORE)


@planted("vLLM issue 47282", Contract("pinning", "lazy", "first"), SWAP._replace(workers=2), "fence-before-reuse", 21)
def a_load_does_not_wait_for_the_last_reader(patch: Patch) -> None:
    _unordered(patch, LOAD)


@planted("vLLM PR 29870", FENCING, TINY._replace(prompts=("a", "b")), "fence-before-reuse", 8)
def reused_blocks_are_not_fenced(patch: Patch) -> None:
    patch.setattr("kvmodel.policy.required_flush", lambda state, tables, stores: ())


@planted("vLLM PR 41956: waits of the compute stream alone", FENCING, SWAP, "fence-before-reuse", 17)
def a_copy_does_not_wait_for_the_flush(patch: Patch) -> None:
    def unordered(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(jobs=tuple(job._replace(after_jobs=()) for job in after.jobs))

    changed(patch, act.Launch, unordered)
