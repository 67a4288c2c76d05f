"""Writes the cases as data for `tests/gpu`, without machine and harness: `python -m tests.seeds.write_gpu_cases`.

Everything comes from the cases here: what a case says of contract and scope becomes kvoffload's configuration.
"""

import dataclasses
import json
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.gpu.cases import FILE
from tests.seeds.driving import CASES, FACTS, Case, Step, vocabulary

from kvproof.targets.command import request_name
from kvproof.targets.kvoffload import config_of

SEEDS = Path(__file__).parent


def as_data(case: Case) -> dict[str, Any]:
    """What `tests/gpu/cases.py` plays; what is not expected, and modes that are off, are left out."""
    setting = case.setting
    config = config_of(setting)
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    words = vocabulary(case.scope)
    return {
        "about": case.about,
        "config": {name: value for name, value in dataclasses.asdict(config).items() if value != defaults.get(name)},
        "requests": [request_name(number) for number in range(len(setting.prompt_keys))],
        "prompts": setting.prompt_keys,
        "totals": setting.total_keys,
        "keys": setting.key_names,
        "steps": [_step(step, words[step.command].verb, list(words[step.command].args)) for step in case.steps],
    }


def _step(step: Step, verb: str, args: list[Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"command": step.command, "verb": verb, "args": args}
    if step.answer is not None:
        data["answer"] = step.answer
    if step.refused is not None:
        data["refused"] = step.refused
    expected = {fact: getattr(step, fact) for fact in FACTS if getattr(step, fact) is not None}
    if expected:
        data["expect"] = expected
    return data


def all_cases() -> str:
    """The file's text: a case a paragraph, in order of name. Not those in which a worker dies or with a second tier:
    CUDA has neither."""
    for module in pkgutil.iter_modules([str(SEEDS)]):
        import_module(f"tests.seeds.{module.name}")
    played = sorted(name for name, case in CASES.items() if not (case.scope.deaths or case.scope.second_blocks))
    entries = [f"{json.dumps(name)}: {_lines(as_data(CASES[name]))}" for name in played]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(case: dict[str, Any]) -> str:
    """One line for what the case is, then one for each step."""
    steps = ",\n  ".join(json.dumps(step) for step in case.pop("steps"))
    return json.dumps(case)[:-1] + f', "steps": [\n  {steps}]}}'


if __name__ == "__main__":
    FILE.write_text(all_cases(), encoding="utf-8")
    print(f"{FILE.relative_to(Path.cwd())}: {len(CASES)} cases")
