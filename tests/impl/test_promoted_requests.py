"""For whom blocks of the second tier are promoted, when, and how often. What is cached where is written by hand."""

from collections.abc import Callable

import pytest
from tests.impl.conftest import Serving

from kvoffload.config import Discipline
from kvoffload.ids import Pair
from kvoffload.request import Phase
from kvoffload.step_report import Admitted, Event, Launched, Promoted

Make = Callable[..., Serving]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])

A, B, C, Z = 1, 2, 3, 26


def holding(s: Serving, device: tuple[int, ...] = (), host: tuple[int, ...] = (), second: tuple[int, ...] = ()) -> None:
    """The first blocks of each tier serve these keys, and nobody references them."""
    for pool, keys in (
        (s.engine.device_pool, device),
        (s.engine.host_pool, host),
        (s.engine.second_pool, second),
    ):
        pool.cache.publish(enumerate(keys))


def submit(s: Serving, *prompts: tuple[int, ...]) -> None:
    for number, prompt in enumerate(prompts):
        s.engine.submit(number, prompt, prompt)


def scheduled(s: Serving) -> list[Event]:
    return [event for event in s.runtime.schedule().events if not isinstance(event, Launched)]


@both
def test_what_follows_the_hits_on_the_device_is_promoted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 1, second_blocks=2)
    holding(s, device=(A,), second=(A, B))
    submit(s, (A, B))
    assert not s.engine.can_lookup(0)
    assert s.engine.promote(0).pairs == (Pair(1, 0, B),)


@both
def test_a_promotion_is_told_with_its_job(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 1, second_blocks=1)
    holding(s, second=(A,))
    submit(s, (A,))
    assert scheduled(s) == [Promoted(0, 0, (Pair(0, 0, A),))]


@both
def test_who_loses_a_hit_on_the_host_to_a_promotion_is_next(serving: Make, discipline: Discipline) -> None:
    """Before anybody is admitted."""
    s = serving(discipline, 1, 2, second_blocks=2)
    holding(s, host=(A,), second=(A, C))
    submit(s, (A,), (C,), (Z,))
    told = scheduled(s)
    assert told[:2] == [Promoted(1, 0, (Pair(1, 0, C),)), Promoted(0, 1, (Pair(0, 1, A),))]
    assert [event.request for event in told[2:] if isinstance(event, Admitted)] == [2]


@both
def test_who_loses_a_hit_on_the_device_to_an_admission_is_promoted_for_and_not_admitted(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 2, 1, second_blocks=1)
    holding(s, device=(A,), second=(A,))
    submit(s, (Z,), (A,))
    admitted, promoted = scheduled(s)
    assert isinstance(admitted, Admitted)
    assert (admitted.request, admitted.admission.fresh) == (0, (0,))
    assert promoted == Promoted(1, 0, (Pair(0, 0, A),))
    assert s.engine.requests[1].phase is Phase.WAITING


@both
def test_a_request_is_promoted_for_once_until_a_reset(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 1, 1, second_blocks=1)
    holding(s, second=(A,))
    submit(s, (A,))
    s.engine.promote(0)
    s.runtime.launch()
    s.drain()
    assert not s.engine.requests[0].jobs
    s.engine.host_pool.cache.evict([0])
    assert s.engine.second_pool.cache.run([A]) == [0]
    assert not s.engine.can_promote(0)
    assert s.engine.reset("evict", "preempt", "device")
    assert s.engine.can_promote(0)


@both
def test_who_runs_needs_nothing_from_below(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 1, 1, second_blocks=1)
    submit(s, (A,))
    s.engine.admit(0)
    holding(s, second=(A,))
    assert not s.engine.can_promote(0)


@both
def test_a_lazy_store_takes_no_host_block_that_its_launch_cascades(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 1, 1, second_blocks=1, store_mode="lazy")
    holding(s, device=(B,), host=(A,))
    plan = s.runtime.schedule().plan
    assert plan is not None
    assert [copy.pairs for copy in plan.cascades] == [(Pair(0, 0, A),)]
    assert plan.stores == ()


def test_without_a_second_tier_there_is_nothing_to_promote(serving: Make) -> None:
    s = serving("pinning", 1, 1)
    submit(s, (A,))
    assert not s.engine.can_promote(0)
    assert not s.engine.can_promote(7)
