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
from kvoffload.operations import ENDS, Content, Stream, Tier
from kvoffload.plan import LaunchPlan
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
    stream: Stream
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
        if self.stream is Stream.LOAD:
            return self.pairs[: min(self.failed, default=len(self.pairs))]
        return tuple([pair for position, pair in enumerate(self.pairs) if position not in self.failed])

    @property
    def reads(self) -> Tier:
        return ENDS[self.stream][0]

    @property
    def writes(self) -> Tier:
        return ENDS[self.stream][1]

    def blocks(self, tier: Tier) -> list[int]:
        """Its blocks of this tier."""
        return [pair[side] for side, end in enumerate(ENDS[self.stream]) if end is tier for pair in self.pairs]

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
            self._issue(BookedJob(admission.load, Stream.LOAD, tuple(admission.pairs), request, launched=False))

    def promoted(self, request: int, number: int, pairs: Pairs) -> None:
        """The engine promotes for a request that waits."""
        self._issue(BookedJob(number, Stream.PROMOTION, tuple(pairs), request, launched=False))

    def left(self, request: int) -> None:
        """The request was aborted or preempted: if it was loading, its load was dropped."""
        for job in list(self.jobs.values()):
            if job.request == request and job.stream is Stream.LOAD and job.view == "LIVE":
                if job.launched:
                    job.view = "ABANDONED"
                else:
                    del self.jobs[job.id]

    def launched(self, plan: LaunchPlan, has_run: Callable[[int, int], bool], host: Cached) -> None:
        """The engine launches a step. `has_run(worker, job)` says which copies have run by now."""
        self._check_fence(plan, has_run)
        self._check_shares(plan)
        to_host = [job for job in self.jobs.values() if job.writes is Tier.HOST and job.view == "LIVE"]
        storing = {key for job in to_host for _, _, key in job.pairs}
        for stream, copies in ((Stream.LOAD, plan.load_copies), (Stream.PROMOTION, plan.promotions)):
            for copy in copies:
                job = self.jobs.get(copy.job)
                if job is None or job.launched or job.stream is not stream or job.pairs != copy.pairs:
                    raise Violation(
                        "ids-are-never-reused",
                        f"A launch carries {stream} {copy.job}, which was not queued as such.",
                        "launch of another load",
                    )
                job.launched = True
        for cascade in plan.cascades:
            self._issue(BookedJob(cascade.job, Stream.CASCADE, tuple(cascade.pairs), None, launched=True))
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
            self._issue(BookedJob(store.job, Stream.STORE, tuple(store.pairs), None, launched=True))

    def owed(self, worker: int, stream: str, mark: int) -> list[int]:
        """What a mark says that this worker has copied and has not reported."""
        return [
            job.id
            for job in self.jobs.values()
            if job.launched and str(job.stream) == stream and job.id <= mark and worker not in job.reported
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
            if not _empties(tiers, job.writes):
                continue
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
            left = [job for job in self.jobs.values() if job.view != "FORGOTTEN"]
            causes += [f"{job} is in flight" for job in left if tiers != "device" or job.blocks(Tier.DEVICE)]
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
        for tier, pool in pools_of(engine).items():
            for key, block in pool.cache.blocks.items() if _empties(tiers, tier) else ():
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
        references = self._references(engine)
        for tier, pool in pools_of(engine).items():
            counts = references[tier]
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
        for (tier, pool), told in zip(pools_of(engine).items(), announced, strict=True):
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

    def check_withdrawn(self, engine: Engine, wanted: Sequence[BookedJob]) -> None:
        """These jobs were LIVE and are complete, or have expired: what a load or a promotion could not read is not
        offered again by the block that it is in."""
        for job in wanted:
            offered = pools_of(engine)[job.reads].cache.blocks
            for position in sorted(job.failed) if job.stream in (Stream.LOAD, Stream.PROMOTION) else ():
                source, _, key = job.pairs[position]
                if offered.get(key) == source:
                    raise Violation(
                        "failed-copies-are-never-published",
                        f"{job.reads.capitalize()} block {job.reads[0]}{source} can still be hit as {self.name(key)}, "
                        f"although {job} failed to read it.",
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

    def _wrongly_announced(self, tier: Tier, pool: BlockPool, told: Keys) -> Violation:
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

    def _holders(self, engine: Engine) -> Iterator[tuple[str, Tier, Iterable[int]]]:
        """Everybody who owns references, with the blocks of one tier, each once for each reference."""
        for number, request in engine.requests.items():
            if request.table:
                yield f"{request_name(number)}'s table", Tier.DEVICE, request.held
            if request.pins is not None:
                yield f"{request_name(number)}'s lookup", Tier.DEVICE, request.pins.device
                yield f"{request_name(number)}'s lookup", Tier.HOST, request.pins.host
        for step in engine.scheduler.pipeline:
            for number, share in step.shares.items():
                if share.left:
                    held = [block for block in share.blocks if block != NO_BLOCK]
                    yield f"step {step.step} for {request_name(number)}", Tier.DEVICE, held
        for job in self.jobs.values():
            for tier in Tier:
                if job.view != "FORGOTTEN" and (self._pins or tier is not Tier.DEVICE):
                    yield str(job), tier, job.blocks(tier)

    def _references(self, engine: Engine) -> dict[Tier, list[int]]:
        references = {tier: [0] * pool.size for tier, pool in pools_of(engine).items()}
        for _, tier, blocks in self._holders(engine):
            for block in blocks:
                references[tier][block] += 1
        return references

    def _miscounted(self, engine: Engine, tier: Tier, pool: BlockPool, counts: Sequence[int]) -> Violation:
        block = next(b for b, (has, owned) in enumerate(zip(pool.counts, counts, strict=True)) if has != owned)
        owners: Counter[str] = Counter()
        for name, held_on, blocks in self._holders(engine):
            owners.update([name for held in blocks if held_on is tier and held == block])
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
        reads: dict[Tier, set[int]] = {tier: set() for tier in Tier}
        writes: dict[Tier, set[int]] = {tier: set() for tier in Tier}
        for share in plan.shares:
            reads[Tier.DEVICE].update([block for block, _ in share.reads])
            writes[Tier.DEVICE].update([block for block, _ in share.writes])
        for stream, copies in (
            (Stream.STORE, plan.stores),
            (Stream.LOAD, plan.load_copies),
            (Stream.CASCADE, plan.cascades),
            (Stream.PROMOTION, plan.promotions),
        ):
            read, written = ENDS[stream]
            reads[read].update([pair[0] for copy in copies for pair in copy.pairs])
            writes[written].update([pair[1] for copy in copies for pair in copy.pairs])
        for job in self.jobs.values():
            if not job.launched or job.id in plan.flush:
                continue
            clash = writes[job.reads].intersection(job.blocks(job.reads))
            clash |= (writes[job.writes] | reads[job.writes]).intersection(job.blocks(job.writes))
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


def pools_of(engine: Engine) -> dict[Tier, BlockPool]:
    """The pool of each tier that there is."""
    pools = {Tier.DEVICE: engine.device_pool, Tier.HOST: engine.host_pool}
    return {**pools, Tier.SECOND: engine.second_pool} if engine.second_pool.size else pools


def _empties(tiers: Tiers, tier: Tier) -> bool:
    """Is nothing to be found on this tier after a reset of these? The second tier goes with the host."""
    return tiers != ("host" if tier is Tier.DEVICE else "device")
