"""The pages of the reference that are made from the code: `python -m tests.docs.reference` writes them."""

import argparse
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from kvproof.cli import VERBS
from kvproof.cli.flags import Parser
from kvproof.scopes import SCOPES, describe_scope
from kvproof.targets import command
from kvproof.verdict import Verdict
from kvspecs.catalogue import LIVENESS, NAMES, SAFETY, sentence_of
from kvspecs.proof.invariants import ALL as INVARIANTS
from kvspecs.proof.obligations import properties as proved
from kvspecs.proof.transitions import TRANSITIONS
from tests.docs.typing_page import ROOT

MADE = "<!-- Made by python -m tests.docs.reference; a test holds it against the code. -->"


class _Built(Exception):
    """A verb has built its parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def parser_of(verb: str) -> argparse.ArgumentParser:
    """The parser that a verb builds, as the verb itself builds it."""

    def stop(parser: Parser, words: object) -> argparse.Namespace:
        raise _Built(parser)

    module = importlib.import_module(f"kvproof.cli.{VERBS[verb].module}")
    with patch.object(Parser, "read", stop):
        try:
            module.run([])
        except _Built as built:
            return built.parser
    raise AssertionError(f"{verb} reads no arguments")


def command_line() -> str:
    lines = ["# Command line", "", MADE, "", "Every verb has `--help`, and takes `--json` and `--junit`.", ""]
    for verb, about in VERBS.items():
        parser = parser_of(verb)
        lines += [f"## kvproof {verb}", "", parser.description or about.says, "", "| | |", "| --- | --- |"]
        lines += [_argument(action) for action in parser._actions if "--help" not in action.option_strings]
        lines.append("")
    return "\n".join(lines)


def _argument(action: argparse.Action) -> str:
    name = " ".join(word for word in (*action.option_strings[:1], str(action.metavar or "")) if word)
    optional = not action.option_strings and action.nargs == "?"
    written = f"[{name}]" if optional else name
    return f"| `{_cell(written)}` | {_cell(action.help or '')} |"


def _cell(text: str) -> str:
    """What a table takes: a bar would end the cell."""
    return text.replace("|", "\\|")


def properties() -> str:
    lines = ["# Properties", "", MADE, ""]
    lines += [
        "What is true of every sound engine. Each is a module of `specs/kvspecs` of the same name, with its predicate.",
        "Those that are proved for all sizes are so by the [formulas](formulas.md) named beside them: invariants,",
        "then those of single transitions; [what is proved](../proofs.md) says what that means.",
        "",
    ]
    for title, names in (
        ("Safety", [p.name for p in SAFETY]),
        ("Liveness", [p.name for p in LIVENESS]),
        ("Of targets alone", list(NAMES[len(SAFETY) + len(LIVENESS) :])),
    ):
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"### {name}", "", sentence_of(name), "", *_about(name)]
    return "\n".join(lines)


def _about(name: str) -> Iterator[str]:
    known = {p.name: p for p in SAFETY}
    if name in known and known[name].holds_for != "all targets":
        yield f"Holds for {known[name].holds_for}."
        yield ""
    if name not in proved():
        return
    formulas = [i.name for i in INVARIANTS if i.serves == name]
    formulas += [t.name for t in TRANSITIONS if t.serves == name]
    links = ", ".join(f"[`{formula}`](formulas.md#{formula})" for formula in formulas)
    yield "Proved for all sizes" + (f": {links}." if links else ".")
    yield ""


def formulas() -> str:
    lines = ["# Formulas", "", MADE, ""]
    lines += [
        "What is proved of every number of blocks, requests, jobs and workers: each formula as `specs/kvspecs/proof`",
        "has it. One function is a formula of Z3 in a proof, and in `kvproof conform` it is true or false of an",
        "engine's own state.",
        "",
        "`w` has what never changes, such as the value for no key; `s` is the state, `t` the state after an action",
        "with the parameters `p`.",
        "",
        "## Invariants",
        "",
        "They hold of every reachable state.",
        "",
    ]
    for invariant in INVARIANTS:
        under = f" Under {invariant.only} alone." if invariant.only else ""
        about = f"{_sentence(invariant.reason)}{under} It serves {_served(invariant.serves)}."
        lines += [f"### {invariant.name}", "", about, "", *_formula(invariant.formula, invariant.sorts)]
    lines += [
        "## Transitions",
        "",
        "They hold of every single transition, or of those of the actions that are named.",
        "",
    ]
    for transition in TRANSITIONS:
        of = f"Of {', '.join(transition.actions)}." if transition.actions else "Of every action."
        but = f" Not of {', '.join(transition.but)}." if transition.but else ""
        about = f"{of}{but} It states {_served(transition.serves)}."
        lines += [f"### {transition.name}", "", about, "", *_formula(transition.formula, transition.sorts)]
    return "\n".join(lines)


def _sentence(reason: str) -> str:
    return f"{reason[0].upper()}{reason[1:].rstrip('.')}."


def _served(name: str) -> str:
    return f"[{name}](properties.md#{name})"


SORTS = {
    "D": "device block",
    "H": "host block",
    "R": "request",
    "J": "job",
    "S": "step",
    "W": "worker",
    "K": "key",
}


def _formula(formula: Callable[..., object], sorts: str) -> Iterator[str]:
    """For which elements it holds, and the function as it is written."""
    elements = [*inspect.signature(formula).parameters][-len(sorts) :] if sorts else []
    named = [f"{SORTS[sort]} `{element}`" for element, sort in zip(elements, sorts, strict=True)]
    if named:
        yield f"For every {', '.join(named)}:"
        yield ""
    yield from ("```python", inspect.getsource(formula).rstrip(), "```", "")


def commands() -> str:
    lines = ["# Commands, scopes and verdicts", "", MADE, ""]
    lines += [
        "## Commands",
        "",
        "What a trace is made of, and what a target is given.",
        "",
        "| verb | takes |",
        "| --- | --- |",
    ]
    for verb, parameters in command.VERBS.items():
        takes = ", ".join(_parameter(parameter) for parameter in parameters)
        lines.append(f"| `{verb}` | {takes} |")
    lines += [
        "",
        "## Scopes",
        "",
        "Device blocks / host blocks / workers, prompts; then what is on.",
        "",
        "| | |",
        "| --- | --- |",
    ]
    lines += [f"| `{name}` | {_cell(describe_scope(scope))} |" for name, scope in SCOPES.items()]
    lines += [
        "",
        "Sizes change as in `s3,host=3,lookups=yes`; `kvproof check --scope s3,x=1` lists the names of all.",
        "",
    ]
    lines += ["## Verdicts", "", *[f"- `{verdict}`" for verdict in Verdict], ""]
    return "\n".join(lines)


def _parameter(parameter: command.Parameter) -> str:
    words = f": {' or '.join(parameter.values)}" if parameter.values else ""
    return f"{parameter.name}{words}" + (f" ({parameter.default})" if parameter.default else "")


PAGES = {
    "command-line.md": command_line,
    "properties.md": properties,
    "formulas.md": formulas,
    "commands.md": commands,
}
FOLDER = Path(ROOT) / "docs" / "reference"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, made in PAGES.items():
        (FOLDER / name).write_text(made())


if __name__ == "__main__":
    main()
