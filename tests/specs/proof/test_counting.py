"""The facts about sizes of finite sets: true of all subsets of a small universe. Nothing else is taken on trust."""

from collections.abc import Iterator
from itertools import combinations, permutations, product

import pytest

from kvspecs.proof.counting import COUNTS, DEVICE_OWNERS, HOST_OWNERS, fact_member, fact_union, fact_witness
from kvspecs.proof.ranking.choices import fact_chosen
from kvspecs.proof.state import Cardinalities

UNIVERSE = (0, 1, 2)


def subsets() -> Iterator[frozenset[int]]:
    for size in range(len(UNIVERSE) + 1):
        for chosen in combinations(UNIVERSE, size):
            yield frozenset(chosen)


def test_a_set_that_is_not_empty_has_a_member() -> None:
    for members in subsets():
        assert any(fact_witness(x, members.__contains__, len(members)) is True for x in UNIVERSE)


def test_a_set_with_a_member_is_not_empty() -> None:
    for members in subsets():
        assert all(fact_member(x, members.__contains__, len(members)) is True for x in UNIVERSE)


def doubted(whole: frozenset[int], parts: tuple[frozenset[int], ...], n: int, changed: int | None) -> bool:
    """Whether some element in the role of the doubtful one makes the fact true."""
    inside = [part.__contains__ for part in parts]
    sizes = [len(part) for part in parts]
    return any(fact_union(x, whole.__contains__, inside, n, sizes, changed) is True for x in UNIVERSE)


@pytest.mark.parametrize("changed", [None, 0, 1])
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_union_has_the_sum_of_the_sizes(parts: int, changed: int | None) -> None:
    for chosen in product(subsets(), repeat=parts + 1):
        whole, *rest = chosen
        assert doubted(whole, tuple(rest), len(whole), changed)


def test_the_fact_of_unions_says_something() -> None:
    """Where the premise holds, a wrong size is denied."""
    one, two = frozenset({0}), frozenset({1, 2})
    assert not doubted(one | two, (one, two), 2, None)
    assert not doubted(two, (one, two), 3, 0)
    assert doubted(one | two, (one, one | two), 7, None)  # not disjoint: the premise fails, and nothing is said


def test_something_is_chosen_from_a_set_that_is_not_empty() -> None:
    for members in subsets():
        assert any(all(fact_chosen(y, x, members.__contains__) is True for y in UNIVERSE) for x in UNIVERSE)


def test_a_set_that_is_not_empty_has_a_least_member_in_any_order() -> None:
    for members in subsets():
        for order in permutations(UNIVERSE):

            def before(x: int, y: int, order: tuple[int, ...] = order) -> bool:
                return order.index(x) < order.index(y)

            chosen = [x for x in UNIVERSE if all(fact_chosen(y, x, members.__contains__, before) for y in UNIVERSE)]
            assert chosen == ([min(members, key=order.index)] if members else list(UNIVERSE))


def test_every_cardinality_is_counted_among_the_owners_of_a_block() -> None:
    assert set(DEVICE_OWNERS) | set(HOST_OWNERS) == set(COUNTS) == set(Cardinalities.__dataclass_fields__)
    assert {COUNTS[name].of for name in DEVICE_OWNERS} == {"D"}
    assert {COUNTS[name].of for name in HOST_OWNERS} == {"H"}
