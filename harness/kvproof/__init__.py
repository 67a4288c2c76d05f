"""What drives models and implementations against each other: engines of checking, targets, traces and reports."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvproof.conforming import conformance
    from kvproof.reproduction import Reproduced, reproduce

__version__ = "0.1.0"

__all__ = ["Reproduced", "__version__", "conformance", "reproduce"]


def __getattr__(name: str) -> object:
    """What is public, imported when it is asked for: the command line must start without Hypothesis."""
    if name == "conformance":
        from kvproof.conforming import conformance

        return conformance
    if name in ("Reproduced", "reproduce"):
        from kvproof import reproduction

        return getattr(reproduction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
