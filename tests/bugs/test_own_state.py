"""Planted bugs are seen by invariants that are asked of kvoffload's own state alone, with no machine beside it."""

from collections.abc import Sequence
from typing import Any

import pytest

from kvmodel import Machine
from kvproof.targets.command import Command
from kvproof.trace import itf
from tests.bugs.bank import BY_ID
from tests.bugs.hunt import LIMIT
from tests.bugs.interpreter import answer_of
from tests.bugs.own_state import broken, broken_invariant
from tests.bugs.traces import trace_file

SEEN = {
    "pool-append-twice": "free-means-unowned",
    "pool-pinned-stays-queued": "free-means-unowned",
    "pool-take-keeps-key": "no-use-after-free",
    "cache-publish-takes-over": "one-copy-per-key",
    "cache-hits-skip-holes": "hits-are-prefix-closed",
    "reset-frees-in-flight": "owners-account-for-references",
    "abandoned-publishes": "published-after-all-copied",
    "storing-not-remembered": "no-block-stored-twice-at-once",
    "any-worker-suffices": "no-use-after-free",
    "abort-frees-under-load": "no-use-after-free",
    "fence-without-stores": "fence-before-reuse",
    "compute-without-fence": "fence-before-reuse",
    "store-overtakes-compute": "reads-what-was-written",
    "step-leaks": "owners-account-for-references",
    "mark-of-one-for-all": "no-use-after-free",
    "mark-hides-failures": "published-after-all-copied",
}
"""Bug -> the invariant that is broken at the end of the bank's trace of it."""


NAMED = {
    "pool-release-unchecked": "device-owned",
    "pool-append-twice": "device-queue",
    "pool-take-keeps-key": "store-not-cached",
    "cache-publish-takes-over": "device-copies",
    "reset-leaves-jobs-live": "store-reads",
    "abandoned-publishes": "cached-on-host",
    "abandoned-never-released": "device-owned",
    "reset-keeps-job-ids": "awaited-job",
    "ids-rewound": "issued",
    "storing-not-remembered": "stored-once",
    "device-cache-kept": "cached-on-device",
    "cancelled-load-leaks": "host-owned",
    "fence-without-stores": "store-and-compute",
    "fence-without-loads": "store-and-load",
    "load-not-on-its-request": "load-is-awaited",
}
"""Bug -> the invariant of the proofs (`kvspecs.proof.invariants`) that is broken at the end of the bank's trace of it,
and at no earlier command. Four of them break no property that is asked of a state."""


def asked(name: str) -> tuple[list[Any], Machine, Sequence[Command]]:
    """What `tests.bugs.own_state` finds in a kvoffload that has the bug; and the trace."""
    trace = trace_file(BY_ID[name])
    found: list[Any] = answer_of(BY_ID[name], "tests.bugs.own_state", f"asked({str(trace)!r})", LIMIT)
    sound = itf.read(trace)
    return found, Machine(sound.contract, sound.scope), sound.commands


@pytest.mark.parametrize("name", SEEN)
def test_an_invariant_of_the_own_state_names_the_bug(name: str) -> None:
    (found, _), machine, commands = asked(name)
    assert found is not None
    assert (found[0], found[2]) == (SEEN[name], BY_ID[name].commands), found[1]
    assert broken(machine, commands) is None


@pytest.mark.parametrize("name", NAMED)
def test_an_invariant_of_the_proofs_names_the_bug(name: str) -> None:
    (_, found), machine, commands = asked(name)
    assert found == [NAMED[name], BY_ID[name].commands]
    assert broken_invariant(machine, commands) is None


def test_every_property_of_a_state_is_among_them() -> None:
    from kvspecs.catalogue import SAFETY

    assert {p.name for p in SAFETY if p.on_state is not None} == set(SEEN.values())
