"""What must be true of kvoffload at any moment, judged from books that are kept beside it.

The books know only what the engine has said (admissions, launch plans) and what was asked of it (reports, resets,
aborts, preemptions). They do not look at the engine's own table of transfers, which may be what is wrong.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kvmodel.contract import Contract
from kvmodel.scope import Meaning, Sequences
from kvmodel.tiers import Tiers
from kvoffload.block_pool import BlockPool
from kvoffload.engine import Engine
from kvoffload.ids import NO_BLOCK
from kvoffload.operations import Content
from kvoffload.plan import LaunchPlan, PlannedCopy
from kvoffload.request import Phase
from kvoffload.scheduler import Admission
from kvproof.targets.announced import Announced, Keys
from kvproof.targets.command import request_name
from kvproof.targets.soaked import Violation

View = Literal["LIVE", "ABANDONED", "FORGOTTEN"]
Pairs = tuple[tuple[int, int, int], ...]
"""(source block, destination block, key)."""

Cached = Mapping[int, int]
"""Key -> block."""


@dataclass(slots=True)
class BookedJob:
    """One transfer that some worker has not reported.

    view      what the contract makes of it: LIVE ones publish, FORGOTTEN ones hold nothing
    launched  False: queued for the next launch, no worker knows of it
    reported  workers that have reported it
    failed    positions of the pairs that one of them could not copy; all, if the job has expired
    lost      workers that have copied it, and whose reports never come
    """

    id: int
    store: bool
    pairs: Pairs
    request: int | None
    launched: bool
    view: View = "LIVE"
    reported: set[int] = field(default_factory=set[int])
    failed: set[int] = field(default_factory=set[int])
    lost: set[int] = field(default_factory=set[int])

    @property
    def only_lost(self) -> bool:
        """It has expired and is done with, but for reports that never come."""
        return self.view == "FORGOTTEN" and bool(self.lost)

    @property
    def intact(self) -> Pairs:
        """What it brings over, if it is complete: of a load what precedes the first failure, since the request computes
        all that follows."""
        if not self.store:
            return self.pairs[: min(self.failed, default=len(self.pairs))]
        return tuple([pair for position, pair in enumerate(self.pairs) if position not in self.failed])

    @property
    def device_blocks(self) -> list[int]:
        return [pair[0] if self.store else pair[1] for pair in self.pairs]

    @property
    def host_blocks(self) -> list[int]:
        return [pair[1] if self.store else pair[0] for pair in self.pairs]

    @property
    def stream(self) -> str:
        return "store" if self.store else "load"

    def __str__(self) -> str:
        return f"job {self.id} ({self.view}, a {self.stream})"


class Books:
    """The books of one engine.

    jobs        every transfer that some worker has not reported, by id
    generation  how many resets have meant `invalidate` (count)
    """

    def __init__(self, contract: Contract, workers: int, keys: Sequences) -> None:
        self.jobs: dict[int, BookedJob] = {}
        self.generation = 0
        self._pins = contract.pins
        self._workers = workers
        self._keys = keys
        self._next_job = 0
        self._generation_of: dict[int, int] = {}
        self._last_answer: bool | None = None

    # What happens.

    def admitted(self, request: int, admission: Admission) -> None:
        """The engine admits a request, perhaps with a load."""
        self._generation_of[request] = self.generation
        if admission.load is not None:
            self._issue(BookedJob(admission.load, False, tuple(admission.pairs), request, launched=False))

    def left(self, request: int) -> None:
        """The request was aborted or preempted: if it was loading, its load was dropped."""
        for job in list(self.jobs.values()):
            if job.request == request and not job.store and job.view == "LIVE":
                if job.launched:
                    job.view = "ABANDONED"
                else:
                    del self.jobs[job.id]

    def launched(self, plan: LaunchPlan, has_run: Callable[[int, int], bool], host: Cached) -> None:
        """The engine launches a step. `has_run(worker, job)` says which copies have run by now."""
        self._check_fence(plan, has_run)
        self._check_shares(plan)
        storing = {key for job in self.jobs.values() if job.store and job.view == "LIVE" for _, _, key in job.pairs}
        for load in plan.load_copies:
            job = self.jobs.get(load.job)
            if job is None or job.launched or job.store or job.pairs != load.pairs:
                raise Violation(
                    "ids-are-never-reused",
                    f"A launch carries load {load.job}, which was not queued as such.",
                    "launch of another load",
                )
            job.launched = True
        for store in plan.stores:
            for _, destination, key in store.pairs:
                if key in storing or key in host:
                    where = "being stored" if key in storing else f"in host block h{host[key]}"
                    raise Violation(
                        "no-block-stored-twice-at-once",
                        f"Job {store.job} stores {self.name(key)} to h{destination}, and it is {where} already.",
                        "store of a key that is stored",
                    )
                storing.add(key)
            self._issue(BookedJob(store.job, True, tuple(store.pairs), None, launched=True))

    def owed(self, worker: int, stream: str, mark: int) -> list[int]:
        """What a mark says that this worker has copied and has not reported."""
        return [
            job.id
            for job in self.jobs.values()
            if job.launched and job.stream == stream and job.id <= mark and worker not in job.reported
        ]

    def reported(self, worker: int, jobs: Sequence[int], failed: Mapping[int, Collection[int]]) -> list[BookedJob]:
        """A worker reports these, and the positions of what it could not copy; answers the jobs that are complete with
        it."""
        complete: list[BookedJob] = []
        for number in jobs:
            job = self.jobs[number]
            job.reported.add(worker)
            job.failed.update(failed[number])
            if len(job.reported) == self._workers:
                complete.append(self.jobs.pop(number))
        return complete

    def expired(self, number: int) -> bool:
        """The deadline of this job has passed: it failed, and holds nothing. Answers whether it was LIVE."""
        job = self.jobs[number]
        wanted = job.view == "LIVE"
        job.view = "FORGOTTEN"
        job.failed.update(range(len(job.pairs)))
        return wanted

    def reset(self, engine: Engine, meaning: Meaning, tiers: Tiers, answer: bool) -> None:
        """A reset of these tiers has answered; judges the answer and what is left to be found."""
        outstanding = [job for job in self.jobs.values() if job.view != "FORGOTTEN"]
        idle = not outstanding and all(request.phase is Phase.DONE for request in engine.requests.values())
        for job in list(self.jobs.values()):
            if tiers == ("device" if job.store else "host"):
                continue  # what it carries goes into the other tier
            if not job.launched:
                del self.jobs[job.id]
            elif job.view != "FORGOTTEN":
                job.view = "ABANDONED" if self._pins else "FORGOTTEN"
        if meaning == "invalidate":
            self.generation += 1
        self._last_answer = answer
        survivors = [number for number, request in engine.requests.items() if request.table and tiers != "host"]
        causes = [f"{request_name(number)} holds blocks" for number in survivors]
        if self._pins:
            causes += [f"{job} is in flight" for job in self.jobs.values() if job.view != "FORGOTTEN"]
        elif meaning == "evict":
            causes = []
        if answer is not (not causes):
            because = f"although {causes[0]}" if causes else "although nothing stands in its way"
            name = "true-reset-serves-nothing-old" if answer else "false-reset-has-a-cause"
            raise Violation(
                "reset-converges" if idle and not answer else name,
                f"The reset answered {answer}, {because}.",
                "answer of a reset",
                contract=f"the reset answers {not causes}",
                target=f"it answered {answer}",
            )
        for tier, pool in (("device", engine.device_pool), ("host", engine.host_pool)):
            for key, block in pool.cache.blocks.items() if tiers in ("all", tier) else ():
                raise Violation(
                    self.serves_old,
                    f"{tier.capitalize()} block {tier[0]}{block} can still be hit as {self.name(key)} after the reset.",
                    "hit after a reset",
                    tier,
                )

    # What must be true.

    def check(self, engine: Engine, announced: Announced) -> None:
        """References against owners, the free queues, the caches and what was announced of them, the pins, and the
        engine's table of transfers."""
        device, host = self._references(engine)
        for tier, pool, counts in (("device", engine.device_pool, device), ("host", engine.host_pool, host)):
            if pool.counts != counts:
                raise self._miscounted(engine, tier, pool, counts)
            free = list(pool.free_blocks())
            if len(free) != pool.free or sorted(free) != [block for block, count in enumerate(counts) if not count]:
                raise Violation(
                    "free-means-unowned",
                    f"The {tier} pool's free queue is {free}, of {pool.free}, and its unowned blocks are "
                    f"{[block for block, count in enumerate(counts) if not count]}.",
                    "free queue",
                    tier,
                )
            if pool.cache.blocks != {key: block for block, key in enumerate(pool.cache.keys) if key}:
                raise Violation(
                    "one-copy-per-key",
                    f"The {tier} pool finds {pool.cache.blocks} by key, and its blocks have keys {pool.cache.keys}.",
                    "cache and blocks disagree",
                    tier,
                )
        for tier, pool, told in zip(("device", "host"), (engine.device_pool, engine.host_pool), announced, strict=True):
            if told != tuple(sorted(pool.cache.blocks)):
                raise self._wrongly_announced(tier, pool, told)
        if engine.jobs.keys() != self.jobs.keys():
            raise self._job_tables_differ(engine)
        self._check_pins(engine)

    def check_published(
        self, tier: str, before: Cached, after: Cached, batch: Sequence[BookedJob], complete: Sequence[BookedJob]
    ) -> None:
        """After a report: what can be hit now and could not before was copied by a job that is complete and LIVE."""
        due = {pair[1:]: job for job in complete if job.view == "LIVE" for pair in job.intact}
        for key, block in after.items():
            if key in before or (block, key) in due:
                continue
            job = next((job for job in batch if any(pair[1:] == (block, key) for pair in job.pairs)), None)
            if job is not None and job.view != "LIVE":
                name, why = "dropped-jobs-publish-nothing", f"{job} was dropped"
            elif job is not None and len(job.reported) == self._workers:
                name, why = "failed-copies-are-never-published", f"{job} failed to bring it over"
            elif job is not None:
                name, why = "published-after-all-copied", f"{job} was reported by {len(job.reported)} workers only"
            else:
                name, why = "stale-completions-change-nothing", "no job in the report has copied it"
            raise Violation(
                name,
                f"{tier.capitalize()} block {tier[0]}{block} was published as {self.name(key)}, although {why}.",
                name,
                tier,
            )
        for block, key in due:
            if key not in after:
                raise Violation(
                    "every-full-block-is-stored-or-refused",
                    f"{tier.capitalize()} block {tier[0]}{block} was given {self.name(key)}, which cannot be hit.",
                    "complete and not published",
                    tier,
                )

    def check_withdrawn(self, host: Cached, wanted: Sequence[BookedJob]) -> None:
        """These jobs were LIVE and are complete, or have expired: what a load could not read is not offered again by
        the host block that it is in."""
        for job in wanted:
            for position in sorted(job.failed) if not job.store else ():
                source, _, key = job.pairs[position]
                if host.get(key) == source:
                    raise Violation(
                        "failed-copies-are-never-published",
                        f"Host block h{source} can still be hit as {self.name(key)}, although {job} failed to read it.",
                        "unreadable and offered",
                    )

    def check_stepping(self, engine: Engine) -> None:
        """The engine must be stepped while a request or a transfer that holds blocks is left, and no longer."""
        left = [request_name(number) for number, request in engine.requests.items() if request.phase != Phase.DONE]
        left += [str(job) for job in self.jobs.values() if job.view != "FORGOTTEN"]
        left += ["the output of a step"] if engine.scheduler.pipeline else []
        if engine.has_work() is not bool(left):
            raise Violation(
                "work-remaining-keeps-the-engine-stepping",
                f"The engine has {'no ' * bool(left)}work, it says; left is {', '.join(left) or 'nothing'}.",
                "has_work",
            )

    def _wrongly_announced(self, tier: str, pool: BlockPool, told: Keys) -> Violation:
        names = ", ".join([f"{'not ' * (key < 0)}{self.name(abs(key))}" for key in told]) or "nothing"
        found = ", ".join([self.name(key) for key in sorted(pool.cache.blocks)]) or "nothing"
        return Violation(
            "events-tell-what-can-be-hit",
            f"By the events {names} can be hit on the {tier}, and what can be is {found}.",
            "announced",
            tier,
        )

    @property
    def serves_old(self) -> str:
        """The property that is broken when something from before the last reset is served."""
        return "true-reset-serves-nothing-old" if self._last_answer else "false-reset-serves-nothing-old"

    def name(self, key: int) -> str:
        """A key in the words of a report: the prefix that it stands for."""
        return f'"{self._keys.names[key - 1]}"' if 0 < key <= len(self._keys.names) else f"key {key}"

    def content(self, request: int, position: int) -> Content:
        """What a running request's block must hold."""
        return Content(self._keys.total[request][position], self._generation_of[request])

    # Parts.

    def _issue(self, job: BookedJob) -> None:
        if job.id < self._next_job:
            raise Violation(
                "ids-are-never-reused",
                f"Job id {job.id} was issued again; the next new one is {self._next_job}.",
                "job id issued twice",
            )
        self._next_job = job.id + 1
        self.jobs[job.id] = job

    def _holders(self, engine: Engine) -> Iterator[tuple[str, Iterable[int], Iterable[int]]]:
        """Everybody who owns references, with the device and the host blocks, one entry for each reference."""
        for number, request in engine.requests.items():
            if request.table:
                yield f"{request_name(number)}'s table", request.held, ()
            if request.pins is not None:
                yield f"{request_name(number)}'s lookup", request.pins.device, request.pins.host
        for step in engine.scheduler.pipeline:
            for number, share in step.shares.items():
                if share.left:
                    held = [block for block in share.blocks if block != NO_BLOCK]
                    yield f"step {step.step} for {request_name(number)}", held, ()
        for job in self.jobs.values():
            if job.view != "FORGOTTEN":
                yield str(job), job.device_blocks if self._pins else (), job.host_blocks

    def _references(self, engine: Engine) -> tuple[list[int], list[int]]:
        device, host = [0] * engine.device_pool.size, [0] * engine.host_pool.size
        for _, device_blocks, host_blocks in self._holders(engine):
            for block in device_blocks:
                device[block] += 1
            for block in host_blocks:
                host[block] += 1
        return device, host

    def _miscounted(self, engine: Engine, tier: str, pool: BlockPool, counts: Sequence[int]) -> Violation:
        block = next(b for b, (has, owned) in enumerate(zip(pool.counts, counts, strict=True)) if has != owned)
        owners: Counter[str] = Counter()
        for name, device_blocks, host_blocks in self._holders(engine):
            owners.update([name for held in (device_blocks if tier == "device" else host_blocks) if held == block])
        named = ", ".join(name if times == 1 else f"{name} {times} times" for name, times in owners.items())
        where = f"{tier[0]}{block} references"
        return Violation(
            "owners-account-for-references",
            f"{tier.capitalize()} block {tier[0]}{block} has {pool.counts[block]} references, {counts[block]} owners.",
            "count differs from owners",
            tier,
            contract=f"{where} {counts[block]}: {named or 'nobody'}",
            target=f"{where} {pool.counts[block]}",
        )

    def _job_tables_differ(self, engine: Engine) -> Violation:
        for job in self.jobs.values():
            if job.id not in engine.jobs:
                missing = sorted(set(range(self._workers)) - job.reported)
                workers = ", ".join(f"w{worker}" for worker in missing)
                return Violation(
                    "workers-agree" if job.reported else "no-use-after-free",
                    f"The engine knows {job} no more, and {workers} did not report it.",
                    "job dropped early",
                    contract=f"job {job.id} outstanding on {workers}",
                    target=f"job {job.id} unknown",
                )
        number = next(number for number in engine.jobs if number not in self.jobs)
        return Violation(
            "everything-drains",
            f"The engine still keeps job {number}, which is complete or was cancelled.",
            "job kept",
            contract=f"job {number} gone",
            target=f"job {number} {engine.jobs[number].state}",
        )

    def _check_pins(self, engine: Engine) -> None:
        for number, request in engine.requests.items():
            if request.pins is None:
                continue
            found = [engine.device_pool.cache.keys[block] for block in request.pins.device]
            found += [engine.host_pool.cache.keys[block] for block in request.pins.host]
            if tuple(found) != request.prompt[: len(found)]:
                raise Violation(
                    "pinned-is-not-evicted",
                    f"The lookup of {request_name(number)} pins d{list(request.pins.device)} and "
                    f"h{list(request.pins.host)}, which serve {[self.name(key) for key in found]} now.",
                    "pinned block evicted",
                )

    def _check_fence(self, plan: LaunchPlan, has_run: Callable[[int, int], bool]) -> None:
        """No unfinished copy touches what the launch writes, or writes what it reads; fencing: unless it is flushed."""
        device_written = {block for share in plan.shares for block, _ in share.writes} | _of(plan.load_copies, 1)
        device_read = {block for share in plan.shares for block, _ in share.reads} | _of(plan.stores, 0)
        host_written, host_read = _of(plan.stores, 1), _of(plan.load_copies, 0)
        for job in self.jobs.values():
            if not job.launched or job.id in plan.flush:
                continue
            if job.store:
                clash = device_written.intersection(job.device_blocks)
                clash |= (host_written | host_read).intersection(job.host_blocks)
            else:
                clash = host_written.intersection(job.host_blocks)
                clash |= (device_written | device_read).intersection(job.device_blocks)
            if not clash:
                continue
            late = [w for w in range(self._workers) if w not in job.reported and not has_run(w, job.id)]
            if late:
                what = f"compute of step {plan.step}" if plan.step is not None else "launch without compute"
                raise Violation(
                    "no-use-after-free" if self._pins else "fence-before-reuse",
                    f"The {what} uses block {min(clash)} under {job}, which has not run on w{late[0]}.",
                    "launch under an unfinished copy",
                    contract=f"job {job.id} {'still owns its blocks' if self._pins else 'in the flush set'}",
                    target=f"flush set {list(plan.flush)}",
                )

    def _check_shares(self, plan: LaunchPlan) -> None:
        """A share reads and writes the contents of its request's keys, of the weights that it was admitted with."""
        for share in plan.shares:
            promised = [content for _, content in (*share.reads, *share.writes)]
            for position, content in enumerate(promised, start=share.first - len(share.reads)):
                expected = self.content(share.request, position)
                if content == expected:
                    continue
                old = content.key == expected.key and content.generation < expected.generation
                raise Violation(
                    self.serves_old if old else "reads-what-was-written",
                    f"Step {plan.step} is to use block {position} of {request_name(share.request)} with "
                    f"{self.name(content.key)} of weights {content.generation}, and should with "
                    f"{self.name(expected.key)} of weights {expected.generation}.",
                    "content of a share",
                )


def _of(copies: Iterable[PlannedCopy], side: int) -> set[int]:
    return {pair[side] for copy in copies for pair in copy.pairs}
