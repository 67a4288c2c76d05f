"""What drives models and implementations against each other: engines of checking, targets, traces and reports."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvproof.lockstep import conformance

__version__ = "0.1.0"

__all__ = ["__version__", "conformance"]


def __getattr__(name: str) -> object:
    """`conformance`, imported when it is asked for: the command line must start without Hypothesis."""
    if name == "conformance":
        from kvproof.lockstep import conformance

        return conformance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
