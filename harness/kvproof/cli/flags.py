"""The flags that verbs share, and how they are read. Every mistake is one sentence."""

import argparse
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from kvmodel.contract import ADMISSIONS, DEADLINES, DEPTHS, DISCIPLINES, OUTPUT_FROM, REPORTS, STORE_MODES, Discipline
from kvmodel.errors import BadScope
from kvmodel.scope import Scope
from kvproof.bounded import Unfit, read_bounded
from kvproof.budget import parse_budget, parse_time
from kvproof.cli.progress import waiting_for
from kvproof.known import read_known
from kvproof.obligations.runs import is_watched
from kvproof.obligations.watched import READINGS
from kvproof.plan import Selection
from kvproof.report.json_report import check_destination
from kvproof.scopes import parse_scope
from kvproof.targets.declared import declared_disciplines
from kvproof.targets.registry import DEVICES, OURS, check_name, families, is_ours, load
from kvproof.usage import BadUsage

MAX_PYPROJECT_BYTES = 1024 * 1024

LARGEST_SEED = 2**63 - 1

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """An argument parser that knows no abbreviations, no repeated flags, and one-sentence errors."""

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(prog=f"kvproof {verb}", description=description, allow_abbrev=False)
        self.add_argument("--json", metavar="FILE|-", action=_Once, help="write the results as JSON to a file, or to -")
        self.add_argument("--junit", metavar="FILE", action=_Once, help="write them as JUnit XML to a file")

    def error(self, message: str) -> NoReturn:
        sentence = message.removeprefix("argument ").replace("unrecognized arguments:", "there is no flag or name")
        raise BadUsage(f"{self.prog.removeprefix('kvproof ')}: {sentence}; {self.prog} --help lists what there is")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The parsed arguments. Raises BadUsage."""
        arguments = self.parse_args(_joined(words))
        if arguments.json is not None:
            check_destination(arguments.json)
        if arguments.junit == "-":
            raise BadUsage("--junit takes a file, and not -; --json can be written to -")
        if arguments.junit is not None:
            check_destination(arguments.junit)
        return arguments


class _Once(argparse.Action):
    """Stores a value, and refuses a second one: two values contradict each other."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        if getattr(namespace, f"{self.dest} was given", False):
            raise BadUsage(f"{self.option_strings[0]} is given twice; give it once")
        setattr(namespace, f"{self.dest} was given", True)
        setattr(namespace, self.dest, values)


def _joined(words: Sequence[str]) -> list[str]:
    """`--budget -5s` as `--budget=-5s`: a negative value is a wrong value, and not an unknown flag."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-\d", word) and joined and re.fullmatch(r"--[a-z-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _sentence(read: Callable[[str], T]) -> Callable[[str], T]:
    """A reader for argparse that keeps the reader's own words."""

    def reading(text: str) -> T:
        try:
            return read(text)
        except BadScope as error:
            raise BadUsage(str(error)) from None

    return reading


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_SEED):
        raise BadUsage(f"seed {text!r:.40} is not a number from 0 to {LARGEST_SEED}")
    return int(text)


def _word(name: str, words: Sequence[str]) -> Callable[[str], str]:
    def reading(text: str) -> str:
        if text not in words:
            raise BadUsage(f"{name} {text!r:.40} does not exist; use {', '.join(words[:-1])} or {words[-1]}")
        return text

    return reading


def _add_choice(parser: Parser, name: str, choices: Sequence[object], says: str) -> None:
    """A flag that takes one of these words. name: as sentences call it; the flag has hyphens for blanks."""
    words = tuple(map(str, choices))
    flag = f"--{name.replace(' ', '-')}"
    parser.add_argument(flag, metavar="|".join(words), action=_Once, type=_word(name, words), help=says)


def add_target(parser: Parser) -> None:
    """--target, --device."""
    parser.add_argument(
        "--target",
        metavar="NAME",
        action=_Once,
        help="a registered name, package.module:Class or file.py:Class (else [tool.kvproof] target, else kvoffload)",
    )
    parser.add_argument(
        "--device",
        metavar="|".join(("auto", *DEVICES)),
        action=_Once,
        type=_word("device", ("auto", *DEVICES)),
        default="auto",
        help="which device of kvoffload; auto: what the verb is made for",
    )


def add_patience(parser: Parser) -> None:
    """--patience."""
    parser.add_argument(
        "--patience",
        metavar="TIME",
        action=_Once,
        type=partial(parse_time, "patience"),
        help="how long one command may take until it is a hang (else as the target says in patience_s, else 10s)",
    )


def add_selection(parser: Parser) -> None:
    """The flags of every verb that runs engines."""
    add_target(parser)
    add = parser.add_argument
    add(
        "--scope",
        metavar="NAME",
        action=_Once,
        type=_sentence(parse_scope),
        help="s3, or with sizes changed: s3,host=3",
    )
    _add_choice(parser, "discipline", DISCIPLINES, "one alone")
    _add_choice(parser, "store mode", STORE_MODES, "when blocks are stored (else as planned)")
    _add_choice(parser, "output-from", OUTPUT_FROM, "whose compute ends a step (else as planned)")
    _add_choice(parser, "depth", DEPTHS, "steps that may await their output at once (else as planned)")
    _add_choice(
        parser,
        "admission",
        ADMISSIONS,
        "with room for the whole prompt, or for what is loaded alone (else as planned)",
    )
    _add_choice(parser, "deadline", DEADLINES, "what becomes of a job that is not reported (else as planned)")
    _add_choice(parser, "reports", REPORTS, "what workers report of their copies (else as planned)")
    add("--seed", metavar="N", action=_Once, type=_seed, default=0, help="of everything random (default 0)")
    add("--budget", metavar="TIME", action=_Once, type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    add("--known", metavar="FILE", action=_Once, help="violations that are known, one id a line")


def add_watched(parser: Parser) -> None:
    """--reset-reading."""
    _add_choice(
        parser, "reset-reading", READINGS, "what a reset promises that answered False (else as the target declares)"
    )


def add_beyond_contract(parser: Parser) -> None:
    """--beyond-contract."""
    parser.add_argument(
        "--beyond-contract",
        action="store_true",
        help="also faults that the target's contract with its environment excludes: robustness, and no violations",
    )


SOLVERS = ("z3", "cvc5")
"""Who can be asked. z3 makes the formulas in any case."""


def add_proof(parser: Parser) -> None:
    """The flags of prove: it works for all sizes, so that there is no scope, and on no target."""
    add = parser.add_argument
    _add_choice(parser, "discipline", DISCIPLINES, "one alone")
    add("--property", metavar="NAME", action=_Once, help="one alone; kvproof list properties has the names")
    add("--action", metavar="NAME", action=_Once, help="one action of the specification alone, such as Launch")
    add("--seed", metavar="N", action=_Once, type=_seed, default=0, help="of the solver (default 0)")
    _add_choice(parser, "solver", SOLVERS, "who answers; cvc5 is asked what z3 was (default z3)")
    add("--budget", metavar="TIME", action=_Once, type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    add("--verbose", action="store_true", help="every obligation")
    add("--certify", action="store_true", help="what changed, with five seeds; keep the certificate that check uses")


def selection(arguments: argparse.Namespace, engines: tuple[str, ...] = ()) -> Selection:
    """The selection that parsed flags stand for. Raises BadUsage where they contradict each other."""
    target, device = target_and_device(arguments)
    disciplines = DISCIPLINES
    if not is_ours(target):
        with waiting_for(f"importing {target}"):
            disciplines = declared_disciplines(load(target))
    wanted: Discipline | None = arguments.discipline
    if wanted is not None and wanted not in disciplines:
        raise BadUsage(f"target {target} follows {' and '.join(disciplines)}, and --discipline asks for {wanted}")
    scope: tuple[str, Scope] | None = arguments.scope
    return Selection(
        target=target,
        engines=engines,
        disciplines=(wanted,) if wanted is not None else disciplines,
        device=device,
        scope=scope,
        store_mode=arguments.store_mode,
        output_from=arguments.output_from,
        depth=None if arguments.depth is None else int(arguments.depth),
        admission=arguments.admission,
        reports=arguments.reports,
        deadline=arguments.deadline,
        seed=arguments.seed,
        patience_s=getattr(arguments, "patience", None),
        known=tuple(read_known(Path(arguments.known))) if arguments.known else (),
        beyond_contract=_beyond_contract(target, arguments),
        reading=_reading(target, arguments),
    )


def _beyond_contract(target: str, arguments: argparse.Namespace) -> bool:
    """Whether faults beyond the contract are asked for. Raises BadUsage where the target declares none."""
    wanted: bool = getattr(arguments, "beyond_contract", False)
    if wanted and is_ours(target):
        raise BadUsage(
            f"--beyond-contract: target {target} promises to survive every fault that there is, and is given them all"
        )
    if wanted and not getattr(load(target), "beyond", None):
        raise BadUsage(
            f"--beyond-contract: target {target} declares no fault that its contract with its environment excludes"
        )
    return wanted


def _reading(target: str, arguments: argparse.Namespace) -> str:
    """How a False is to be read. Raises BadUsage for a target that is held to the machine, which says it itself."""
    reading: str | None = getattr(arguments, "reset_reading", None)
    if reading is not None and (is_ours(target) or not is_watched(load(target))):
        raise BadUsage(
            f"--reset-reading: target {target} is held to the machine, which reads a False strictly; the flag is for "
            "targets that are held to their obligations"
        )
    return reading or ""


def target_and_device(arguments: argparse.Namespace) -> tuple[str, str]:
    """The target and its device, `auto` if none was chosen: `kvoffload-host` is kvoffload on host. Raises BadUsage."""
    target: str = arguments.target if arguments.target is not None else configured_target() or OURS
    device: str = arguments.device
    check_name(target)
    for name, devices in families().items():
        own = target.removeprefix(f"{name}-")
        if own in devices:
            if device not in ("auto", own):
                raise BadUsage(f"target {target} is on device {own}, and --device asks for {device}")
            return name, own
    if device != "auto" and device not in families().get(target, ()):
        devices = families().get(target, ())
        has = f"has devices {', '.join(devices)}" if devices else "has no devices to choose from"
        raise BadUsage(f"target {target} {has}, and --device asks for {device}")
    return target, device


def configured_target(folder: Path | None = None) -> str | None:
    """`target` of `[tool.kvproof]` in the nearest pyproject.toml, this folder's or a parent's. Raises BadUsage."""
    start = (folder or Path.cwd()).resolve()
    for place in (start, *start.parents):
        path = place / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            text = read_bounded(path, MAX_PYPROJECT_BYTES).decode("utf-8")
            settings = tomllib.loads(text).get("tool", {}).get("kvproof", {})
        except (Unfit, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError, RecursionError) as error:
            raise BadUsage(f"{path} cannot be read ({error!s:.200})") from None
        if not isinstance(settings, dict) or set(settings) - {"target"}:
            raise BadUsage(f"{path} has settings in [tool.kvproof] that do not exist; there is target")
        target = settings.get("target")
        if target is not None and not (isinstance(target, str) and target):
            raise BadUsage(f"{path} has target {target!r:.40} in [tool.kvproof]; it is a text, as --target takes it")
        return target
    return None
