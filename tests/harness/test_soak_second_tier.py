"""The soak with a second host tier: lines broken on purpose in what goes down and comes back."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.soaking import a_soak, caught, soaked

from kvmodel.contract import DISCIPLINES, Discipline
from kvoffload import ordering
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.plan import LaunchPlan
from kvoffload.transfer_job import Direction, TransferJob
from kvproof.verdict import Verdict

SEEDS = (4, 13, 5, 6, 11, 15, 14, *range(4), *range(7, 11), 12)
"""Seeds until a bug is found; those that have something come back from the second tier soonest are first. Measured over
16 seeds of 2,000 copies: all find each, but for promotions that are never launched under pinning, which 14 find, and
ones that take another block, which 11 find under pinning, and 14 under fencing."""

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_what_went_down_comes_back(discipline: Discipline) -> None:
    """In most soaks, and in nearly all of the first seeds."""
    promoted = cascaded = 0
    for seed in SEEDS:
        result, _ = soaked(a_soak(discipline, seed, 600))
        assert result.verdict is Verdict.PASSED, result.detail
        promoted, cascaded = result.counts.get("promoted", 0), result.counts.get("cascaded", 0)
        if promoted:
            break
    assert promoted > 0
    assert cascaded > 0


def a_reset_leaves_the_second_tier(patch: Patch) -> None:
    right = TransferConnector._clear_caches

    def _clear_caches(self: TransferConnector, device: Any, tiers: Any) -> None:
        kept = dict(self.second.cache.blocks)
        right(self, device, tiers)
        self.second.cache.publish([(block, key) for key, block in kept.items()])

    patch.setattr(TransferConnector, "_clear_caches", _clear_caches)


def what_goes_down_keeps_hold_of_the_host(patch: Patch) -> None:
    """A cascade that is complete does not release what it read."""
    for kind in (PinningConnector, FencingConnector):
        _keeping_sources_of_cascades(patch, kind)


def _keeping_sources_of_cascades(patch: Patch, kind: type[TransferConnector]) -> None:
    right = kind._disown

    def _disown(self: TransferConnector, job: TransferJob) -> None:
        if job.direction is Direction.CASCADE:
            self.host.touch(job.host_blocks)
        right(self, job)

    patch.setattr(kind, "_disown", _disown)


def promotions_are_never_launched(patch: Patch) -> None:
    """The worker drops them, and who waits for what is below the host waits for ever."""
    patch.setattr(ordering, "promotions", lambda plan: ())


def a_promotion_takes_another_block(patch: Patch) -> None:
    """It reads the block beside the one that it holds."""
    right = ordering.promotions

    def promotions(plan: LaunchPlan) -> Any:
        return tuple([copy._replace(pairs=tuple((of ^ 1, to) for of, to in copy.pairs)) for copy in right(plan)])

    patch.setattr(ordering, "promotions", promotions)


BYTES = {"reads-what-was-written", "published-after-all-copied"}


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(
    ("plant", "properties"),
    [
        (a_reset_leaves_the_second_tier, {"true-reset-serves-nothing-old", "false-reset-serves-nothing-old"}),
        (what_goes_down_keeps_hold_of_the_host, {"owners-account-for-references"}),
        (promotions_are_never_launched, {"everything-drains"}),
        (a_promotion_takes_another_block, BYTES),
    ],
)
def test_a_planted_bug_is_caught(
    plant: Callable[[Patch], None], properties: set[str], discipline: Discipline, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    failure = caught((a_soak(discipline, seed, 2000) for seed in SEEDS), properties)
    assert failure.scope.second_blocks > 0
