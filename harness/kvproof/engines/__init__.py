"""Engines of checking. Each is a callable `run(job, progress, cut) -> Result`, named as `module:function`."""

from collections.abc import Mapping

from kvproof.job import Engine

ENGINES: Mapping[str, Engine | str] = {
    "explore": "kvproof.engines.explore:run",
    "prove": "kvproof.engines.prove:run",
    "conform": "kvproof.engines.conform:run",
    "search": "kvproof.engines.search:run",
    "fuzz": "kvproof.engines.fuzz:run",
    "robustness": "kvproof.engines.robustness:run",
    "soak": "kvproof.engines.soak:run",
    "replay": "kvproof.engines.replay:run",
    "tell": "kvproof.engines.tell:run",
    "shrink": "kvproof.engines.shrink:run",
    "validate": "kvproof.engines.validate:run",
}
"""Engine by name."""
