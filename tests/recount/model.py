"""The Murphi model of one scope: sizes, discipline and prompts in front of `machine.m`; and what rumur counts in it."""

import re
import shutil
import subprocess
from pathlib import Path

from kvmodel.contract import Discipline
from kvmodel.scope import Scope

MACHINE = Path(__file__).with_name("machine.m")
JOBS = 8
"""Rows of the model's job table. A state with more of them is an error of the model, which rumur reports."""
COUNTED = re.compile(r"(\d+) states, (\d+) rules fired")


class NotCounted(Exception):
    """rumur or the compiler failed, or the model is in error; the message holds their output."""


def missing_tools() -> list[str]:
    """Of the two programs that a recount needs, those that are not installed."""
    return [tool for tool in ("rumur", "gcc") if shutil.which(tool) is None]


MODELLED = frozenset(
    {
        *("device_blocks", "host_blocks", "workers", "prompts", "resets", "meanings", "aborts", "preempts"),
        "lazy_window",  # sizes a mode that the model does not have, and is nothing without it
    }
)


def refusal_of(scope: Scope) -> str:
    """Why the model does not have this scope; empty: it does."""
    for field, value in scope._asdict().items():
        if field not in MODELLED and value != Scope._field_defaults[field]:
            return f"the Murphi model has no {field}"
    return ""


def source_of(discipline: Discipline, scope: Scope, blank: bool) -> str:
    """The model's text. blank: contents that nothing reads any more are forgotten."""
    prefixes: list[str] = []
    for prompt in scope.prompts:
        prefixes += [prompt[: end + 1] for end in range(len(prompt)) if prompt[: end + 1] not in prefixes]
    constants = {
        "D": scope.device_blocks,
        "H": scope.host_blocks,
        "W": scope.workers,
        "R": len(scope.prompts),
        "P": max(map(len, scope.prompts)),
        "K": len(prefixes),
        "J": JOBS,
        "RESETS": scope.resets,
        "PINNING": discipline == "pinning",
        "ABORTS": scope.aborts,
        "PREEMPTS": scope.preempts,
        "INVALIDATE": "invalidate" in scope.meanings,
        "EVICT": "evict" in scope.meanings,
        "BLANK": blank,
    }
    lines = ["const", *[f"  {name}: {int(value)};" for name, value in constants.items()], ""]
    lines.append("function length(r: 0..R-1): 0..P; begin")
    lines += [f"  if r = {number} then return {len(prompt)}; end;" for number, prompt in enumerate(scope.prompts)]
    lines += ["end;", "", "function key_of(r: 0..R-1; i: 0..P-1): 0..K; begin"]
    for number, prompt in enumerate(scope.prompts):
        for position in range(len(prompt)):
            key = prefixes.index(prompt[: position + 1]) + 1
            lines.append(f"  if r = {number} & i = {position} then return {key}; end;")
    lines += ["end;", "", MACHINE.read_text()]
    return "\n".join(lines)


def recounted(source: str, folder: Path, optimised: str = "-O1") -> tuple[int, int]:
    """States and transitions of a model, as rumur counts them. Raises NotCounted. The folder gets its files.

    optimised  how far the compiler is to optimise: for a small model it takes longer to than the count takes
    """
    model, verifier, program = folder / "kv.m", folder / "kv.c", folder / "kv"
    model.write_text(source)
    _output_of(
        "rumur",
        *("--quiet", "--threads", "1", "--deadlock-detection", "off", "--symmetry-reduction", "exhaustive"),
        *("--counterexample-trace", "off", "--output", str(verifier), str(model)),
    )
    _output_of("gcc", "-std=c11", optimised, "-o", str(program), str(verifier), "-lpthread")
    output = _output_of(str(program))
    found = COUNTED.search(output)
    if found is None or "No error found" not in output:
        raise NotCounted(f"rumur's verifier did not count to the end: {output[-2000:]}")
    return int(found[1]), int(found[2])


def _output_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotCounted(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
