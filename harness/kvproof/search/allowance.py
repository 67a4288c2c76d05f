"""Allowance: what clients and the environment may still do so many times: resets, faults, and reports that come late.

No rule asks how much is left but those of the resets and faults themselves: whatever can happen where less is left can
also happen where more is, and leads to states that differ in what is left alone; what is seen of a target there is the
same. So of two states that differ in that alone, the one with more left stands for the other. A fault that must change
nothing, such as a report that comes twice, then leads to a known state, unless the target has changed.

The report of a job that the scheduler has forgotten changes nothing either, whenever it comes. A search may so let a
state with more of them still to come stand for those in which some have come. Each is followed as late as it can be;
what it leads to is looked at, and is followed where the target is another than if the report was still to come.

Early expiries are no part of it: a deadline passes if it can, and so it must be the same where one stands for another.
"""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from kvmodel import Machine, State
from kvmodel.actions import Report
from kvmodel.setting import Setting
from kvmodel.transfer_job import COPIED, FORGOTTEN, NONE
from kvproof.search.canonical import Renaming, job_renamed, ranks_of


class Late(NamedTuple):
    """One forgotten job with reports that are still to come.

    kind     its direction, its name if it still runs elsewhere, or NONE, and whether a copy of it has failed
    workers  whose reports those are, by their new names
    about    its row in canonical names, and what the target knows of it
    """

    kind: tuple[int, int, bool]
    workers: tuple[int, ...]
    about: Hashable


class Left(NamedTuple):
    """What may still occur.

    times  how often a reset, and each fault but the early expiry
    late   forgotten jobs, if a state stands for those in which some of their reports have come
    """

    times: tuple[int, ...] = ()
    late: tuple[Late, ...] = ()


def left_in(state: State, late: tuple[Late, ...] = ()) -> Left:
    return Left((state.resets_left, *state.faults_left._replace(expiries=0)), late)


def covers(more: Left, less: Left) -> bool:
    """Whether there is at least as much left of everything: of late reports, as many of each kind, and some only if
    there are some."""
    if bool(more.late) != bool(less.late):
        return False
    if not all(one >= other for one, other in zip(more.times, less.times, strict=True)):
        return False
    jobs = iter(more.late)
    return all(any(_covers_job(one, other) for one in jobs) for other in less.late)


def _covers_job(more: Late, less: Late) -> bool:
    return more.kind == less.kind and set(more.workers) >= set(less.workers)


def unspent(start: State, state: State) -> State:
    """The state as it would be if nothing had been used up. start: where nothing is."""
    faults = start.faults_left._replace(expiries=state.faults_left.expiries)
    if state.resets_left == start.resets_left and state.faults_left == faults:
        return state
    return state._replace(resets_left=start.resets_left, faults_left=faults)


def reports_may_wait(setting: Setting) -> bool:
    """Whether nothing but a report itself tells when the report of a forgotten job came: not so where it can come once
    more, where its worker can die before, where it is part of a mark, and where deadlines pass."""
    contract, scope = setting.contract, setting.scope
    return not (contract.marks or contract.expires or scope.duplicates or scope.deaths)


def late_reports(state: State) -> dict[int, frozenset[int]]:
    """The forgotten jobs with reports that could come now, by age, and whose those are."""
    found: dict[int, frozenset[int]] = {}
    for job in state.jobs:
        if job.view == FORGOTTEN and COPIED in job.progress:
            found[job.id] = frozenset([worker for worker, done in enumerate(job.progress) if done == COPIED])
    return found


def without(machine: Machine, state: State, late: Mapping[int, frozenset[int]]) -> State:
    """The state in which these reports have come."""
    for job, workers in late.items():
        for worker in sorted(workers):
            state = machine.step(state, Report(worker, job))
    return state


def named_late(
    state: State, renaming: Renaming, late: Mapping[int, frozenset[int]], known: tuple[Hashable, ...]
) -> tuple[Late, ...]:
    """These reports in the names of the state without them. known: of each of the jobs, by the target."""
    ranks = ranks_of(renaming)
    found: list[Late] = []
    for job, by_target in zip([job for job in state.jobs if job.id in late], known, strict=True):
        workers = tuple(sorted([ranks[worker] for worker in late[job.id]]))
        kind = (job.direction, renaming.jobs.get(job.id, NONE), bool(job.failed))
        found.append(Late(kind, workers, (job_renamed(job, renaming), by_target)))
    return tuple(sorted(found, key=lambda job: job[:2]))
