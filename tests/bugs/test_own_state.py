"""Planted bugs are seen by invariants that are asked of kvoffload's own state alone, with no machine beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvmodel import Machine
from kvproof.trace import itf
from tests.bugs.bank import BY_ID
from tests.bugs.own_state import broken
from tests.bugs.planting import ROOT, plant
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


@pytest.mark.parametrize("name", SEEN)
def test_an_invariant_of_the_own_state_names_the_bug(name: str, tmp_path: Path) -> None:
    bug = BY_ID[name]
    trace = trace_file(bug)
    plant(bug, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.bugs.own_state", str(trace)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)[0]
    assert found is not None
    assert (found[0], found[2]) == (SEEN[name], bug.commands), found[1]
    sound = itf.read(trace)
    assert broken(Machine(sound.contract, sound.scope), sound.commands) is None


def test_every_property_of_a_state_is_among_them() -> None:
    from kvspecs.catalogue import SAFETY

    assert {p.name for p in SAFETY if p.on_state is not None} == set(SEEN.values())
