"""Admission, growth, preemption, the launched step and its output: what happens to requests and the device pool."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from kvoffload.block_pool import BlockPool
from kvoffload.connector import Connector, SchedulerOutput, Settled
from kvoffload.errors import NothingToLaunch, NotRunnable, OutOfBlocks, ShutDown, UnknownRequest, WrongPhase
from kvoffload.ids import NO_BLOCK, Block, JobId, Key, Meaning, Pair, RequestId, Survivors, Tiers
from kvoffload.launched_step import LaunchedShare, LaunchedStep
from kvoffload.operations import Content
from kvoffload.plain import Plain
from kvoffload.plan import LaunchPlan, PlannedShare
from kvoffload.request import Phase, Pins, Request
from kvoffload.transfer_job import TransferJob

OWN_JOBS_OUTSTANDING = "own jobs outstanding"
BELOW_HOST = "what it would hit is on the second tier alone, and is promoted first"
OTHERS_SHORT_OF_BLOCKS = "requests that run are short of blocks"


class LookupResult(NamedTuple):
    """Blocks of the longest cached prefix, on the device and then on the host. All of them stay referenced."""

    device_blocks: tuple[Block, ...]
    host_blocks: tuple[Block, ...]


class Deferred(NamedTuple):
    """Look up again later; `cause` says what has to happen first."""

    cause: str


class Admission(NamedTuple):
    """A request got its blocks.

    device_blocks   found on the device, leading its table
    load            the job that fills the next blocks of the table from the host; None: nothing to load
    pairs           what that job copies, as (host block, device block, key)
    fresh           blocks that were taken for it, the rest of its table
    """

    device_blocks: tuple[Block, ...]
    load: JobId | None
    pairs: tuple[Pair, ...]
    fresh: tuple[Block, ...]


@dataclass(slots=True)
class Scheduler(Plain):
    """Every request and the device pool. It decides; the connector is told through its hooks.

    requests    in order of id, the ended ones (DONE) until they are collected
    depth       steps that may await their output at once (count)
    partial     requests are admitted with what is cached for them, and grow to the end of their prompt
    window      blocks before a block that its compute reads (count; 0: all of them)
    pipeline    the steps whose output is awaited, oldest first; outputs are handled in this order
    next_step   number of the next compute, which is also how many were launched
    generation  of the weights; what was computed with older ones is worthless
    shut        nobody is served any more, since a worker died
    """

    device: BlockPool
    connector: Connector
    requests: dict[RequestId, Request]
    depth: int = 1
    partial: bool = False
    window: int = 0
    pipeline: list[LaunchedStep] = field(default_factory=list)
    next_step: int = 0
    generation: int = 0
    shut: bool = False

    # The life of a request.

    def submit(self, request: RequestId, prompt: Sequence[Key], total: Sequence[Key]) -> None:
        if self.shut:
            raise ShutDown(f"request {request} comes after the end: a worker was declared dead")
        if request in self.requests:
            raise WrongPhase(f"request {request} was submitted before; ids are not used twice")
        keys = tuple(total)
        if not prompt or keys[: len(prompt)] != tuple(prompt):
            raise ValueError(f"request {request}: total must begin with the prompt, which must not be empty")
        if min(keys) < 1:
            raise ValueError(f"request {request}: keys must be positive")
        most = max(len(prompt), min(len(keys), self.window + 1)) if self.window else len(keys)
        if most > self.device.size:
            raise ValueError(f"request {request} needs {most} device blocks of {self.device.size}: it cannot end")
        in_order = not self.requests or request > next(reversed(self.requests))
        self.requests[request] = Request(request, tuple(prompt), keys)
        if not in_order:
            self.requests = dict(sorted(self.requests.items()))

    def collect(self, request: RequestId) -> None:
        """Forget a request that has ended."""
        if request not in self.requests:
            raise UnknownRequest(f"request {request}")
        if self.requests[request].phase is not Phase.DONE:
            raise WrongPhase(f"request {request} is {self.requests[request].phase}, not DONE")
        del self.requests[request]

    def can_promote(self, request: RequestId) -> bool:
        """It waits, and what it would hit next the second tier alone has. That is brought to the host for it once, and
        until then it is neither looked up nor admitted (vLLM PR 40020: `lookup` says to try again meanwhile)."""
        waiting = self.requests.get(request) if self.connector.promotes else None
        if waiting is None or waiting.phase is not Phase.WAITING or waiting.jobs:
            return False
        if waiting.promoted or waiting.pins is not None:
            return False
        return self.connector.can_promote(waiting, len(self.device.cache.run(waiting.prompt)))

    def promote(self, request: RequestId) -> TransferJob:
        waiting = self._in(request, Phase.WAITING)
        if not self.can_promote(request):
            raise WrongPhase(f"request {request} waits for transfers already, or there is nothing to promote for it")
        job = self.connector.promote(waiting, len(self.device.cache.run(waiting.prompt)))
        waiting.promoted = True
        return job

    def can_lookup(self, request: RequestId) -> bool:
        waiting = self.requests.get(request)
        if self.can_promote(request):
            return False
        return waiting is not None and waiting.phase is Phase.WAITING and not waiting.jobs and not self.growing()

    def lookup(self, request: RequestId) -> LookupResult | Deferred:
        waiting = self._in(request, Phase.WAITING)
        if self.growing():
            return Deferred(OTHERS_SHORT_OF_BLOCKS)
        if self.can_promote(request):
            return Deferred(BELOW_HOST)
        hits = self.device.cache.run(waiting.prompt)
        if self.connector.get_num_new_matched_tokens(waiting, len(hits)) is None:
            return Deferred(OWN_JOBS_OUTSTANDING)
        self._drop_pins(waiting)
        self.device.touch(hits)
        waiting.pins = Pins(tuple(hits), self.connector.touch_matched(waiting, len(hits)))
        return LookupResult(*waiting.pins)

    def release_lookup(self, request: RequestId) -> None:
        waiting = self._in(request, Phase.WAITING)
        if waiting.pins is None:
            raise WrongPhase(f"request {request} was not looked up")
        self._drop_pins(waiting)

    def can_admit(self, request: RequestId) -> bool:
        if not self.can_lookup(request):
            return False
        _, need, available = self._need(self.requests[request])
        return need <= available

    def admit(self, request: RequestId) -> Admission:
        admitted = self._in(request, Phase.WAITING)
        if admitted.deferred:
            raise WrongPhase(f"request {request} is deferred: {OWN_JOBS_OUTSTANDING}")
        if self.growing():
            raise OutOfBlocks(f"request {request} waits until those that run have the blocks that they need")
        if self.can_promote(request):
            raise WrongPhase(f"request {request} is deferred: {BELOW_HOST}")
        return self.place(admitted)

    def place(self, admitted: Request) -> Admission:
        """Admit a request that waits and is not deferred, while none that runs wants a block. OutOfBlocks."""
        hits, need, available = self._need(admitted)
        if need > available:
            raise OutOfBlocks(f"request {admitted.id} needs {need} fresh blocks; {available} are free")
        if admitted.pins is not None:
            matched = admitted.pins.host
            admitted.pins = None
        else:
            self.device.touch(hits)
            matched = self.connector.touch_matched(admitted, len(hits))
        fresh = self.device.take(need)
        admitted.table = [*hits, *fresh]
        admitted.computed = admitted.ahead = len(hits)
        admitted.generation = self.generation
        load = self.connector.update_state_after_alloc(admitted, fresh, matched, len(hits))
        admitted.promoted = False
        admitted.phase = Phase.RUNNING if load is None else Phase.LOADING
        if load is None:
            return Admission(tuple(hits), None, (), tuple(fresh))
        return Admission(tuple(hits), load.id, load.pairs, tuple(fresh))

    def can_wake(self, request: RequestId) -> bool:
        loading = self.requests.get(request)
        return loading is not None and loading.phase is Phase.LOADING and not loading.jobs

    def wake(self, request: RequestId) -> None:
        loading = self._in(request, Phase.LOADING)
        if loading.jobs:
            raise WrongPhase(f"request {request} still waits for its load")
        loading.phase = Phase.RUNNING

    def wants_block(self, request: RequestId) -> bool:
        """Everything it holds is computed or being computed, more is to come, and the pipeline has a place for it."""
        running = self.requests.get(request)
        return (
            running is not None
            and running.phase is Phase.RUNNING
            and running.ahead == len(running.table) < len(running.total)
            and len(self._shares(request)) < self.depth
        )

    def growing(self) -> bool:
        """Does a running request want a block? It comes before admissions: otherwise the block that a preemption
        under pressure freed goes back to the one preempted, for ever (vLLM admits nobody in a step that preempted). It
        comes before lookups too: what they keep is what it lacks."""
        return any(self.wants_block(request) for request in self.requests)

    def grow(self, request: RequestId) -> Block:
        running = self._in(request, Phase.RUNNING)
        if not self.wants_block(request):
            raise WrongPhase(f"request {request} has no use for another block now")
        if not self.has_room(request):
            raise OutOfBlocks(f"request {request} wants a block, and all {self.device.size} are referenced")
        left = self._behind(running)
        self.device.release([block for block in running.table[:left] if block != NO_BLOCK])
        running.table[:left] = [NO_BLOCK] * left
        [block] = self.device.take(1)
        running.table.append(block)
        return block

    def has_room(self, request: RequestId) -> bool:
        """Is a block free for it to grow into, or will be as it gives up what its window has left?"""
        if self.device.free:
            return True
        grower = self.requests[request]
        given_up = Counter(grower.table[: self._behind(grower)])
        del given_up[NO_BLOCK]
        return any(self.device.counts[block] == times for block, times in given_up.items())

    def pressure_victim(self) -> RequestId | None:
        if self.device.free:
            return None
        grower = next((request for request in self.requests if self.wants_block(request)), None)
        if grower is None or self.has_room(grower):
            return None
        for request in reversed(self.requests):
            if request > grower and self.requests[request].phase is Phase.RUNNING and not self._shares(request):
                return request  # who is in a launched step frees nothing yet (vLLM PR 49675)
        return None

    def preempt(self, request: RequestId) -> None:
        held = self._known(request)
        if held.phase not in (Phase.LOADING, Phase.RUNNING):
            raise WrongPhase(f"request {request} is {held.phase}; only LOADING and RUNNING ones can be preempted")
        if self.connector.request_preempted(held):
            held.phase = Phase.DRAINING
            held.returns = True
        else:
            self._leave(held, Phase.WAITING)

    def can_finish(self, request: RequestId) -> bool:
        running = self.requests.get(request)
        return (
            running is not None
            and running.phase is Phase.RUNNING
            and running.computed == len(running.total)
            and not self._shares(request)
        )

    def finish(self, request: RequestId) -> None:
        running = self._in(request, Phase.RUNNING)
        if not self.can_finish(request):
            raise WrongPhase(f"request {request} has not computed all of its blocks")
        self._end(running)

    def stop(self, request: RequestId) -> None:
        running = self._in(request, Phase.RUNNING)
        if not len(running.prompt) <= running.computed < len(running.total):
            raise WrongPhase(f"request {request} has no output that could stop it, or has had its last one")
        self._end(running)

    def abort(self, request: RequestId) -> None:
        ended = self._known(request)
        if ended.phase is Phase.DRAINING:
            if not ended.returns:
                raise WrongPhase(f"request {request} was aborted before; its load drains")
            ended.returns = False
            return
        self._drop_pins(ended)
        if self.connector.request_finished(ended):
            ended.phase = Phase.DRAINING
        else:
            self._leave(ended, Phase.DONE)

    # Steps.

    def computing(self) -> bool:
        """Would a launch now compute anything?"""
        return any(
            request.phase is Phase.RUNNING and request.ahead < len(request.table) for request in self.requests.values()
        )

    @property
    def handled_steps(self) -> int:
        """How many steps' outputs were handled, counted from the start."""
        return self.pipeline[0].step if self.pipeline else self.next_step

    def can_launch(self) -> bool:
        if len(self.pipeline) >= self.depth:
            return False
        return self.computing() or self.connector.has_work(self.requests.values(), self.generation)

    def launch(self) -> LaunchPlan:
        if len(self.pipeline) >= self.depth:
            raise NothingToLaunch(f"the output of step {self.pipeline[0].step} is not handled yet")
        shares = tuple(
            [
                self._share(request)
                for request in self.requests.values()
                if request.phase is Phase.RUNNING and request.ahead < len(request.table)
            ]
        )
        step = self.next_step if shares else None
        output = SchedulerOutput(step, shares, self.next_step, self.generation)
        plan = self.connector.build_connector_meta(output, self.requests.values())
        if plan is None:
            raise NothingToLaunch("no request computes, and there is nothing to copy")
        if step is not None:
            self.next_step += 1
            launched = LaunchedStep(step, {})
            for share in shares:
                request = self.requests[share.request]
                launched.shares[share.request] = LaunchedShare(request.ahead, tuple(request.table))
                request.ahead = len(request.table)
            self.pipeline.append(launched)
        return plan

    def handle_output(self) -> None:
        if not self.pipeline:
            raise NotRunnable("no step is launched whose output could be handled")
        for request_id, share in self.pipeline.pop(0).shares.items():
            if share.left:
                self.device.release([block for block in share.blocks if block != NO_BLOCK])
                continue
            request = self.requests[request_id]
            request.computed = len(share.blocks)
            if request.generation == self.generation:
                computed = slice(share.first, len(share.blocks))
                self.device.cache.publish(zip(share.blocks[computed], request.total[computed], strict=True))

    # What comes from elsewhere.

    def settle(self, job: Settled) -> None:
        """A transfer is complete: the request that waits for it waits no more."""
        request = self.requests.get(job.request)
        if request is None or job.job not in request.jobs:
            return
        request.jobs.discard(job.job)
        request.computed += job.loaded
        request.ahead += job.loaded
        if request.phase is Phase.DRAINING:
            self._drained(request)

    def face_failures(self, unstored: Set[Key], unreadable: Set[Block]) -> None:
        """Copies failed. Whoever counts on these keys being stored offers them again: also requests that passed over
        them because another one's store was on its way. A lookup that keeps a host block which could not be read is
        given up; what a load could not fill nobody shares, since it was never published."""
        if not unstored and not unreadable:
            return
        for request in self.requests.values():
            if request.phase is Phase.RUNNING:
                for position, key in enumerate(request.total[: request.stored]):
                    if key in unstored:
                        request.stored = position
                        break
            elif request.pins is not None and not unreadable.isdisjoint(request.pins.host):
                self._drop_pins(request)

    def shut_down(self) -> None:
        """Everything ends, and nothing is held any more, on any tier."""
        left = [share.blocks for step in self.pipeline for share in step.shares.values() if share.left]
        self.pipeline.clear()
        for request in self.requests.values():
            if request.phase is not Phase.DONE:
                self._drop_pins(request)
                self._leave(request, Phase.DONE)
                request.jobs.clear()
        self.connector.shut_down()
        for blocks in left:
            self.device.release([block for block in blocks if block != NO_BLOCK])
        self.shut = True

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers) -> bool:
        for request in self.requests.values():
            request.promoted = False
            if request.phase is Phase.WAITING:
                self._drop_pins(request)
            elif request.phase is Phase.RUNNING and requests == "keep":
                if meaning == "evict" and tiers != "device":
                    request.stored = 0
            elif tiers != "host":
                self._take_table(request)
        if meaning == "invalidate":
            self.generation += 1
        return self.connector.reset_cache(meaning, self.requests.values(), tiers)

    # Parts.

    def _known(self, request: RequestId) -> Request:
        known = self.requests.get(request)
        if known is None or known.phase is Phase.DONE:
            raise UnknownRequest(f"request {request}")
        return known

    def _in(self, request: RequestId, phase: Phase) -> Request:
        known = self._known(request)
        if known.phase is not phase:
            raise WrongPhase(f"request {request} is {known.phase}, not {phase}")
        return known

    def _shares(self, request: RequestId) -> list[LaunchedShare]:
        """Its parts of launched steps, oldest first, without those that it has left."""
        return [step.shares[request] for step in self.pipeline if step.carries(request)]

    def _need(self, request: Request) -> tuple[Sequence[Block], int, int]:
        """Device hits, how many fresh blocks are needed beside them, and how many are to be had.

        A hit that nobody references is still in the free queue, and must not be counted twice: it will be referenced,
        so it is no block to take (vLLM does the same before it compares). Nor twice where it is hit twice.
        """
        if request.pins is not None:
            need = self._reserve(request, len(request.pins.device), len(request.pins.host))
            return request.pins.device, need, self.device.free
        hits = self.device.cache.run(request.prompt)
        counts = self.device.counts
        unreferenced = sum([not counts[block] for block in set(hits)])
        matched = self.connector.get_num_new_matched_tokens(request, len(hits)) if self.partial else None
        return hits, self._reserve(request, len(hits), matched or 0), self.device.free - unreferenced

    def _reserve(self, request: Request, hits: int, matched: int) -> int:
        """Fresh blocks to admit it with, given how many are found on the device and on the host (counts).

        A partial admission takes the destinations of its load alone. Requests that so hold a part each, and wait for
        the rest, are kept from waiting for each other by `pressure_victim` and `growing` (vLLM issues 45387, 45388).
        """
        if not self.partial:
            return len(request.prompt) - hits
        return matched if hits or matched else 1

    def _behind(self, running: Request) -> int:
        """Leading positions whose blocks nothing reads any more once it has grown (count). Stores may: those hold what
        they read, or are waited for."""
        return max(0, running.computed - self.window) if self.window else 0

    def _share(self, request: Request) -> PlannedShare:
        contents = [
            (block, Content(key, request.generation)) for block, key in zip(request.table, request.total, strict=False)
        ]
        first = request.ahead
        reads = tuple([read for read in contents[:first] if read[0] != NO_BLOCK])
        return PlannedShare(request.id, reads, tuple(contents[first:]), first)

    def _drop_pins(self, request: Request) -> None:
        if request.pins is not None:
            self.device.release(request.pins.device)
            self.connector.release_matched(request.pins.host)
            request.pins = None

    def _drained(self, request: Request) -> None:
        """No load writes into the blocks of this request any more, or a fence keeps others from them."""
        self._leave(request, Phase.WAITING if request.returns else Phase.DONE)

    def _end(self, running: Request) -> None:
        self.connector.request_finished(running)
        self._leave(running, Phase.DONE)

    def _take_table(self, request: Request) -> None:
        """A reset takes away what a request holds on the device, if it holds anything."""
        if request.phase is Phase.DRAINING:
            self._drained(request)
        elif request.phase is Phase.LOADING:
            self.connector.request_reset(request)
            self._leave(request, Phase.WAITING)
        elif request.phase is Phase.RUNNING:
            self._leave(request, Phase.WAITING)

    def _leave(self, request: Request, phase: Phase) -> None:
        """The request gives up its table: to the launched steps that still use it, else to the pool.

        The youngest of these takes over the request's references on the blocks that it uses; the older ones, which use
        some of the same, get their own.
        """
        kept = 0
        for share in reversed(self._shares(request.id)):
            share.left = True
            if not kept:
                kept = len(share.blocks)
                continue
            self.device.touch(share.blocks)
        self.device.release(request.table[kept:] if kept else request.held)
        request.vacate(phase)
