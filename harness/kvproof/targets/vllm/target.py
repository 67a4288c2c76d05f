"""What the targets for vLLM's connectors have in common: vLLM's scheduler, and what clients may ask of it."""

from abc import abstractmethod
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Self

from kvmodel.contract import DEPTHS, Contract, StoreMode
from kvmodel.setting import Setting
from kvmodel.tiers import TIERS, objection
from kvproof.obligations import accounts, books, workers
from kvproof.obligations.books import Books, Unreadable
from kvproof.obligations.workers import Workers
from kvproof.targets.alone import Alone, sources
from kvproof.targets.command import Command, request_name
from kvproof.targets.outcome import Answer, Outcome, Refused
from kvproof.targets.target import StepTarget
from kvproof.targets.vllm import private, reports
from kvproof.targets.vllm.digest import digest
from kvproof.targets.vllm.engine import RELEASE, TOKENS_PER_BLOCK, Copies, Engine, driver
from kvproof.targets.vllm.known import as_known

FAILED_TO_RESET = "Failed to reset KV cache"
"""How the text begins of the exception by which vLLM's scheduler refuses a reset while blocks are in use."""


def driven_alone(copies: str, module: ModuleType) -> Alone:
    """How vLLM is asked for the same without kvproof: by the text of what drives it here.

    copies  makes the simulated copies, which the module has
    """
    return Alone(
        driver=sources(workers, books, accounts, private, reports, driver, module),
        begin=f"vllm = Vllm.of({copies}, {{device_blocks}}, {{host_blocks}}, {{workers}}, {{depth}})",
        calls={
            "submit": "vllm.submit({request}, {symbols}, {decoded})",
            "schedule": "vllm.schedule()",
            "run": "vllm.workers.run({worker}, {stream})",
            "handle_output": "vllm.handle_output()",
            "abort": "vllm.abort({request})",
            "reset": "vllm.reset_for({meaning}, {requests}, {tiers}{strict})",
            "drain": "vllm.drain({always})",
            "lose_report": "vllm.reports.lost[{worker}].add({job})",
            "duplicate_report": "vllm.reports.again[{worker}].add({job})",
        },
        owed={
            "rest unfinished": "not vllm.unfinished()",
            "rest unreported": "not vllm.workers.unfinished()",
            "rest device": "not held(vllm.books())",
            "rest host": "not held(vllm.books())",
            "hang request": "not vllm.unfinished()",
            "hang engine": "vllm.rests()",
            "misread": "not vllm.workers.misreads",
        },
        always={
            "pool device": "miscounted(vllm.books().device) is None",
            "pool host": "miscounted(vllm.books().host) is None",
            "owners device": "overdrawn(vllm.books()) is None",
            "unowned": "unowned(vllm.workers, vllm.books()) is None",
            "published": "mispublished(vllm.workers, vllm.books()) is None",
        },
    )


class ConnectorTarget(StepTarget):
    """One scheduler with one connector. A subclass says which, and shows its host tier."""

    watched = True
    tiers = TIERS
    beyond = frozenset({"lose_report", "duplicate_report"})
    verbs = frozenset({"submit", "schedule", "run", "handle_output", "abort", "reset", "drain"}) | beyond

    store_modes: tuple[StoreMode, ...] = ("eager",)
    connector: str
    """Name of the recording connector in `kvproof.targets.vllm.recording`."""

    def __init__(self, setting: Setting) -> None:
        scope = self.scope = setting.scope
        self.workers = Workers(scope.workers, scope.device_blocks + 1, self.host_blocks(setting), TOKENS_PER_BLOCK)
        self.deferred: set[int] = set()
        self.resets_left = scope.resets
        with as_known(RELEASE):
            self.engine = Engine(self.connector, self.extra(setting), self.copies(setting), setting, self.workers)
            wanted, there = self.host_blocks(setting), len(self.engine.host()[0].refs)
            if there != wanted:
                raise Unreadable(f"the CPU tier has {there} blocks, and should have {wanted}")
            self.connected()

    @abstractmethod
    def copies(self, setting: Setting) -> Copies:
        """How vLLM's connector is set up, with simulated copies."""

    def host_blocks(self, setting: Setting) -> int:
        """Blocks of the host tier, with those that nobody gets."""
        return setting.scope.host_blocks + self.copies(setting).unused

    def extra(self, setting: Setting) -> Mapping[str, Any]:
        """vLLM's `kv_connector_extra_config`."""
        return self.copies(setting).extra(setting.scope.host_blocks, setting.scope.workers)

    def connected(self) -> None:  # not every connector has more to be looked at
        """Look at what the simulated copies rely on. Raises Unreadable."""

    @abstractmethod
    def jobs_in_words(self, metadata: Any) -> list[str]:
        """The jobs of a launch, for people."""

    @classmethod
    def prepare(cls: type[Self], setting: Setting) -> None:
        """vLLM looks at the model in a process of its own, when its configuration is made."""
        cls(setting).close()

    @classmethod
    def turns(cls, contract: Contract) -> list[Contract]:
        """The modes that take turns in runs that sample: with what the engine can do, and none of its own if the
        contract has one that is not the default."""
        if contract.store_mode != "eager" or contract.depth != 1:
            return [contract]
        return [contract._replace(store_mode=mode, depth=depth) for depth in DEPTHS for mode in cls.store_modes]

    # What may be given.

    def enabled(self) -> list[Command]:
        with as_known(RELEASE):
            return self._enabled()

    def _enabled(self) -> list[Command]:
        engine = self.engine
        runs = [
            Command("run", (worker, stream))
            for worker in range(self.scope.workers)
            for stream in ("compute", "store", "load")
            if self.workers.runnable(worker, stream)
        ]
        aborts = [Command("abort", (number,)) for number in engine.unfinished()] if self.scope.aborts else []
        outputs = [Command("handle_output")] if engine.can_be_handled() else []
        busy = engine.scheduler.has_requests()
        if len(engine.awaited) == engine.depth:
            return [*outputs, *runs, *aborts]
        submits = [
            Command("submit", (number,)) for number in range(len(self.scope.prompts)) if number not in engine.requests
        ]
        steps = [Command("schedule")] if busy else outputs
        return [*steps, *runs, *submits, *aborts, *(self._resets() if self.resets_left else [])]

    def faults(self) -> list[Command]:
        """What vLLM's contract with its environment excludes and could happen now."""
        workers = range(self.scope.workers)
        lost = [
            Command("lose_report", (worker, copy.job))
            for worker in workers
            for copy in self.workers.ranks[worker].copied
            if copy.job not in self.engine.reports.lost[worker]
        ]
        again = [
            Command("duplicate_report", (worker, job))
            for worker in workers
            for job in self.engine.reports.repeatable(worker)
        ]
        return lost + again

    def _resets(self) -> list[Command]:
        """Every reset of the scope; vLLM's flag preempts whoever runs, whether or not the scope has survivors."""
        return [
            Command("reset", (meaning, requests, *([tiers] if tiers != "all" else [])))
            for tiers in self.scope.tiers
            for meaning in self.scope.meanings
            for requests in ("preempt", "keep")
            if (requests == "preempt" or self.scope.survivors) and not objection(meaning, requests, tiers)
        ]

    # The verbs.

    def perform(self, command: Command) -> Outcome:
        with as_known(RELEASE):
            return super().perform(command)

    def submit(self, request: int) -> Outcome:
        self.engine.submitted(request)
        return Answer()

    def abort(self, request: int) -> Outcome:
        self.engine.abort(request)
        return Answer()

    def run(self, worker: int, stream: str) -> Outcome:
        self.workers.run(worker, stream)
        return Answer()

    def lose_report(self, worker: int, job: int) -> Outcome:
        self.engine.reports.lost[worker].add(job)
        return Answer()

    def duplicate_report(self, worker: int, job: int) -> Outcome:
        self.engine.reports.again[worker].add(job)
        return Answer()

    def reset(self, meaning: str, requests: str, tiers: str = "all") -> Outcome:
        self.resets_left -= 1
        try:
            return Answer(self.engine.reset(requests, tiers))
        except RuntimeError as error:
            if not str(error).startswith(FAILED_TO_RESET):
                raise
            return Refused(f"RuntimeError: {error}")

    def schedule(self) -> Outcome:
        scheduled = self.engine.schedule()
        return Answer("; ".join(self._words(scheduled)))

    def handle_output(self) -> Outcome:
        before = set(self.engine.unfinished())
        self.engine.handle_output()
        ended = sorted(before - set(self.engine.unfinished()))
        return Answer(", ".join(f"{request_name(number)} ends" for number in ended))

    def _words(self, scheduled: Any) -> list[str]:
        """What one scheduling call did, from what the connector was told and from its metadata."""
        words = []
        connector = self.engine.scheduler.connector
        for what, identifier, details in connector.told:
            who = request_name(int(identifier))
            if what == "lookup" and details[1] is None:
                self.deferred.add(int(identifier))
                words.append(f"defer {who}")
            elif what == "lookup":
                self.deferred.discard(int(identifier))
            elif what == "admit":
                (blocks,), external = details
                table = " ".join(f"d{block}" for block in blocks)
                words.append(f"admit {who}: {table}" + (f", {external} tokens to load" if external else ""))
        connector.told.clear()
        words += [f"preempt {request_name(int(i))}" for i in sorted(scheduled.preempted_req_ids or ())]
        words += [
            f"compute {request_name(int(identifier))} {count}"
            for identifier, count in scheduled.num_scheduled_tokens.items()
        ]
        return words + self.jobs_in_words(scheduled.kv_connector_metadata)

    # What is seen.

    def digest(self) -> bytes:
        """Of everything: vLLM's scheduler with its connector, the workers, what is awaited, and what was asked for."""
        engine = self.engine
        return digest(
            engine.scheduler, engine.ranks, engine.aggregator, engine.awaited, self.workers.ranks, self.workers.age,
            self.workers.survivors,
            sorted(engine.requests), self.resets_left, self.engine.reports.lost, self.engine.reports.again,
        )  # fmt: skip

    def books(self) -> Books:
        with as_known(RELEASE):
            read = self.engine.books()
        return read._replace(deferred=tuple(sorted(self.deferred.intersection(read.unfinished))))
