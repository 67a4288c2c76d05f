"""events-tell-what-can-be-hit: what is said of a consumer that has something else than what can be hit."""

import pytest

from kvmodel import Contract, Machine, Scope
from kvmodel.prefix_cache import findable, publish
from kvproof.targets.announced import Announced, Keys, of_tier, with_removed, with_stored
from kvspecs.catalogue import EVENTS, sentence_of
from kvspecs.safety.events_tell_what_can_be_hit import on_events

SCOPE = Scope(device_blocks=3, host_blocks=2, workers=1, prompts=("ab", "ac"))
MACHINE = Machine(Contract("pinning"), SCOPE)
INITIAL = MACHINE.initial()
A_AND_AC = INITIAL._replace(device=publish(publish(INITIAL.device, 2, 3), 0, 1), host=publish(INITIAL.host, 1, 1))
"""`a` and `ac` can be hit on the device, `a` on the host."""


@pytest.mark.parametrize(
    ("announced", "says"),
    [
        (((1, 3), (1,)), None),
        (((1,), (1,)), "'ac' can be hit on the device, and the events do not say so"),
        (((1, 2, 3), (1,)), "the events say that 'ab' can be hit on the device, and it cannot"),
        (((1, 3, 3), (1,)), "2 events say that 'ac' was stored on the device, and none that it was removed"),
        (((1, 3), ()), "'a' can be hit on the host, and the events do not say so"),
        (((1, 3), (-2,)), "'a' can be hit on the host, and the events do not say so"),
        (((1, 3), (-2, 1)), "an event says that 'ab' was removed from the host, and none that it was stored before"),
    ],
)
def test_sentences(announced: tuple[Keys, Keys], says: str | None) -> None:
    assert on_events(MACHINE.setting, A_AND_AC, announced) == says


@pytest.mark.parametrize(
    ("announced", "says"),
    [
        (((), (), (1,)), None),
        (((), (), ()), "'a' can be hit on the second, and the events do not say so"),
        (((), ()), "'a' can be hit on the second, and the events do not say so"),
        (((), (), (1, 2)), "the events say that 'ab' can be hit on the second, and it cannot"),
    ],
)
def test_sentences_of_the_second_tier(announced: tuple[Keys, ...], says: str | None) -> None:
    machine = Machine(Contract("pinning"), SCOPE._replace(second_blocks=1))
    state = machine.initial()
    assert on_events(machine.setting, state._replace(second=publish(state.second, 0, 1)), announced) == says


def test_what_can_be_hit_is_told_without_blocks() -> None:
    assert findable(A_AND_AC.device) == (1, 3)
    assert findable(INITIAL.host) == ()


def test_a_strict_consumer() -> None:
    """Stored twice is twice; removed before it was stored is owed."""
    assert with_stored(with_stored((), 3), 1) == (1, 3)
    assert with_stored((1, 3), 3) == (1, 3, 3)
    assert with_removed((1, 3, 3), 3) == (1, 3)
    assert with_removed((1,), 3) == (-3, 1)
    assert with_stored((-3, 1), 3) == (1,)
    announced: Announced = ((1,), (2,))
    assert of_tier(announced, 0, ()) == ((), (2,))
    assert of_tier(announced, 1, (2, 3)) == ((1,), (2, 3))


def test_its_sentence_is_in_the_catalogue() -> None:
    assert sentence_of("events-tell-what-can-be-hit") == EVENTS.sentence
