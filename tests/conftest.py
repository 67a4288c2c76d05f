"""For every suite: outcomes do not depend on how fast the machine is, nor on chance."""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no collection of garbage needs to go through it again."""
    gc.collect()
    gc.freeze()
