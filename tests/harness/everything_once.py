"""Every deterministic engine once, in a process of its own: prints what it did, to be compared with another process."""

import hashlib
import json
from collections.abc import Callable

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvproof import lockstep
from kvproof.engines import conform, explore, fuzz
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.targets.outcome import Outcome
from kvproof.targets.target import Target
from kvproof.targets.view import View
from kvproof.verdict import Result

Engine = Callable[[Job, Callable[[str], None], Callable[[], bool]], Result]

COMMANDS = 400

STEPS = "tests.harness.step_target:StepKVOffload"
BROKEN = "tests.harness.broken_targets"


def main() -> None:
    given: list[Command] = []
    real = lockstep.performed

    def recorded(target: Target, command: Command) -> tuple[Outcome, View]:
        given.append(command)
        return real(target, command)

    lockstep.performed = recorded
    said: dict[str, object] = {}

    def run(
        name: str, engine: Engine, target: str, discipline: Discipline, scope: str, device: str = "", seed: int = 0
    ) -> None:
        options = {"commands": COMMANDS, "cover": "transitions"}
        contract = Contract(discipline)
        job = Job(name, target, contract.discipline, scope, SCOPES[scope], contract, seed, None, device, options)
        given.clear()
        result = engine(job, lambda text: None, lambda: False)
        found = result.failure
        said[f"{name} {target} {device} {discipline} {scope} {seed}"] = {
            "verdict": result.verdict,
            "states": result.states,
            "transitions": result.transitions,
            "counts": result.counts,
            "detail": result.detail,
            "given": hashlib.sha256(repr(given).encode()).hexdigest(),
            "failure": found and [found.fingerprint, found.property, found.sentence, *map(str, found.commands)],
        }

    for discipline in DISCIPLINES:
        run("explore", explore.run, "machine", discipline, "s1")
        run("conform", conform.run, "kvoffload", discipline, "s1", "ledger")
        for seed in (0, 1):
            run("fuzz", fuzz.run, "kvoffload", discipline, "fuzz", "ledger", seed)
        run("fuzz", fuzz.run, STEPS, discipline, "fuzz")
        for broken in ("AlwaysFalse", "StaleReferences", "HitsWhatIsNotCached"):
            run("fuzz", fuzz.run, f"{BROKEN}:{broken}", discipline, "fuzz")
    run("conform", conform.run, "kvoffload", "pinning", "s1", "host")
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
