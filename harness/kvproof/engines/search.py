"""search: every sequence of commands up to a length, given to a watched target, shortest first."""

import time

from kvmodel import Contract, Machine
from kvproof.engines.run_of import failure_of, run_of
from kvproof.failure import Failure, fingerprint
from kvproof.job import Cut, Job, Progress, reading_of
from kvproof.obligations.runs import is_watched
from kvproof.obligations.search import Commands, Digesting, Searching
from kvproof.search.modes import Variant
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import opener
from kvproof.targets.registry import load
from kvproof.verdict import Result, Verdict

LENGTH = 8
"""Commands of the longest sequences, unless the job's option `length` says otherwise."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """PASSED if no sequence breaks anything; REFUTED with the shortest that does. The target's modes one by one."""
    started = time.monotonic()
    target_class = load(job.target, job.device)
    if not (is_watched(target_class) and issubclass(target_class, Digesting)):
        return job.result(Verdict.SKIPPED, 0.0, detail="takes no snapshots of its state")
    longest, known = job.options.get("length", LENGTH), job.options.get("known", ())
    assert isinstance(longest, int)
    assert isinstance(known, tuple)
    seen: Failure | None = None
    states = 0
    counts = {"sequences": 0}
    done: list[str] = []
    turns = getattr(target_class, "turns", lambda contract: [contract])(job.contract)
    for contract in turns:
        searching = Searching(
            opener(job.target, job.device, Machine(contract, job.scope), reading_of(job)),
            lambda found: _known(job, found, known),
        )
        searched = searching.run(longest, cut, progress)
        states += searched.states
        counts["sequences"] += searched.sequences
        for commands in searched.passed.values():
            seen = seen or _failure(job, contract, commands)
        if searched.divergence is not None:
            failure = _failure(job, contract, searched.commands)
            seconds = time.monotonic() - started
            return job.result(Verdict.REFUTED, seconds, failure=failure, states=states, counts=counts)
        if searched.length < longest:
            detail = f"cut short: every sequence of up to {searched.length} of {longest} commands"
            return job.result(Verdict.UNDETERMINED, time.monotonic() - started, detail=detail, counts=counts)
        done.append(_modes(contract) or "default")
    amounts = f"{counts['sequences']:,} sequences, {states:,} states"
    detail = f"every sequence of up to {longest} commands ({', '.join(done)}): {amounts}"
    verdict = Verdict.PASSED if seen is None else Verdict.REFUTED
    return job.result(verdict, time.monotonic() - started, detail=detail, failure=seen, states=states, counts=counts)


def _known(job: Job, found: Divergence, known: tuple[str, ...]) -> str:
    identifier = fingerprint(found.property, job.target, found.cause)
    return identifier if identifier in known else ""


def _modes(contract: Contract) -> str:
    return "+".join(["lazy"] * contract.lazy + ["depth"] * (contract.depth > 1))


def _failure(job: Job, contract: Contract, commands: Commands) -> Failure:
    """The same commands once more, with what each of them did."""
    machine = Machine(contract, job.scope)
    run = run_of(machine, opener(job.target, job.device, machine, reading_of(job)), commands, lambda: False)
    assert run.divergence is not None
    variant = Variant("+".join(filter(None, (job.scope_name, _modes(contract)))), job.scope, contract)
    return failure_of(variant, job.target, job.engine, job.device, commands, run.divergence, run.notes, "shortest")
