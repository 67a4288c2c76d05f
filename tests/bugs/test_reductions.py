"""The searches lose nothing by reducing: what is kept says so of the bank; a reduction that loses something shows."""

from collections.abc import Callable
from types import ModuleType

import pytest

from kvmodel import Machine, State
from kvmodel.contract import Contract
from kvproof.search import canonical, graph, product
from kvproof.search.canonical import Renaming, canonical_with
from kvproof.targets.kvoffload import Ledger
from tests.bugs import reductions, rules
from tests.bugs.bank import BY_ID
from tests.bugs.bug import variant_of
from tests.bugs.lies import LIES
from tests.bugs.reductions import Looked, Seen, each_way, explored
from tests.recount.__main__ import all_contents

BY_LIE = {lie.id: lie for lie in LIES}


def with_its_names(contract: Contract, state: State) -> State:
    """In place of the canonical state: dead bytes are blanked, and every name is as it is."""
    tiers = [tuple([tuple(row) for row in rows]) for rows in canonical.live_contents(state)]
    return state._replace(device_contents=tiers[0], host_contents=tiers[1], second_contents=tiers[2])


def test_the_readme_says_what_is_kept() -> None:
    """If this fails: python -m tests.bugs.reductions"""
    kept = reductions.kept()
    assert kept.keys() <= set(reductions.ids())
    wanted = f"{reductions.BEGIN}\n\n{reductions.said(kept.values())}\n\n{reductions.END}"
    assert wanted in reductions.README.read_text()


def test_every_bug_was_looked_for_in_each_way() -> None:
    """If this fails: python -m tests.bugs.reductions"""
    assert reductions.kept().keys() == set(reductions.ids())


def test_where_both_finish_they_agree_but_on_bugs_that_go_by_number() -> None:
    differ = {one.id for one in reductions.kept().values() if one.finished and not one.agree}
    assert differ == {
        "fence-mixes-tiers",
        "reports-for-others",
        "rule-a-store-that-was-put-off-names-what-the-window-has-left",
    }
    assert differ == reductions.BY_NUMBER.keys()


def test_they_agree_where_one_state_stands_for_others() -> None:
    assert [one.id for one in reductions.kept().values() if not one.agree_further] == []


@pytest.mark.parametrize(
    "further",
    [Seen("", 0, 4, True), Seen("no-double-free", 3, 6, True), Seen("no-leak", 2, 6, True), Seen("", 0, 40_128, False)],
    ids=str,
)
def test_a_bug_that_is_found_otherwise_where_one_state_stands_for_others_is_told(further: Seen) -> None:
    assert reductions.unexplained([Looked("caps-counts", "pinning s1", CAUGHT, CAUGHT, CAUGHT)]) == []
    assert reductions.unexplained([Looked("caps-counts", "pinning s1", CAUGHT, CAUGHT, further)]) == ["caps-counts"]


def test_it_fails_where_they_differ_and_nothing_explains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "write_readme", lambda: None)
    assert reductions.main(["--readme"]) == 0
    monkeypatch.delitem(reductions.BY_NUMBER, "reports-for-others")
    assert reductions.main(["--readme"]) == 1


@pytest.mark.parametrize(
    ("module", "name", "instead", "found"),
    [(canonical, "live_contents", all_contents, 14), (graph, "canonical", with_its_names, 0)],
    ids=["bytes-kept", "names-kept"],
)
def test_the_store_that_was_put_off_goes_by_names_and_not_by_dead_bytes(
    module: ModuleType, name: str, instead: Callable[..., object], found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every byte and canonical names it is found as ever; with its own names, dead bytes blanked, it is not."""
    plant = rules.BY_NAME["rule-a-store-that-was-put-off-names-what-the-window-has-left"]
    plant.plant(monkeypatch)
    monkeypatch.setattr(module, name, instead)
    assert explored(Machine(plant.contract, plant.scope)).commands == found


def test_the_reduced_search_is_the_one_of_the_bank() -> None:
    for name, one in reductions.kept().items():
        if name in rules.BY_NAME:
            assert (one.reduced.broken, one.reduced.commands) == rules.recorded(name)
        else:
            record = BY_ID.get(name) or BY_LIE[name]
            assert (one.reduced.broken, one.reduced.commands) == (record.property, record.commands)
            assert one.where == f"{record.discipline} {record.variant}"


def test_unreduced_every_name_counts() -> None:
    """The same violation after the same commands, and more pairs until then."""
    lie = BY_LIE["refuses-and-does"]
    reduced, whole, _ = each_way(variant_of(lie.variant, lie.discipline), lie.target)
    assert (reduced.broken, reduced.commands) == ("work-remaining-keeps-the-engine-stepping", 5)
    assert whole[:2] == reduced[:2]
    assert whole.nodes > reduced.nodes


def test_a_reduction_that_takes_different_states_for_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_jobs(contract: Contract, state: State) -> tuple[State, Renaming]:
        named, renaming = canonical_with(contract, state)
        return named._replace(jobs=()), renaming

    monkeypatch.setattr(product, "canonical_with", without_jobs)
    monkeypatch.setattr(Ledger, "control", lambda self, renaming: ())
    lie = BY_LIE["done-while-draining"]
    reduced, whole, _ = each_way(variant_of(lie.variant, lie.discipline), lie.target)
    assert not Looked(lie.id, "", reduced, whole, reduced).agree
    assert (reduced.broken, reduced.finished) == ("", True)
    assert (whole.broken, whole.commands) == (lie.property, lie.commands)


CAUGHT = Seen("no-double-free", 2, 6, True)


def test_what_is_given_up_says_nothing() -> None:
    found = Looked("caps-counts", "pinning s1", CAUGHT, Seen("", 0, 40_128, False), CAUGHT)
    assert not found.finished
    assert str(found).split()[:3] == ["caps-counts", "given", "up"]
