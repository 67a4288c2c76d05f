"""The cases of `tests/seeds`, played on kvoffload alone.

`cases.json` holds them as data: commands, and what must be seen after them. It is written by
`python -m tests.seeds.write_gpu_cases` from the cases themselves, and a test in `tests/seeds` holds it to them.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.gpu.devices import Open, Opened

from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.errors import KVOffloadError
from kvoffload.operations import Content, Stream, Tier
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.scheduler import Deferred
from kvoffload.transfer_job import Direction, JobState

FILE = Path(__file__).with_name("cases.json")
CASES: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
NEVER_ISSUED = 7
DIRECTIONS = {"store": Direction.STORE, "load": Direction.LOAD}


class Played:
    """One case on one device: an engine with its runtime, and the words for what is seen of them."""

    def __init__(self, case: Mapping[str, Any], device: Opened) -> None:
        self.device = device
        self.engine = Engine.create(Config(**case["config"]))
        self.runtime = Runtime(self.engine, device)
        self.prompts, self.totals = case["prompts"], case["totals"]
        self.marks: dict[tuple[int, str], list[int]] = {}
        self.names, self.keys = case["requests"], case["keys"]

    def do(self, verb: str, args: list[Any]) -> bool | str | None:
        """True or False for a reset, the name of the refusal for what was refused, else None."""
        try:
            answer = VERBS[verb](self, *args)
        except KVOffloadError as refused:
            return type(refused).__name__
        assert self.device.misreads == []
        if isinstance(answer, Deferred):
            return "Deferred"
        return answer if isinstance(answer, bool) else None

    def report_mark(self, worker: int, stream: str, mark: int) -> None:
        self.runtime.deliver_mark(worker, DIRECTIONS[stream], mark)
        self.marks.setdefault((worker, stream), []).append(mark)

    def repeat_mark(self, worker: int, stream: str, which: str) -> None:
        said = self.marks[worker, stream]
        self.engine.report_mark(worker, DIRECTIONS[stream], said[-1] if which == "last" else said[0])

    def forge_report(self, worker: int) -> None:
        never = self.engine.connector.next_job + NEVER_ISSUED
        if self.engine.config.reports == "marks":
            self.engine.report_mark(worker, Direction.STORE, never)
        else:
            self.engine.report(worker, [never])

    def free_twice(self, what: str) -> None:
        if what == "request":
            self.engine.abort(next(r.id for r in self.engine.requests.values() if r.phase is Phase.DONE))
            return
        pool = self.engine.device_pool if what == "device" else self.engine.host_pool
        pool.release([next(iter(pool.free_blocks()))])

    def facts(self) -> dict[str, str]:
        """What a step may expect, in the words of `tests/seeds/driving.py`."""
        engine, device, host = self.engine, self.engine.device_pool, self.engine.host_pool
        requests = [(self.names[number], request) for number, request in engine.requests.items()]
        jobs = [job for job in engine.jobs.values() if job.state is not JobState.FORGOTTEN]
        return {
            "device": _numbers(sorted(device.counts, reverse=True)),
            "host": _numbers(sorted(host.counts, reverse=True)),
            "on_device": self._cached(sorted(key for key in device.cache.keys if key)),
            "on_host": self._cached(sorted(key for key in host.cache.keys if key)),
            "requests": " ".join(str(request.phase) for _, request in requests),
            "jobs": ", ".join(
                " ".join([f"{job.id} {job.direction.lower()} {job.state}", *[f"w{w}" for w in sorted(job.awaiting)]])
                for job in jobs
            ),
            "waits_for": ", ".join(f"{name} {_numbers(sorted(r.jobs))}" for name, r in requests if r.jobs),
            "found": ", ".join(
                f"{name} {self._cached([device.cache.keys[block] for block in r.pins.device]) or '-'}"
                f" | {self._cached([host.cache.keys[block] for block in r.pins.host]) or '-'}"
                for name, r in requests
                if r.pins is not None
            ),
            "kv": ", ".join(
                " ".join([name, *[self._held(block) for block in r.table]]) for name, r in requests if r.table
            ),
            "may_run": ", ".join(f"w{worker} {stream}" for worker, stream in self.device.runnable()),
        }

    def _cached(self, keys: list[int]) -> str:
        return " ".join(self.keys[key - 1] for key in keys)

    def _held(self, block: int) -> str:
        """What a device block truly holds; where workers differ, all of it."""
        generation = self.engine.scheduler.generation
        found: set[tuple[int, str]] = set()
        for worker in range(self.device.workers):
            content = self.device.content(Tier.DEVICE, worker, block)
            if isinstance(content, Content):
                old = content.generation != generation
                found.add((-content.key if old else content.key, "-" * old + self.keys[content.key - 1]))
            else:
                found.add((0, "?") if content == "UNWRITTEN" else (1 << 30, "torn"))
        return "/".join(word for _, word in sorted(found))


def _numbers(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


VERBS: dict[str, Callable[..., object]] = {
    "submit": lambda p, request: p.engine.submit(request, p.prompts[request], p.totals[request]),
    "lookup": lambda p, request: p.engine.lookup(request),
    "release_lookup": lambda p, request: p.engine.release_lookup(request),
    "admit": lambda p, request: p.engine.admit(request),
    "grow": lambda p, request: p.engine.grow(request),
    "preempt_pressure": lambda p: p.engine.preempt_under_pressure(),
    "launch": lambda p: p.runtime.launch(),
    "schedule": lambda p: p.runtime.schedule(),
    "run": lambda p, worker, stream: p.device.run(worker, Stream(stream)),
    "report": lambda p, worker, job: p.runtime.deliver(worker, [job]),
    "report_mark": lambda p, *mark: p.report_mark(*mark),
    "report_all": lambda p, worker: p.runtime.deliver(worker, sorted(p.device.copied(worker))),
    "wake": lambda p, request: p.engine.wake(request),
    "handle_output": lambda p: p.runtime.handle_output(),
    "finish": lambda p, request: p.engine.finish(request),
    "stop": lambda p, request: p.engine.stop(request),
    "preempt": lambda p, request: p.engine.preempt(request),
    "abort": lambda p, request: p.engine.abort(request),
    "reset": lambda p, *what: p.engine.reset(*what),
    "fail_copy": lambda p, worker, stream: p.device.run_failing(worker, Stream(stream)),
    "fail_block": lambda p, worker, stream, position: p.device.run_failing(worker, Stream(stream), (position,)),
    "expire": lambda p, job: p.engine.expire(job),
    "duplicate_report": lambda p, worker, job: p.engine.report(worker, [job]),
    "lose_report": lambda p, worker, job: p.device.collect(worker, job),
    "repeat_mark": lambda p, *mark: p.repeat_mark(*mark),
    "lose_mark": lambda p, worker, stream: p.runtime.workers[worker].get_mark(DIRECTIONS[stream]),
    "forge_report": lambda p, worker: p.forge_report(worker),
    "free_twice": lambda p, what: p.free_twice(what),
}


def play(name: str, open_device: Open) -> None:
    """Take every step of a case on a fresh gated device, and compare what was expected of it."""
    case = CASES[name]
    config = case["config"]
    device = open_device(config.get("workers", 1), config["device_blocks"], config["host_blocks"], gated=True)
    try:
        played = Played(case, device)
        before = played.facts()
        for number, step in enumerate(case["steps"], start=1):
            where = f"{name}, step {number}: {step['command']}"
            answer = played.do(step["verb"], step["args"])
            after = played.facts()
            expected = step.get("refused", step.get("answer"))
            assert answer == expected, f"{where}: answered {answer} and not {expected}"
            if "refused" in step:
                assert after == before, f"{where}: was refused and changed something"
            wanted: dict[str, str] = step.get("expect", {})
            wrong = [
                f"{fact} {after[fact]!r} and not {value!r}" for fact, value in wanted.items() if after[fact] != value
            ]
            assert not wrong, f"{where}: {', '.join(wrong)}"
            before = after
    finally:
        device.close()
