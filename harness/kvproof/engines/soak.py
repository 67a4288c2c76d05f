"""soak: kvoffload on free-running streams, with real threads and bytes, under a client that does everything it may.

The one engine that is not deterministic: the seed decides every setting and every choice of the client, but not the
timing of the streams, on which later choices depend. So a failure carries the seed, and the commands as they were.

A soak is a sequence of episodes. Each has an engine and a device of its own, sizes drawn at random, and ends when its
requests have been submitted and everything has drained. One copy is one block copied on one worker, all layers. In one
episode of three copies fail, wholly or in one block, each by itself. Workers stall; where the contract has a deadline,
reports are lost and deadlines pass, of jobs that still run too.
"""

import importlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from typing import Final, NamedTuple

from kvmodel.contract import Contract
from kvmodel.scope import MEANINGS, Scope, validated
from kvmodel.tiers import TIERS
from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress
from kvproof.search.modes import turns
from kvproof.targets.command import COPYING, FREEABLE, RESETS, Command
from kvproof.targets.soaked import Setting, Soaked, Violation
from kvproof.verdict import Result, Verdict

TARGET: Final = "kvproof.targets.kvoffload_soak"
"""Imported only when a soak runs: it needs torch."""

COPIES: Final = 5_000
"""The plan, unless option `copies` says otherwise."""

REQUESTS: Final = 40
"""Requests of one episode (count)."""

LONGEST_PROMPT: Final = 6
BLOCK_BYTES: Final = 64
SMALL_HOST: Final = 3
"""Host blocks at most (count), where there is a second tier: else little of it is ever asked for."""

PATIENCE: Final = 10_000
"""Rounds of serving after which an engine that is left alone must have come to rest; some 200 is what it takes."""

SWITCH_S: Final = 0.0005
"""How long Python lets one thread run while others wait: a tenth of the usual, so that more orders are seen."""

RULES: Final[Mapping[str, tuple[str, str]]] = {
    "owners-account-for-references": ("kvmodel/owners.py", "vLLM PR 39726"),
    "free-means-unowned": ("kvmodel/block_pool.py", ""),
    "no-double-free": ("kvmodel/block_pool.py", ""),
    "no-use-after-free": ("kvmodel/owners.py", "vLLM PR 39726"),
    "fence-before-reuse": ("kvmodel/fence.py", "vLLM PR 41956"),
    "reads-what-was-written": ("kvmodel/streams.py", "vLLM PR 46278"),
    "published-after-all-copied": ("kvmodel/rules/report.py", ""),
    "workers-agree": ("kvmodel/rules/report.py", ""),
    "stale-completions-change-nothing": ("kvmodel/rules/report.py", "vLLM PR 48102"),
    "failed-copies-are-never-published": ("kvmodel/rules/report.py", "vLLM PR 49328"),
    "dropped-jobs-publish-nothing": ("kvmodel/rules/report.py", "vLLM PR 39726"),
    "true-reset-serves-nothing-old": ("kvmodel/rules/reset.py", "vLLM PR 39726"),
    "false-reset-serves-nothing-old": ("kvmodel/rules/reset.py", "vLLM PR 39726"),
    "false-reset-has-a-cause": ("kvmodel/rules/reset.py", "vLLM PR 39726"),
    "reset-converges": ("kvmodel/rules/reset.py", "vLLM PR 39726"),
    "no-block-stored-twice-at-once": ("kvmodel/policy.py", "vLLM PR 41289"),
    "pinned-is-not-evicted": ("kvmodel/rules/lookup.py", "vLLM PR 42289"),
    "refused-changes-nothing": ("kvmodel/rules/misuse.py", ""),
    "events-tell-what-can-be-hit": ("kvspecs/safety/events_tell_what_can_be_hit.py", "vLLM issue 49125"),
}
"""Where the rule behind a property stands, and where that comes from."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Soak until as many copies were made as option `copies` plans. ValueError if that is no number from 1.

    The modes take turns (`turns`); a contract with another than the default of one keeps to it.
    """
    started = time.monotonic()
    planned = _planned(job)
    opened: Callable[[Setting], Soaked] = importlib.import_module(TARGET).open_soaked
    total: Counter[str] = Counter()
    stopped = False
    with _switching_often():
        for episode in count():
            stopped = stopped or (total["copies"] < planned and cut())
            if stopped or total["copies"] >= planned:
                break
            chance = random.Random(f"{job.seed} {job.discipline} {episode}")
            setting = _setting(chance, job.contract, episode, job.device or "host")
            soaked = opened(setting)
            try:
                with closing(soaked):
                    for _ in _Client(chance, soaked, setting).episode():
                        copies = total["copies"] + soaked.counts["copies"]
                        progress(f"{copies:,} of {planned:,} copies, episode {episode}")
                        stopped = cut()
                        if stopped:
                            break
            except Violation as violation:
                failure = _failure(job, episode, setting, soaked, violation)
                return job.result(
                    Verdict.REFUTED,
                    time.monotonic() - started,
                    detail=failure.sentence,
                    failure=failure,
                    counts=_counts(total + soaked.counts, planned),
                )
            total += soaked.counts
            total["episodes"] += 1
    return job.result(
        Verdict.UNDETERMINED if stopped else Verdict.PASSED,
        time.monotonic() - started,
        detail=(f"cut short of {planned:,} copies: " if stopped else "") + _told(total),
        counts=_counts(total, planned),
    )


def _planned(job: Job) -> int:
    copies = job.options.get("copies", COPIES)
    if not isinstance(copies, int) or copies < 1:
        raise ValueError(f"option copies is {copies!r}, and not a number from 1")
    return copies


def _told(total: Counter[str]) -> str:
    return (
        f"{total['copies']:,} copies, {total['loads']:,} loads, {total['stores']:,} stores, {total['resets']:,} resets"
    )


def _counts(total: Counter[str], planned: int) -> dict[str, int]:
    """What was done, by name; the plan beside it only where it was not reached."""
    counts = {name.replace(" ", "_"): number for name, number in sorted(total.items())}
    counts.setdefault("copies", 0)
    if counts["copies"] < planned:
        counts["planned_copies"] = planned
    return counts


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# Settings.


def _setting(chance: random.Random, contract: Contract, episode: int, device: str) -> Setting:
    """Sizes at random; the modes take turns, so that each has its part of the plan, and so do failing copies, repeated
    blocks and windows: in 3, 5 and 7 episodes, where the modes take 8, so that each meets each. With reports of single
    jobs three episodes of four have a second tier."""
    modes = turns(contract)
    for field in ("store_mode", "output_from", "depth", "admission", "reports", "deadline"):
        if getattr(contract, field) != Contract._field_defaults[field]:
            modes = [mode for mode in modes if getattr(mode, field) == getattr(contract, field)]
    device_blocks = min(chance.randint(4, 12), chance.randint(4, 12))
    decode = chance.choice((0, 0, 1, 2, 3))
    longest = min(LONGEST_PROMPT, device_blocks - decode)
    scope = Scope(
        device_blocks,
        host_blocks=max(chance.randint(4, 8), chance.randint(4, 8)),
        workers=chance.choice((1, 2, 3, 4)),
        prompts=_prompts(chance, longest),
        decode=decode,
        resets=0,
        meanings=MEANINGS,
        tiers=TIERS,
        survivors=True,
        lookups=True,
        lazy_window=chance.choice((0, 0, 2, 4)),
        repeats=episode % 5 in (1, 3),
        window=2 if episode % 7 in (1, 4) and modes[episode % len(modes)].depth == 1 else 0,
    )
    mode = modes[episode % len(modes)]
    setting = Setting(
        mode,
        scope,
        layers=chance.choice((2, 3, 4)),
        block_bytes=BLOCK_BYTES,
        delays=None if chance.random() < 0.4 else chance.randrange(1 << 30),
        device=device,
        failing=chance.randrange(1 << 30) if episode % 3 == 1 else None,
    )
    below = chance.choice((0, 2, 4, 6))
    if below and not mode.marks:
        scope = scope._replace(second_blocks=below, host_blocks=min(scope.host_blocks, SMALL_HOST))
    return setting._replace(scope=validated(scope))


def _prompts(chance: random.Random, longest: int) -> tuple[str, ...]:
    """Prompts of few letters: most of them are asked for again, and many others begin alike."""
    letters, latest = chance.choice(("ab", "abc")), chance.choice((2, 3, 6))
    prompts: list[str] = []
    for _ in range(REQUESTS):
        known = chance.choice(prompts[-latest:]) if prompts else ""
        if known and chance.random() < 0.6:
            prompts.append(known)
            continue
        start = known[: chance.randint(0, longest)]
        length = chance.randint(max(1, len(start)), longest)
        prompts.append(start + "".join(chance.choices(letters, k=length - len(start))))
    return tuple(prompts)


# The client.


class _Mood(NamedTuple):
    """How one episode is driven; chances are those of one turn.

    haste   chance that a completion is reported when it could be
    submit, client, reset, fault, drain, quiet   a new request, some command, a reset, misuse, a drain point, a stop
    stall, resume   a worker stalls, or goes on again
    lose, expire    in a contract with a deadline: a report is lost, a deadline passes
    active  requests that are under way at once (count)
    """

    haste: float
    submit: float
    client: float
    reset: float
    fault: float
    drain: float
    quiet: float
    stall: float
    resume: float
    lose: float
    expire: float
    active: int


def _mood(chance: random.Random) -> _Mood:
    return _Mood(
        haste=chance.choice((0.2, 0.6, 0.95)),
        submit=0.25,
        client=chance.choice((0.03, 0.15, 0.4)),
        reset=chance.choice((0.002, 0.005, 0.03)),
        fault=0.04,
        drain=0.02,
        quiet=0.003,
        stall=0.01,
        resume=0.05,
        lose=0.03,
        expire=0.02,
        active=chance.randint(2, 8),
    )


_OF_A_REQUEST: Final = (
    *("lookup", "lookup", "release_lookup", "admit", "admit", "grow", "wake", "finish"),
    *("preempt", "preempt", "stop", "abort"),
)
_OF_NONE: Final = ("launch", "preempt_pressure")


class _Client:
    """Who submits, serves, resets and misuses one engine, and at last leaves it alone."""

    def __init__(self, chance: random.Random, soaked: Soaked, setting: Setting) -> None:
        self.chance = chance
        self.soaked = soaked
        self.workers = setting.scope.workers
        self.marks = setting.contract.marks
        self.expires = setting.contract.expires
        self.below = bool(setting.scope.second_blocks)
        self.requests = len(setting.scope.prompts)
        self.submitted = 0
        self.changed = True
        """Something was done since a scheduling call did nothing: only then can another call do anything."""
        self.mood = _mood(chance)

    def episode(self) -> Iterator[None]:
        """Everything, from the first request to the drain; yields between turns, and may be left then."""
        while self.submitted < self.requests:
            yield
            if self._happens(self.mood.quiet):
                yield from self._stop()
            else:
                self._turn()
        yield from self._stop()

    def _turn(self) -> None:
        mood, phases = self.mood, self.soaked.phases()
        if len(phases) < mood.active and self._happens(mood.submit):
            self._do("submit", self.submitted)
            self.submitted += 1
        elif self._happens(mood.client):
            self._command(phases)
        elif self._happens(mood.reset):
            self._do("reset", *self.chance.choice(RESETS))
        elif self._happens(mood.fault):
            self._misuse()
        elif self._happens(mood.drain):
            self.soaked.drain()
        elif self._happens(mood.stall):
            self.soaked.stall(self.chance.randrange(self.workers))
        elif self._happens(mood.resume):
            self.soaked.resume()
        elif self.expires and not self.marks and self._happens(mood.lose):
            self._lose_report()
        elif self.expires and self._happens(mood.expire):
            self._expire(self.soaked.expirable())
        elif not self._serve(mood.haste):
            self.soaked.wait()

    def _stop(self) -> Iterator[None]:
        """No command any more: every request must end, and everything drain. Then resets, on an idle engine too."""
        drained = False
        self.soaked.resume()
        for _ in range(PATIENCE):
            yield
            if self._serve(1.0) or self._expire(self.soaked.lost()):
                drained = False
            elif not drained:
                self.soaked.drain()
                drained = self.changed = True
            else:
                self.soaked.judge_rest()
                break
        else:
            phases = dict(self.soaked.phases())
            raise Violation(
                "every-request-can-finish",
                f"Left alone for {PATIENCE:,} rounds, the engine still serves requests {phases or 'of nobody'}.",
                "never at rest",
            )
        for reset in RESETS:
            self._do("reset", *reset)
        self.soaked.drain()

    def _serve(self, haste: float) -> bool:
        """What an engine does all the time: reports, output, ends of requests, a scheduling call. Was there any?"""
        soaked = self.soaked
        did = False
        for worker, copied in enumerate(soaked.copied()):
            jobs = [job for job in copied if self._happens(haste)]
            if jobs:
                self.chance.shuffle(jobs)
                soaked.report(worker, jobs)
                self.changed = did = True
        if soaked.output_ready() and self._happens(haste):
            did |= self._do("handle_output")
        # Where a worker lags, it depends on the timing whether a launch is part of a call: none is made, so that the
        # log needs no times to be exact.
        if self.changed and soaked.may_schedule():
            for request in soaked.finishable():
                did |= self._do("finish", request)
            scheduled = self._do("schedule")
            self.changed = scheduled
            did |= scheduled
        return did

    def _expire(self, jobs: Sequence[int]) -> bool:
        """Let the deadline of one of these pass, if there is any."""
        return bool(jobs) and self._do("expire", self.chance.choice(jobs))

    def _command(self, phases: Mapping[int, str]) -> None:
        verb = self.chance.choice((*_OF_A_REQUEST, *_OF_NONE, *(("promote",) if self.below else ())))
        if verb not in _OF_NONE:
            # Those that are loading above all; now and then one that has ended or never was.
            loading = [request for request, phase in phases.items() if phase == "LOADING"]
            self._do(verb, self.chance.choice([*phases, *loading * 3, self.chance.randrange(self.requests)]))
        elif verb != "launch" or self.soaked.may_schedule():
            self._do(verb)

    def _misuse(self) -> None:
        worker = self.chance.randrange(self.workers)
        reported = self.soaked.reported()
        if self.marks and self._happens(0.5):
            stream = self.chance.choice(COPYING)
            if self._happens(0.5):
                self._do("repeat_mark", worker, stream, self.chance.choice(("last", "first")))
            else:
                self._do("lose_mark", worker, stream)
        elif reported and not self.marks and self._happens(0.5):
            self._do("duplicate_report", *self.chance.choice(reported))
        elif self._happens(0.5):
            self._do("forge_report", worker)
        else:
            self._do("free_twice", self.chance.choice([what for what in FREEABLE if what != "second" or self.below]))

    def _lose_report(self) -> None:
        """Of a job that some worker has copied, if there is one. It ends when its deadline has passed."""
        copied = [(worker, job) for worker, jobs in enumerate(self.soaked.copied()) for job in jobs]
        if copied:
            self._do("lose_report", *self.chance.choice(copied))

    def _do(self, verb: str, *args: int | str) -> bool:
        did = self.soaked.perform(Command(verb, args))
        self.changed |= did
        return did

    def _happens(self, probability: float) -> bool:
        return self.chance.random() < probability


# Failures.


def _failure(job: Job, episode: int, setting: Setting, soaked: Soaked, violation: Violation) -> Failure:
    """The violation with everything that was done, at a scope that allows just this."""
    log = soaked.log()
    commands = tuple(command for command, _ in log)
    verbs = Counter(command.verb for command in commands)
    scope = setting.scope._replace(
        prompts=setting.scope.prompts[: max(1, verbs["submit"])],
        resets=verbs["reset"],
        duplicates=verbs["duplicate_report"] + verbs["repeat_mark"],
        losses=verbs["lose_mark"] + verbs["lose_report"],
        expiries=verbs["expire"],
        forgeries=verbs["forge_report"],
        double_frees=verbs["free_twice"],
        failures=verbs["fail_copy"],
        partial_failures=verbs["fail_block"],
    )
    rule, source = RULES.get(violation.property, ("", ""))
    return Failure(
        property=violation.property,
        sentence=f"{violation.sentence} Streams ran freely (seed {job.seed}, {setting}): a repeat may differ.",
        target=job.target,
        discipline=job.discipline,
        scope_name=f"episode {episode}",
        scope=scope,
        engine=job.engine,
        commands=commands,
        step=max(0, len(commands) - 1),
        contract_lines=(violation.contract,) if violation.contract else (),
        target_lines=(violation.target,) if violation.target else (),
        rule=rule,
        source=source,
        cause=violation.cause,
        notes=tuple(note for _, note in log),
        device=job.device or "host",
        contract=setting.contract,
    )
