"""The blocks of commands that no test types, and why: all of them. A block that is neither typed nor in here fails."""

from tests.docs.blocks import COMMANDS, Block

UNTYPED = {
    ("docs/how-to/check-your-engine.md", "python3.11 -m venv venv && . venv/bin/activate"): "downloads torch",
    ("docs/how-to/run-on-a-gpu.md", "make gpu"): "needs a GPU",
    ("docs/kill-matrix.md", "make bugs"): "CI runs the first line itself; the second takes hours",
    ("docs/track-record.md", "kvproof replay tests/traces/vllm/88aff6.trace.itf.json --target vllm-offloading"): (
        "needs vLLM; tests/vllm replays the same traces"
    ),
    (
        "docs/track-record.md",
        ".venv-vllm/bin/python -m tests.vllm.versions /tmp/releases",
    ): "downloads 4 GB of releases",
    ("docs/tutorial.md", "python3.11 -m venv venv && . venv/bin/activate"): "downloads torch",
}
"""By page and first command, without its remark. The page gives the reason too, before the block (`blocks.NOT_RUN`)."""

OUTSIDE_OF_CI = {
    "mutants": "hours: every night",
    "bugs-compare": "hours: by hand",
}
"""Targets of make that a page shows and CI does not run. A block of nothing but make is not typed: CI is it."""


def first_command(block: Block) -> str:
    """The first line of a block as it is typed, without the remark after it."""
    return block.lines[0].removeprefix("$ ").partition("   #")[0].strip()


def is_of_make(block: Block) -> bool:
    return block.kind in COMMANDS and all(line.startswith(("make ", "bash .ci/run")) for line in block.lines)


def targets(block: Block) -> list[str]:
    """What the lines of a block of make build: `make lint types ARGS="-k x"   # words`, or CI itself."""
    made = [line.partition("#")[0].partition("=")[0].split()[1:] for line in block.lines if line.startswith("make ")]
    return [word for words in made for word in words if word.islower()]
