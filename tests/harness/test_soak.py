"""The soak: green on kvoffload, red on bugs that are planted in it, and what it does when it is cut short.

Streams run freely, so that no timing is repeatable. What depends on it is given several seeds, each of which finds the
bug more often than not (see `SEEDS`); what depends on commands alone is found with the first. By which of its
consequences a bug is seen depends on the timing too (see `caught`).
"""

import gc
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from tests.harness.soaking import a_soak, caught, own_threads, soaked

from kvmodel.contract import DISCIPLINES, Contract, Discipline, OutputFrom
from kvmodel.scope import sequences
from kvoffload import ordering
from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import Journal
from kvoffload.completions import per_job
from kvoffload.config import Config
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.operations import Copy, Stream
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.scheduler import Scheduler
from kvoffload.transfer_job import JobState, TransferJob
from kvproof.engines import soak
from kvproof.job import load_engine
from kvproof.targets import kvoffload_soak
from kvproof.targets.kvoffload_marks import COPIES, repeated
from kvproof.targets.soaked import Setting
from kvproof.verdict import Verdict

SEEDS = (8, 1, *range(2, 8), *range(9, 41))
"""Seeds until a bug is found; the first two find most bugs soonest. Measured over 10 seeds of 2,000 copies:
`loads_before_the_last_reader` is found by 4 of them (some worker must lag while its blocks are loaded into),
`survivors_publish` by 8, `abandoned_jobs_publish` under fencing and `job_ids_outlive_a_reset` by 9, all others by every
one."""

Patch = pytest.MonkeyPatch


Opened = list[tuple[Setting, kvoffload_soak.KVOffload]]


@pytest.fixture
def opened(monkeypatch: Patch) -> Opened:
    """Every engine that is soaked from now on, with its setting."""
    all_opened: Opened = []

    def open_soaked(setting: Setting) -> kvoffload_soak.KVOffload:
        all_opened.append((setting, kvoffload_soak.KVOffload(setting)))
        return all_opened[-1][1]

    monkeypatch.setattr(kvoffload_soak, "open_soaked", open_soaked)
    return all_opened


# Green.

COPIED = ("stored", "loaded", "cascaded", "promoted")

EVERYTHING = (
    *COPIED,
    *("loads", "stores", "loads_dropped", "stores_dropped", "device_hits", "finished", "drains"),
    *(
        "resets",
        "resets_answered_False",
        "aborts",
        "stopped",
        "launches_ahead",
        "preemptions",
        "preempted_under_pressure",
    ),
    *("refusals", "faults_refused", "repeated_reports", "lost_marks", "failed_copies"),
    *("lost_reports", "expired", "stalls"),
)
"""What must have been done often enough to be counted."""

EPISODES = 4
"""Both store modes, with the output of all workers and of the first (count). How many copies one episode has depends on
the timing."""


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_kvoffload_passes_and_everything_happened(discipline: Discipline) -> None:
    """What is rare is not in every soak, since that depends on the timing: so in several together, and each passes."""
    done: Counter[str] = Counter()
    for seed in SEEDS:
        result, said = soaked(a_soak(discipline, seed, 1200))
        assert (result.verdict, result.property, result.failure) == (Verdict.PASSED, None, None)
        assert (result.states, result.transitions) == (None, None)
        counts = result.counts
        assert counts["copies"] == sum(counts.get(name, 0) for name in COPIED) >= 1200
        assert "planned_copies" not in counts
        assert result.detail.startswith(f"{counts['copies']:,} copies, {counts.get('loads', 0):,} loads, ")
        assert said[0] == "0 of 1,200 copies, episode 0"
        done += Counter(counts)
        if all(map(done.get, EVERYTHING)) and done["episodes"] >= EPISODES:
            break
    assert done["episodes"] >= EPISODES
    assert done["blocks_checked"] > 1200
    assert [name for name in EVERYTHING if not done[name]] == []


@pytest.mark.parametrize(
    ("contract", "modes"),
    [
        (
            {},
            [("eager", "all", 1), ("eager", "first", 2), ("lazy", "all", 2), ("lazy", "first", 1), ("eager", "all", 2)],
        ),
        ({"store_mode": "lazy"}, [("lazy", "all", 2), ("lazy", "first", 1), ("lazy", "all", 1), ("lazy", "first", 2)]),
        ({"output_from": "first", "depth": 2}, [("eager", "first", 2), ("lazy", "first", 2)]),
        ({"store_mode": "lazy", "output_from": "first"}, [("lazy", "first", 1), ("lazy", "first", 2)]),
    ],
)
def test_modes_take_turns_and_another_than_the_default_is_kept_to(
    contract: dict[str, Any], modes: list[tuple[str, str, int]], opened: Opened, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(soak, "REQUESTS", 4)
    said: list[str] = []
    soak.run(a_soak("pinning", copies=10_000_000, **contract), said.append, lambda: len(opened) > 4)
    seen = [setting.contract[1:4] for setting, _ in opened]
    assert seen == [*modes, *modes, *modes, *modes, *modes][:5]


def test_failing_copies_repeats_and_windows_meet_each_other_in_every_mode_that_they_go_with() -> None:
    settings = [soak._setting(random.Random(number), Contract("pinning"), number, "host") for number in range(840)]
    met = {(each.contract, each.failing is not None, each.scope.repeats, each.scope.window > 0) for each in settings}
    modes = {each.contract for each in settings}
    both = (False, True)
    assert met == {each for each in product(modes, both, both, both) if each[0].depth == 1 or not each[3]}
    assert len(modes) == 8


def test_it_is_the_soak_of_the_command_line() -> None:
    assert load_engine("soak") is soak.run


@pytest.mark.parametrize("copies", [0, -1, "many", 1.5])
def test_a_plan_must_be_a_number(copies: object) -> None:
    with pytest.raises(ValueError, match="option copies is"):
        soak.run(a_soak("pinning", copies=copies), lambda text: None, lambda: False)


# Cut short.


def test_a_cut_is_undetermined_and_keeps_the_counts() -> None:
    said: list[str] = []
    result = soak.run(a_soak("pinning", copies=10_000_000), said.append, lambda: len(said) > 300)
    assert result.verdict is Verdict.UNDETERMINED
    assert result.counts["planned_copies"] == 10_000_000 > result.counts["copies"] > 0
    assert result.detail.startswith("cut short of 10,000,000 copies: ")


def test_a_cut_before_the_first_command() -> None:
    result, said = soaked(a_soak("pinning"), lambda: True)
    assert (result.verdict, result.counts, said) == (
        Verdict.UNDETERMINED,
        {"copies": 0, "planned_copies": 600},
        [],
    )


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_ctrl_c_ends_the_threads() -> None:
    """Wherever it strikes: a timer's signal, since nothing else comes in the middle of something. If that is just when
    the folder of a second tier is made, nobody has it yet, and it goes when it is collected."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        gc.disable()  # Python only prints what is raised while Hypothesis counts collections
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            soak.run(a_soak("fencing", copies=10_000_000), lambda text: None, lambda: False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    gc.collect()
    assert own_threads() == []


# The log.


class Replayed:
    """The commands of a log, carried out on the ledger: without threads, so exactly in the order of the log."""

    def __init__(self, setting: Setting) -> None:
        contract, scope = setting.contract, setting.scope
        modes = contract.store_mode, contract.output_from, contract.depth, scope.lazy_window, contract.admission
        sizes = scope.device_blocks, scope.host_blocks, scope.workers
        self.keys = sequences(scope)
        below = scope.second_blocks
        self.ledger = Ledger.create(scope.workers, scope.device_blocks, scope.host_blocks, second_blocks=below)
        others = {"reports": contract.reports, "repeats": scope.repeats, "window": scope.window, "events": True}
        deadline = 1.0 if contract.expires else None
        config = Config(contract.discipline, *sizes, *modes, **others, deadline=deadline, second_blocks=below)
        self.runtime = Runtime(Engine.create(config), self.ledger)

    def do(self, verb: str, args: Any) -> None:
        runtime, engine = self.runtime, self.runtime.engine
        if verb == "submit":
            engine.submit(args[0], self.keys.prompt[args[0]], self.keys.total[args[0]])
        elif verb == "run":
            self.ledger.run(args[0], Stream(args[1]))
        elif verb == "fail_copy":
            self.ledger.run_failing(args[0], Stream(args[1]))
        elif verb == "fail_block":
            self.ledger.run_failing(args[0], Stream(args[1]), (args[2],))
        elif verb == "report":
            runtime.deliver(args[0], [args[1]])
        elif verb == "report_mark":
            runtime.deliver_mark(args[0], COPIES[args[1]], args[2])
        elif verb == "repeat_mark":
            repeated(engine, runtime.workers[args[0]], COPIES[args[1]], args[2])
        elif verb == "lose_report":
            runtime.workers[args[0]].collect([args[1]])
        elif verb == "lose_mark":
            runtime.workers[args[0]].get_mark(COPIES[args[1]])
        elif verb == "duplicate_report":
            engine.report(args[0], [args[1]])
        elif verb == "preempt_pressure":
            engine.preempt_under_pressure()
        elif verb in ("schedule", "launch", "handle_output"):
            getattr(runtime, verb)()
        elif verb not in ("forge_report", "free_twice"):
            getattr(engine, verb)(*args)

    def state(self) -> tuple[object, ...]:
        return state(self.runtime.engine)


def state(engine: Engine) -> tuple[object, ...]:
    engine.take_events()
    alive = {number: request for number, request in engine.requests.items() if request.phase is not Phase.DONE}
    connector = engine.connector
    pools = engine.device_pool, engine.host_pool, engine.second_pool
    return alive, engine.scheduler.pipeline, *pools, engine.jobs, connector.next_job


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_log_says_exactly_what_was_done(discipline: Discipline, opened: Opened) -> None:
    said: list[str] = []
    soak.run(a_soak(discipline, copies=10_000_000), said.append, lambda: len(opened) > 4 and len(said) % 100 == 99)
    for setting, soaked_engine in opened:
        replayed = Replayed(setting)
        log = soaked_engine.log()
        for done, _ in log:
            replayed.do(*done)
        assert replayed.state() == state(soaked_engine._engine)
        assert replayed.ledger.misreads == []
    assert len(opened) == 5


# Planted bugs.


def stores_before_compute(patch: Patch) -> None:
    """The wait of a store on the compute of its own launch (vLLM PR 46278)."""
    right = ordering.stores
    patch.setattr(ordering, "stores", lambda plan: tuple([store._replace(step=-1) for store in right(plan)]))


def loads_before_the_last_reader(patch: Patch) -> None:
    """The wait of a load on the steps before (vLLM issue 47282)."""
    right = ordering.loads
    patch.setattr(ordering, "loads", lambda plan: tuple([load._replace(step=-1) for load in right(plan)]))


def nobody_waits_for_the_fence(patch: Patch) -> None:
    """The flush set is right, and no worker looks at it."""
    for name in ("compute", "stores", "loads"):
        _without_fence(patch, name)


def _without_fence(patch: Patch, name: str) -> None:
    right = getattr(ordering, name)
    patch.setattr(ordering, name, lambda plan: right(plan._replace(flush=())))


def sources_of_abandoned_stores_are_released(patch: Patch) -> None:
    """A reset gives the device blocks back at once (vLLM PR 39726, first draft)."""
    right = PinningConnector.reset_cache

    def reset_cache(self: PinningConnector, meaning: Any, requests: Any, tiers: Any) -> bool:
        live = [job for job in self.jobs.values() if job.state is JobState.LIVE and job.launched]
        answer = right(self, meaning, requests, tiers)
        for job in live:
            self._device().release(job.device_blocks)
        return answer

    patch.setattr(PinningConnector, "reset_cache", reset_cache)


def a_reset_drops_its_transfers(patch: Patch) -> None:
    """The same with honest books: the records go too, and nothing is left that could be counted."""
    right = PinningConnector.reset_cache

    def reset_cache(self: PinningConnector, meaning: Any, requests: Any, tiers: Any) -> bool:
        for job in list(self.jobs.values()):
            self._disown(job)
        self.jobs.clear()
        return right(self, meaning, requests, tiers)

    patch.setattr(PinningConnector, "reset_cache", reset_cache)


def abandoned_jobs_publish(patch: Patch) -> None:
    """The completion of an abandoned job registers what it copied (vLLM PR 39726)."""
    for kind in (PinningConnector, FencingConnector):
        _publishing_whatever(patch, kind)


def _publishing_whatever(patch: Patch, kind: type[TransferConnector]) -> None:
    right = kind._disown

    def _disown(self: TransferConnector, job: TransferJob) -> None:
        if job.state is JobState.ABANDONED and not job.awaiting:
            self._publish(job)
        right(self, job)

    patch.setattr(kind, "_disown", _disown)


def a_completion_releases_twice(patch: Patch) -> None:
    right = PinningConnector._disown

    def _disown(self: PinningConnector, job: TransferJob) -> None:
        right(self, job)
        self.host.release(job.host_blocks[:1])

    patch.setattr(PinningConnector, "_disown", _disown)


def releases_are_not_checked(patch: Patch) -> None:
    """A release of what is free is silently ignored; every other is carried out, each as often as it is asked for."""
    right = BlockPool.release

    def release(self: BlockPool, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            if self.counts[block]:
                right(self, [block])

    patch.setattr(BlockPool, "release", release)


def reports_are_counted(patch: Patch) -> None:
    """Two reports of one worker stand for two workers."""

    def credited(jobs: Any, job: int, worker: int, failed: Any) -> Any:
        known = jobs.get(job)
        if known is None or not known.launched or not known.awaiting:
            return None
        known.awaiting.pop()
        known.failed.update(failed)
        return known

    patch.setattr(per_job, "credited", credited)


def the_first_report_completes(patch: Patch) -> None:
    right = per_job.credited

    def credited(jobs: Any, job: int, worker: int, failed: Any) -> Any:
        known = right(jobs, job, worker, failed)
        if known is not None:
            known.awaiting.clear()
        return known

    patch.setattr(per_job, "credited", credited)


def no_fence(patch: Patch) -> None:
    patch.setattr(FencingConnector, "_fence", lambda *args: ())


def forgotten_jobs_are_not_flushed(patch: Patch) -> None:
    """A reset frees the blocks of what it forgets, and forgets to order it flushed; conflicts are not looked for."""
    right = FencingConnector._fence

    def _fence(self: FencingConnector, *args: Any) -> tuple[int, ...]:
        return tuple([job for job in right(self, *args) if self.jobs[job].state is not JobState.FORGOTTEN])

    patch.setattr(FencingConnector, "_fence", _fence)


def job_ids_outlive_a_reset(patch: Patch) -> None:
    """Requests that survive a reset go on waiting for its transfers (vLLM PR 48102)."""

    def reset_cache(self: FencingConnector, meaning: Any, requests: Any, tiers: Any) -> bool:
        for job in self.jobs.values():
            if job.state is not JobState.FORGOTTEN and job.publishes_in(tiers):
                self._forget(job)
        self._clear_caches(self._device(), tiers)
        return meaning == "evict" or not any(request.table for request in requests)

    patch.setattr(FencingConnector, "reset_cache", reset_cache)


def the_host_keeps_its_keys(patch: Patch) -> None:
    """A reset clears the keys of the device only."""

    def _clear_caches(self: TransferConnector, device: BlockPool, tiers: Any) -> None:
        if tiers != "device":
            self.storing.clear()
        if tiers != "host":
            device.cache.clear()

    patch.setattr(TransferConnector, "_clear_caches", _clear_caches)


def survivors_publish(patch: Patch) -> None:
    """A request that survived `invalidate` publishes what the old weights computed."""
    right = Scheduler.handle_output

    def handle_output(self: Scheduler) -> None:
        shares = dict(self.pipeline[0].shares) if self.pipeline else {}
        right(self)
        for number, share in shares.items():
            if not share.left:
                computed = slice(share.first, len(share.blocks))
                self.device.cache.publish(
                    zip(share.blocks[computed], self.requests[number].total[computed], strict=True)
                )

    patch.setattr(Scheduler, "handle_output", handle_output)


def a_reset_answers_true(patch: Patch) -> None:
    """Although transfers are in flight (vLLM PR 39726)."""
    right = PinningConnector.reset_cache
    patch.setattr(PinningConnector, "reset_cache", lambda *args: right(*args) or True)


def the_idle_engine_stops(patch: Patch) -> None:
    """`has_work` looks at requests only, and their last transfers are never reported (vLLM PR 41180)."""

    def has_work(self: Engine) -> bool:
        return any(request.phase is not Phase.DONE for request in self.requests.values())

    patch.setattr(Engine, "has_work", has_work)


def keys_are_stored_twice(patch: Patch) -> None:
    """What is being stored is forgotten from step to step (vLLM PR 41289)."""
    right = TransferConnector.build_connector_meta

    def build_connector_meta(self: TransferConnector, *args: Any) -> LaunchPlan | None:
        plan = right(self, *args)
        if plan is not None:
            self.storing.clear()
        return plan

    patch.setattr(TransferConnector, "build_connector_meta", build_connector_meta)


def a_load_is_never_launched(patch: Patch) -> None:
    """The worker drops a launch's loads when it also computes."""
    right = ordering.loads
    patch.setattr(ordering, "loads", lambda plan: () if plan.step is not None else right(plan))


def a_load_waits_for_itself(patch: Patch) -> None:
    right = ordering.loads

    def loads(plan: LaunchPlan) -> tuple[Copy, ...]:
        return tuple([load._replace(jobs=(*load.jobs, load.job)) for load in right(plan)])

    patch.setattr(ordering, "loads", loads)


def a_refused_admission_takes_blocks(patch: Patch) -> None:
    right = Scheduler.admit

    def admit(self: Scheduler, request: int) -> Any:
        waiting = self.requests.get(request)
        if waiting is not None and waiting.phase is Phase.RUNNING and self.device.free:
            self.device.take(1)
        return right(self, request)

    patch.setattr(Scheduler, "admit", admit)


def a_late_completion_trips(patch: Patch) -> None:
    """A transfer outlives its request, whose record is expected to be there."""
    right = Scheduler.settle

    def settle(self: Scheduler, settled: Any) -> None:
        assert all(job.request in self.requests for job in settled)
        right(self, settled)

    patch.setattr(Scheduler, "settle", settle)


def pins_are_not_kept(patch: Patch) -> None:
    """A lookup remembers what it found without referencing it (vLLM PR 42289)."""
    right = Scheduler.lookup

    def lookup(self: Scheduler, request: int) -> Any:
        found = right(self, request)
        pins = self.requests[request].pins
        if pins is not None:
            self.device.release(pins.device)
        return found

    patch.setattr(Scheduler, "lookup", lookup)


def bug(
    plant: Callable[[Patch], None], discipline: Discipline, *properties: str, output_from: OutputFrom = "all"
) -> Any:
    contract = Contract(discipline, output_from=output_from)
    return pytest.param(plant, contract, frozenset(properties), id=f"{plant.__name__}-{discipline}")


BYTES = (
    "reads-what-was-written",
    "published-after-all-copied",
    "false-reset-serves-nothing-old",
    "true-reset-serves-nothing-old",
)


def evictions_are_not_announced(patch: Patch) -> None:
    """Routers go on sending requests to a block that is somebody else's."""
    patch.setattr(Journal, "removed", lambda self, key: None)


@pytest.mark.parametrize(
    ("plant", "contract", "properties"),
    [
        bug(stores_before_compute, "pinning", *BYTES),
        bug(stores_before_compute, "fencing", *BYTES),
        bug(loads_before_the_last_reader, "pinning", *BYTES, output_from="first"),
        bug(nobody_waits_for_the_fence, "fencing", *BYTES),
        bug(sources_of_abandoned_stores_are_released, "pinning", "owners-account-for-references"),
        bug(
            a_reset_drops_its_transfers,
            "pinning",
            *("owners-account-for-references", "true-reset-serves-nothing-old", "no-double-free"),
        ),
        bug(abandoned_jobs_publish, "pinning", "dropped-jobs-publish-nothing"),
        bug(abandoned_jobs_publish, "fencing", "dropped-jobs-publish-nothing"),
        bug(a_completion_releases_twice, "pinning", "no-double-free"),
        bug(releases_are_not_checked, "pinning", "no-double-free"),
        bug(
            reports_are_counted,
            "pinning",
            "stale-completions-change-nothing",
            "every-full-block-is-stored-or-refused",
        ),
        bug(the_first_report_completes, "fencing", "published-after-all-copied", "workers-agree"),
        bug(no_fence, "fencing", "fence-before-reuse"),
        bug(forgotten_jobs_are_not_flushed, "fencing", "fence-before-reuse"),
        bug(job_ids_outlive_a_reset, "fencing", "every-request-can-finish"),
        bug(the_host_keeps_its_keys, "pinning", "false-reset-serves-nothing-old", "true-reset-serves-nothing-old"),
        bug(survivors_publish, "fencing", "false-reset-serves-nothing-old", "true-reset-serves-nothing-old"),
        bug(a_reset_answers_true, "pinning", "true-reset-serves-nothing-old"),
        bug(the_idle_engine_stops, "pinning", "work-remaining-keeps-the-engine-stepping"),
        bug(keys_are_stored_twice, "pinning", "no-block-stored-twice-at-once"),
        bug(a_load_is_never_launched, "pinning", "everything-drains"),
        bug(a_load_waits_for_itself, "pinning", "everything-drains"),
        bug(a_refused_admission_takes_blocks, "pinning", "refused-changes-nothing"),
        bug(a_late_completion_trips, "fencing", "work-remaining-keeps-the-engine-stepping"),
        bug(pins_are_not_kept, "fencing", "owners-account-for-references"),
        bug(evictions_are_not_announced, "pinning", "events-tell-what-can-be-hit"),
    ],
)
def test_a_planted_bug_is_caught(
    plant: Callable[[Patch], None], contract: Contract, properties: frozenset[str], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    caught((a_soak(contract.discipline, seed, 2000, output_from=contract.output_from) for seed in SEEDS), properties)
