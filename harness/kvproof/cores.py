"""How many cores there are, and how many processes share one search."""

import os


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sharing() -> int:
    """How many processes take one level of a large search together: two, if there are so many cores."""
    return min(2, cores())
