"""A failure: everything that a report says about one violation, and the fingerprint by which it is known again."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kvmodel.contract import Contract, Discipline
from kvmodel.scope import Scope
from kvproof.targets.command import Command

Minimal = Literal["", "shortest", "shrunk"]

FINGERPRINT_LENGTH = 6
"""Hexadecimal digits: enough to type, and to keep some hundred failures of one project apart."""


@dataclass(frozen=True)
class Failure:
    """One violation of one property.

    property      the stable name, such as `owners-account-for-references`
    sentence      what happened, in the field's words
    scope_name    the scope as `--scope` takes it; `scope` is what it stands for
    commands      from the initial state up to and including the violating one, `commands[step]`
    notes         for each command, what it led to ("admit x: fresh d0"); may be shorter than commands
    contract_lines, target_lines    pairwise, for each thing that differs: what the contract says, what the target has
    rule          the rule's file in this repository; source: where the rule comes from, such as "vLLM PR 39726"
    next_danger   what this may lead to, or None
    cause         what makes two violations the same: stable words, without block ids, counts or addresses
    fault         the verb of a fault that it takes and that the target's contract with its environment excludes: then
                  it is about robustness, and no violation; mostly empty
    contract      that the target was held to, where it is not the job's own: an engine may take modes in turn
    alone         a test that needs no kvproof, of a target that says how; else empty
    alone_lacks   what the target does not say of it, in a sentence without its full stop; mostly empty
    minimal       "shortest" if no shorter command sequence fails, "shrunk" if it was only made shorter
    """

    property: str
    sentence: str
    target: str
    discipline: Discipline
    scope_name: str
    scope: Scope
    engine: str
    commands: tuple[Command, ...]
    step: int
    contract_lines: tuple[str, ...] = ()
    target_lines: tuple[str, ...] = ()
    rule: str = ""
    source: str = ""
    next_danger: str | None = None
    cause: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    minimal: Minimal = ""
    device: str = ""
    contract: Contract | None = None
    fault: str = ""
    alone: str = ""
    alone_lacks: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """The id of this failure: the same for the same property, target and cause, in every run and process."""
        return fingerprint(self.property, self.target, self.cause)


def fingerprint(property_name: str, target: str, cause: tuple[str, ...]) -> str:
    """The first six hexadecimal digits of a SHA-256 over property, target and cause, each with its length."""
    digest = hashlib.sha256()
    for part in (property_name, target, *cause):
        encoded = part.encode("utf-8", "backslashreplace")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()[:FINGERPRINT_LENGTH]
