"""What drives models and implementations against each other: engines of checking, targets, traces and reports."""

__version__ = "0.1.0"
