"""Completions."""

from typing import Any

from tests.specs.planted.plant import PINNING, S1, S2, SWAP, TINY, Patch, changed, planted

from kvmodel import Contract, State
from kvmodel import actions as act
from kvmodel.machine import RULES, Rule
from kvmodel.request import LOADING
from kvmodel.rules import report
from kvmodel.setting import Setting
from kvmodel.state import job_with, with_job
from kvmodel.transfer_job import COPIED, LAUNCHED, REPORTED, Job


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
