"""An adapter that says what is not so is caught as a bug would be."""

import pytest

from kvproof.targets.kvoffload import Ledger
from tests.bugs.bug import variant_of
from tests.bugs.hunt import replay, searched
from tests.bugs.lies import LIES, Lie


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.id)
def test_it_is_caught(lie: Lie) -> None:
    variant = variant_of(lie.variant, lie.discipline)
    caught = searched(variant, lie.target)
    assert (caught.property, len(caught.commands)) == (lie.property, lie.commands), caught.sentence
    again = replay(variant, lie.target, caught.commands)
    assert (again.divergence is not None) is lie.replays
    if again.divergence is not None:
        assert (again.divergence.property, again.done) == (lie.property, lie.commands)
    assert replay(variant, Ledger, caught.commands).divergence is None
