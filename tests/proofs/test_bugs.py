"""The specification can fail: a seeded bug fails the obligation that is named for it. Here is a part of them, of a
few seconds; `python -m tests.proofs.bugs` runs all of them, in both disciplines and in both ways."""

import pytest
from tests.proofs.bugs import BUGS, Bug, failed_at_finite_scope, failed_parametrically

from kvmodel.contract import Discipline

pytestmark = pytest.mark.proofs


def once(bug: Bug, index: int) -> Discipline:
    """One of its disciplines, by turns: here each bug runs in one, and the module runs it in both."""
    return bug.disciplines[index % len(bug.disciplines)]


_WITH_A_NAME: list[tuple[Bug, Discipline]] = [
    (bug, once(bug, index)) for index, bug in enumerate(BUGS) if bug.fails and bug.action != "Launch"
]
FOUND = _WITH_A_NAME[::6]
SURVIVORS: list[tuple[Bug, Discipline]] = [
    (bug, once(bug, index)) for index, bug in enumerate(BUGS) if not bug.fails and bug.action == "RunStore"
]


def named(pairs: list[tuple[Bug, Discipline]]) -> list[str]:
    return [f"{bug.name}-{discipline}" for bug, discipline in pairs]


def test_there_are_many() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert len([bug for bug in BUGS if bug.fails]) >= 100
    assert all(bug.why for bug in BUGS if not bug.fails)


@pytest.mark.parametrize(("bug", "discipline"), FOUND, ids=named(FOUND))
def test_each_fails_its_obligation(bug: Bug, discipline: Discipline) -> None:
    assert failed_parametrically(bug, discipline) == {bug.fails}


@pytest.mark.parametrize(("bug", "discipline"), FOUND[:1], ids=named(FOUND[:1]))
def test_some_fail_it_at_the_finite_scope_too(bug: Bug, discipline: Discipline) -> None:
    assert failed_at_finite_scope(bug, discipline) == {bug.fails}


@pytest.mark.parametrize(("bug", "discipline"), SURVIVORS, ids=named(SURVIVORS))
def test_survivors_survive(bug: Bug, discipline: Discipline) -> None:
    assert failed_parametrically(bug, discipline) == set()
