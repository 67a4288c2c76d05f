"""Narration: what actions did, in the few words that stand beside a command in a report."""

from collections.abc import Sequence

from kvmodel import Action, Machine, State
from kvmodel import actions as act
from kvmodel.rules.report_mark import covered
from kvmodel.state import job_with
from kvmodel.streams import COMPUTE, oldest_compute, oldest_copy
from kvmodel.transfer_job import DIRECTIONS, TIERS_OF, VIEWS
from kvproof.targets.command import request_name
from kvproof.targets.side_by_side import pairs_in_words


def narrated(machine: Machine, before: State, actions: tuple[Action, ...], value: object) -> str:
    """One line for the actions of one command, from the state before them on. value: what the engine answered."""
    said: list[str] = []
    state = before
    for action in actions:
        after = machine.step(state, action)
        words = _words(machine, state, action, after)
        if words:
            said.append(words)
        state = after
    if isinstance(value, bool):
        said.append(f"answered {value}")
    return "; ".join(said)


def _words(machine: Machine, before: State, action: Action, after: State) -> str:
    names = machine.setting.key_names
    match action:
        case act.Admit(number):
            request = after.requests[number]
            fresh = [
                block for block in request.table if not before.device.refs[block] and not before.device.keys[block]
            ]
            words = f"admit {request_name(number)}: {_blocks('d', request.table)}"
            if fresh:
                words += f", fresh {_blocks('d', tuple(fresh))}"
            if after.next_job > before.next_job:
                words += f"; job {before.next_job} made, a load"
            return words
        case act.Promote(number):
            job = after.jobs[-1]
            pairs = ", ".join(pairs_in_words(job.direction, job.pairs, " -> "))
            return f"job {job.id} made for {request_name(number)}, a promotion {pairs}"
        case act.Launch():
            said = []
            if len(after.steps) > len(before.steps):
                said.append("compute")
            old = {job.id: job.progress for job in before.jobs}
            for job in after.jobs:
                if old.get(job.id) != job.progress:
                    pairs = ", ".join(pairs_in_words(job.direction, job.pairs, " -> "))
                    said.append(f"job {job.id}: {DIRECTIONS[job.direction]} {pairs}, launched")
            return "; ".join(said)
        case act.Run(worker, stream):
            if stream == COMPUTE:
                step = oldest_compute(before, worker)
                assert step is not None
                held = []
                for share in step.shares:
                    keys = machine.setting.total_keys[share.request]
                    held += [
                        f'd{share.table[i]} holds "{names[keys[i] - 1]}"' for i in range(share.start, len(share.table))
                    ]
                return ", ".join(held)
            copied = oldest_copy(before, worker, stream)
            return "" if copied is None else f"job {copied.id} copied on w{worker}"
        case act.FailCopy(worker, stream, position):
            failed = oldest_copy(before, worker, stream)
            if failed is None:
                return ""
            torn = [p.destination for at, p in enumerate(failed.pairs) if position is None or at == position]
            letter = TIERS_OF[failed.direction][1][0]
            return f"job {failed.id} fails on w{worker}, {_blocks(letter, tuple(torn))} torn"
        case act.Expire(number):
            overdue = job_with(before, number)
            return "" if overdue is None else f"{VIEWS[overdue.view]}, cleaned up as a failure"
        case act.Report(_, number):
            reported = job_with(before, number)
            if reported is None:
                return ""
            published = _published(before, after, names)
            gone = job_with(after, number) is None
            return f"{VIEWS[reported.view]}{', complete' if gone else ''}{f', {published}' if published else ''}"
        case act.ReportMark(worker, stream, mark):
            jobs = covered(before, worker, stream, mark)
            done = [str(job.id) for job in jobs if job_with(after, job.id) is None]
            said = [f"job {', '.join(str(job.id) for job in jobs)}"]
            if done:
                said.append("complete" if len(done) == len(jobs) else f"{', '.join(done)} complete")
            return ", ".join([*said, *filter(None, [_published(before, after, names)])])
        case act.HandleOutput():
            return _published(before, after, names)
        case act.Lookup(number):
            pins = after.requests[number].pins
            found = () if pins is None else (*(f"d{b}" for b in pins.device), *(f"h{b}" for b in pins.host))
            return f"pins {' '.join(found) or 'nothing'}"
        case act.Grow(number):
            return f"{request_name(number)} gets d{after.requests[number].table[-1]}"
        case act.PreemptUnderPressure(number):
            return f"preempts {request_name(number)}"
        case _:
            return ""


def _published(before: State, after: State, names: Sequence[str]) -> str:
    said = []
    for tier, old, new in (
        ("d", before.device.keys, after.device.keys),
        ("h", before.host.keys, after.host.keys),
        ("s", before.second.keys, after.second.keys),
    ):
        said += [
            f'{tier}{b} published as "{names[new[b] - 1]}"' for b in range(len(new)) if new[b] and new[b] != old[b]
        ]
    return ", ".join(said)


def _blocks(letter: str, blocks: tuple[int, ...]) -> str:
    return " ".join(f"{letter}{block}" for block in blocks)
