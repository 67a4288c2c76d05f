"""Outcomes: what a target did with one command, in its own words and with its own choices."""

from typing import NamedTuple

from kvmodel import Action


class Answer(NamedTuple):
    """The command was carried out.

    value     what the engine answered, where the client learns it: of a reset, True or False
    observed  the actions that it took, with the choices it made, read from its own outputs. In the engine's order;
              `explain` puts those of one scheduling call into the contract's order.
    """

    value: object = None
    observed: tuple[Action, ...] = ()


class Refused(NamedTuple):
    """A documented refusal, which must have changed nothing. reason: the error's name and text."""

    reason: str


class Crashed(NamedTuple):
    """An undocumented exception, a failed assertion or a hang: always a violation.

    error  name of the exception's class, or `Hang`; message: its text and where it was raised
    function  in which it was raised, where that is known
    """

    error: str
    message: str
    function: str = ""


Outcome = Answer | Refused | Crashed

MALFORMED = "Malformed"
"""Error of a crash that is none of the engine's: the adapter's answer or view makes no sense."""
