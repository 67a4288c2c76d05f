"""All of them: each module adds its own as it is imported."""

from tests.specs.planted import completions, deadlines, failures, keys, ordering, progress, references, resets
from tests.specs.planted.plant import PLANTS, Plant

MODULES = (resets, completions, failures, deadlines, ordering, references, keys, progress)

__all__ = ["MODULES", "PLANTS", "Plant"]
