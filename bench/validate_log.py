"""How long `kvproof validate` takes: a log of the reference machine serving requests one after another, of two lengths.

python bench/validate_log.py [LINES]     (default 100000; it also takes a tenth of that, to show what grows)
"""

import random
import sys
import tempfile
import time
from pathlib import Path

from kvmodel import State
from kvmodel import actions as act
from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvmodel.request import ABSENT, DONE
from kvmodel.scope import Scope
from kvmodel.state import initial_state
from kvproof.engines.validate import run
from kvproof.job import Job
from kvproof.log.places import Places
from kvproof.log.recorder import Recorder
from kvproof.targets.outcome import Answer
from kvproof.targets.view import expected
from kvproof.targets.wording import command_of
from kvproof.verdict import Verdict

AT_ONCE = 8
"""Requests that are served at the same time (count)."""

RARE = (act.Abort, act.Preempt, act.Reset)
SCOPE = Scope(
    device_blocks=32, host_blocks=32, workers=2, prompts=("?",) * 64, resets=1_000_000, meanings=("invalidate", "evict")
)


def write_log(path: Path, discipline: Discipline, lines: int, seed: int) -> None:
    """A log of so many lines. Requests share prompts of four blocks, of which there are sixteen."""
    chance = random.Random(seed)
    prompts = [[f"{prompt}:{block}" for block in range(4)] for prompt in range(16)]
    places = Places(Contract(discipline), SCOPE)
    places.learned(key for prompt in prompts for key in prompt)
    state = initial_state(SCOPE)
    submitted = 0
    with Recorder(path, places.machine.setting, "the machine", runs=False, name=places.name) as recorder:
        written = 0
        while written < lines:
            serving = sum(request.phase not in (ABSENT, DONE) for request in state.requests)
            if serving < AT_ONCE:
                placed = places.taken(f"q{submitted}", chance.choice(prompts), (), state)
                assert placed is not None
                state, place = placed, places.of[f"q{submitted}"]
                submitted += 1
                recorder.setting = places.machine.setting
                action: act.Action = act.Submit(place)
            else:
                action = _chosen(places, state, chance)
            command = command_of(action)
            answer = places.machine.answer(state, action) if isinstance(action, act.Reset) else None
            state = places.machine.step(state, action)
            if command.verb != "run":
                recorder.wrote(command, Answer(answer), expected(state))
                written += 1


def _chosen(places: Places, state: State, chance: random.Random) -> act.Action:
    there = [action for action in places.machine.actions(state) if not isinstance(action, act.Submit)]
    weights = [0.02 if isinstance(action, RARE) else 1.0 for action in there]
    return chance.choices(there, weights)[0]


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for discipline in DISCIPLINES:
        for lines in (most // 10, most):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "engine.log"
                write_log(path, discipline, lines, seed=0)
                job = Job("validate", "", discipline, "", SCOPE, Contract(discipline), options={"log": str(path)})
                began, began_cpu = time.monotonic(), time.process_time()
                result = run(job, lambda words: None, lambda: False)
                seconds, cpu = time.monotonic() - began, time.process_time() - began_cpu
                assert result.verdict is Verdict.PASSED, result.detail
                took = f"{seconds:.1f} s ({cpu:.1f} s of CPU, {cpu / lines * 1e6:.0f} us a line)"
                print(f"{discipline}: {lines:,} lines in {took}; {result.detail}")


if __name__ == "__main__":
    main()
