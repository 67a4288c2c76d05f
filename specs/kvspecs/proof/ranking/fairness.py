"""What is assumed of those who act. Nothing of this is proved: a worker that has hung breaks `workers-go-on`."""

from typing import NamedTuple


class Fairness(NamedTuple):
    """If one of these actions may happen with the same parameters from some state on for ever, it happens.

    name      as theorems cite it
    sentence  in the field's words
    actions   of the specification
    """

    name: str
    sentence: str
    actions: tuple[str, ...]


WORKERS_GO_ON = Fairness(
    "workers-go-on",
    "A worker that may run the oldest operation of a stream, and goes on being able to, at last runs it.",
    ("RunCompute", "RunStore", "RunLoad"),
)
CREDITS = (
    "ReportPart",
    "CompleteStore",
    "CompleteLoad",
    "CompleteFailedLoad",
    "CompleteAbandoned",
    "ReportForgotten",
)
"""The cases of a report that somebody owed: the worker is credited with the job."""

REPORTS_ARRIVE = Fairness(
    "reports-arrive",
    "What a worker has copied it at last reports, and the scheduler takes the report; no report of that job is lost.",
    ("HearMark", *CREDITS),
)
THE_ENGINE_STEPS = Fairness(
    "the-engine-steps",
    "Output that is there is at last handled; while a load is queued and a step may be launched, one is.",
    ("HandleOutput", "Launch"),
)

ALL = (WORKERS_GO_ON, REPORTS_ARRIVE, THE_ENGINE_STEPS)
