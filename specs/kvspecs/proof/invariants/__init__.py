"""The invariants: what holds of every reachable state, strong enough to be inductive."""

from kvmodel.contract import Discipline
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.invariants import contents, fences, jobs, launches, references, requests, steps

ALL: tuple[Invariant, ...] = (
    *references.INVARIANTS,
    *requests.INVARIANTS,
    *jobs.INVARIANTS,
    *steps.INVARIANTS,
    *contents.INVARIANTS,
    *fences.INVARIANTS,
    *launches.INVARIANTS,
)


def invariants_of(discipline: Discipline) -> tuple[Invariant, ...]:
    """The invariants of a discipline."""
    return tuple(invariant for invariant in ALL if invariant.only in ("", discipline))
