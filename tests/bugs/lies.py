"""Lies of the adapter: kvoffload is sound, and what is said of it is not. Each must be caught as a bug would be.

A lie is a subclass of the ledger target with one answer falsified.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from kvmodel import Action
from kvmodel import actions as act
from kvmodel.contract import Discipline
from kvmodel.request import DONE, DRAINING
from kvmodel.transfer_job import ABANDONED
from kvoffload.errors import KVOffloadError
from kvproof.targets.announced import Announced
from kvproof.targets.command import Command
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer, Outcome, Refused
from kvproof.targets.view import View


@dataclass(frozen=True)
class Lie:
    """One lie.

    target      tells it
    discipline, variant   where it is found; property: that it seems to break; commands: after how many (count)
    replays     whether the commands alone, run from the start, show it too: snapshots are not taken then
    """

    id: str
    mechanism: str
    target: type[Ledger]
    discipline: Discipline
    variant: str
    property: str
    commands: int
    replays: bool = True


class CapsCounts(Ledger):
    def view(self) -> View:
        view = super().view()
        return view._replace(device_refs=tuple([min(count, 1) for count in view.device_refs or ()]))


class ServesBytes(Ledger):
    def view(self) -> View:
        view = super().view()
        assert view.contents is not None
        return view._replace(host_keys=tuple([max(content, 0) for content in view.contents[1][0]]))


class HidesAbandonedJobs(Ledger):
    def view(self) -> View:
        view = super().view()
        return view._replace(jobs=tuple([job for job in view.jobs or () if job.view != ABANDONED]))


class ForgetsWhoIsAwaited(Ledger):
    def view(self) -> View:
        view = super().view()
        return view._replace(jobs=tuple([job._replace(awaiting=job.awaiting[:1]) for job in view.jobs or ()]))


class ResetsAreTrue(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        return Answer(True) if command.verb == "reset" and isinstance(outcome, Answer) else outcome


class LoadsNeverRun(Ledger):
    def view(self) -> View:
        view = super().view()
        return view._replace(runnable=tuple([where for where in view.runnable or () if where[1] != 2]))


class RunsTooEarly(Ledger):
    def view(self) -> View:
        view = super().view()
        queued = [(worker, 1) for worker, shard in enumerate(self.device.shards) if shard.stores]
        return view._replace(runnable=tuple(sorted({*(view.runnable or ()), *queued})))


def _fresh_reversed(action: Action) -> Action:
    if isinstance(action, act.Admit) and action.choice is not None:
        return action._replace(choice=action.choice._replace(fresh=action.choice.fresh[::-1]))
    return action


class TellsOtherBlocks(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if not isinstance(outcome, Answer):
            return outcome
        return outcome._replace(observed=tuple([_fresh_reversed(action) for action in outcome.observed]))


class KeepsQuietAboutLoads(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if not isinstance(outcome, Answer):
            return outcome
        return outcome._replace(observed=tuple([_without_load(action) for action in outcome.observed]))


def _without_load(action: Action) -> Action:
    if isinstance(action, act.Admit) and action.choice is not None:
        return action._replace(choice=action.choice._replace(host=()))
    return action


class SortsTheQueue(Ledger):
    def view(self) -> View:
        view = super().view()
        return view._replace(device_free=tuple(sorted(view.device_free or ())))


class CopiesWorkerZero(Ledger):
    def view(self) -> View:
        view = super().view()
        assert view.contents is not None
        device, host = view.contents
        return view._replace(contents=((device[0],) * len(device), (host[0],) * len(host)))


class RefusesAndDoes(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        return Refused("WrongPhase: not now") if command.verb == "finish" else outcome


class RefusesAndTakes(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if command.verb == "free_twice" and isinstance(outcome, Refused):
            self.engine.host_pool.take(1)
        return outcome


class SwallowsRefusals(Ledger):
    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        return Answer() if isinstance(outcome, Refused) else outcome


class OffersNoGrowth(Ledger):
    def offers(self) -> frozenset[tuple[object, ...]]:
        return frozenset(offer for offer in super().offers() if offer[0] != "Grow")


class OffersToFinish(Ledger):
    def offers(self) -> frozenset[tuple[object, ...]]:
        running = [request.id for request in self.engine.requests.values() if request.table]
        return super().offers() | {("Finish", number) for number in running}


class DoneWhileDraining(Ledger):
    def view(self) -> View:
        view = super().view()
        requests = [r._replace(phase=DONE) if r.phase == DRAINING else r for r in view.requests or ()]
        return view._replace(requests=tuple(requests))


class SnapshotsWithoutStoring(Ledger):
    def restore(self, snapshot: Hashable) -> None:
        super().restore(snapshot)
        self.engine.connector.storing.clear()


class SnapshotsWithoutQueue(Ledger):
    def restore(self, snapshot: Hashable) -> None:
        super().restore(snapshot)
        self.engine.connector.queued.clear()


class ReportsForOthers(Ledger):
    def perform(self, command: Command) -> Outcome:
        if command.verb != "report":
            return super().perform(command)
        worker, job = int(command.args[0]), int(command.args[1])
        self.runtime.workers[worker].collect([job])
        try:
            self.engine.report(min(self.engine.jobs[job].awaiting), [job])
        except KVOffloadError as error:
            return Refused(str(error))
        return Answer()


class AnnouncesLate(Ledger):
    """Shows what was announced up to the last command but one."""

    before: Announced = ((), ())

    def perform(self, command: Command) -> Outcome:
        self.before = self.announced
        return super().perform(command)

    def view(self) -> View:
        return super().view()._replace(announced=self.before)


LIES = (
    Lie(
        id="announces-late",
        mechanism="Shows what the events before the last command's add up to.",
        target=AnnouncesLate,
        discipline="pinning",
        variant="s1",
        property="events-tell-what-can-be-hit",
        commands=4,
    ),
    Lie(
        id="caps-counts",
        mechanism="Shows one reference where a block has several.",
        target=CapsCounts,
        discipline="pinning",
        variant="s1",
        property="owners-account-for-references",
        commands=2,
    ),
    Lie(
        id="serves-bytes",
        mechanism="Shows what a host block holds as what can be hit in it, so that stale keys seem to be served.",
        target=ServesBytes,
        discipline="pinning",
        variant="s1",
        property="no-block-stored-twice-at-once",
        commands=4,
    ),
    Lie(
        id="hides-abandoned-jobs",
        mechanism="Shows no transfer that was abandoned.",
        target=HidesAbandonedJobs,
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=3,
    ),
    Lie(
        id="forgets-who-is-awaited",
        mechanism="Shows one awaited worker for each transfer.",
        target=ForgetsWhoIsAwaited,
        discipline="pinning",
        variant="s2",
        property="workers-agree",
        commands=2,
    ),
    Lie(
        id="resets-are-true",
        mechanism="Answers True to every reset.",
        target=ResetsAreTrue,
        discipline="pinning",
        variant="s1",
        property="true-reset-serves-nothing-old",
        commands=3,
    ),
    Lie(
        id="loads-never-run",
        mechanism="Shows no load that could run.",
        target=LoadsNeverRun,
        discipline="pinning",
        variant="s1",
        property="everything-drains",
        commands=8,
    ),
    Lie(
        id="runs-too-early",
        mechanism="Shows stores as ready to run whatever they wait for.",
        target=RunsTooEarly,
        discipline="pinning",
        variant="s1",
        property="reads-what-was-written",
        commands=2,
    ),
    Lie(
        id="tells-other-blocks",
        mechanism="Reports the fresh blocks of an admission in another order than they are used in.",
        target=TellsOtherBlocks,
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=2,
    ),
    Lie(
        id="quiet-about-loads",
        mechanism="Reports an admission as if nothing was loaded for it.",
        target=KeepsQuietAboutLoads,
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=8,
    ),
    Lie(
        id="sorts-the-queue",
        mechanism="Shows the free queue in the order of block numbers.",
        target=SortsTheQueue,
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=3,
    ),
    Lie(
        id="copies-worker-zero",
        mechanism="Shows the first worker's contents for all workers.",
        target=CopiesWorkerZero,
        discipline="pinning",
        variant="s2",
        property="reads-what-was-written",
        commands=3,
    ),
    Lie(
        id="reports-for-others",
        mechanism="Delivers a worker's report in the name of the first worker that still owes one.",
        target=ReportsForOthers,
        discipline="pinning",
        variant="s2",
        property="workers-agree",
        commands=7,
    ),
    Lie(
        id="refuses-and-does",
        mechanism="Says that it refused to finish a request, and has done it.",
        target=RefusesAndDoes,
        discipline="pinning",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=5,
    ),
    Lie(
        id="refuses-and-takes",
        mechanism="Refuses a double free, as it must, and takes another block on the way.",
        target=RefusesAndTakes,
        discipline="pinning",
        variant="s1+double-frees",
        property="owners-account-for-references",
        commands=1,
    ),
    Lie(
        id="swallows-refusals",
        mechanism="Says of what was refused that it was done.",
        target=SwallowsRefusals,
        discipline="pinning",
        variant="s1+forgeries",
        property="refused-changes-nothing",
        commands=1,
    ),
    Lie(
        id="offers-no-growth",
        mechanism="Does not say that a request could grow.",
        target=OffersNoGrowth,
        discipline="pinning",
        variant="s1+decode",
        property="work-remaining-keeps-the-engine-stepping",
        commands=4,
    ),
    Lie(
        id="offers-to-finish",
        mechanism="Says of every request with blocks that it could finish.",
        target=OffersToFinish,
        discipline="pinning",
        variant="s1",
        property="every-request-can-finish",
        commands=2,
    ),
    Lie(
        id="done-while-draining",
        mechanism="Shows a draining request as done.",
        target=DoneWhileDraining,
        discipline="fencing",
        variant="s1",
        property="no-use-after-free",
        commands=9,
    ),
    Lie(
        id="snapshot-without-storing",
        mechanism="A snapshot forgets which keys are being stored.",
        target=SnapshotsWithoutStoring,
        discipline="pinning",
        variant="s1,prompts=a,host=2",
        property="no-block-stored-twice-at-once",
        commands=6,
        replays=False,
    ),
    Lie(
        id="snapshot-without-queue",
        mechanism="A snapshot forgets which loads are queued.",
        target=SnapshotsWithoutQueue,
        discipline="pinning",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=8,
        replays=False,
    ),
)
