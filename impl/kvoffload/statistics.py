"""What an engine has seen, for dashboards. No decision reads it."""

from dataclasses import dataclass

from kvoffload.plain import Plain


@dataclass(slots=True)
class Statistics(Plain):
    """Counts since the start.

    stale_completions   reports that named a finished, cancelled or forgotten job, or repeated one
    failed_blocks       blocks that a wanted transfer could not bring over
    expired_jobs        transfers that were given up at their deadline
    pressure_preemptions   requests preempted so that another could grow
    resets, false_resets   resets, and those among them that answered False
    """

    stale_completions: int = 0
    failed_blocks: int = 0
    expired_jobs: int = 0
    pressure_preemptions: int = 0
    resets: int = 0
    false_resets: int = 0
