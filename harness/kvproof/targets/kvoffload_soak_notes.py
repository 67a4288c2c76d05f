"""What a command to kvoffload led to, in the words of a report. Only failures are put into words, so nothing is hot."""

from collections.abc import Iterable, Sequence

from kvoffload.plan import LaunchPlan
from kvoffload.scheduler import Admission, Deferred, LookupResult
from kvoffload.step_report import (
    Admitted,
    Event,
    Grown,
    Launched,
    LookupReleased,
    Preempted,
    Promoted,
    StepReport,
    Woken,
)
from kvproof.targets.command import request_name


def note(outcome: object) -> str:
    """One line for whatever a method of the engine has returned; empty if there is nothing to say."""
    match outcome:
        case StepReport():
            return "; ".join(_event(event) for event in outcome.events)
        case LaunchPlan():
            return _launch(outcome)
        case Admission():
            return _admission(outcome)
        case LookupResult(device, host):
            return f"finds {_blocks('d', device)} {_blocks('h', host)}".rstrip()
        case Deferred(cause):
            return f"deferred: {cause}"
        case bool():
            return f"answered {outcome}"
        case str():
            return outcome
        case _:
            return ""


def _event(event: Event) -> str:
    match event:
        case Woken(request):
            return f"wake {request_name(request)}"
        case Preempted(request):
            return f"preempt {request_name(request)} under pressure"
        case Grown(request, block):
            return f"grow {request_name(request)}: d{block}"
        case LookupReleased(request):
            return f"release the lookup of {request_name(request)}"
        case Promoted(request, number, pairs):
            return f"promotion {number} for {request_name(request)}: {_pairs('s', 'h', pairs)}"
        case Admitted(request, admission):
            return f"admit {request_name(request)}: {_admission(admission)}"
        case Launched(plan):
            return _launch(plan)
        case _:
            return type(event).__name__.lower()


def _admission(admission: Admission) -> str:
    words = []
    if admission.device_blocks:
        words.append(f"hits {_blocks('d', admission.device_blocks)}")
    if admission.load is not None:
        words.append(f"load {admission.load} {_pairs('h', 'd', admission.pairs)}")
    if admission.fresh:
        words.append(f"fresh {_blocks('d', admission.fresh)}")
    return ", ".join(words)


def _launch(plan: LaunchPlan) -> str:
    words = []
    if plan.step is not None:
        words.append(f"step {plan.step} of {' '.join(request_name(share.request) for share in plan.shares)}")
    words += [f"store {store.job} {_pairs('d', 'h', store.pairs)}" for store in plan.stores]
    words += [f"load {load}" for load in plan.loads]
    words += [f"cascade {cascade.job} {_pairs('h', 's', cascade.pairs)}" for cascade in plan.cascades]
    words += [f"promotion {promotion.job}" for promotion in plan.promotions]
    if plan.flush:
        words.append(f"flush {' '.join(map(str, plan.flush))}")
    return f"launch {', '.join(words)}"


def _blocks(letter: str, blocks: Iterable[int]) -> str:
    return " ".join(f"{letter}{block}" for block in blocks)


def _pairs(source: str, destination: str, pairs: Iterable[Sequence[int]]) -> str:
    return " ".join(f"{source}{pair[0]}->{destination}{pair[1]}" for pair in pairs)
