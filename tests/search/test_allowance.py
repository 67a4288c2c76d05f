"""Allowance: a search in which more left stands for less left takes every step from every pair that any other does."""

from collections.abc import Hashable

import pytest

from kvmodel import Action, Contract, Machine, State
from kvmodel.contract import DISCIPLINES, Discipline
from kvmodel.rules import wake
from kvmodel.state import Faults
from kvoffload.transfer_job import JobState
from kvproof.scopes import SCOPES
from kvproof.search.allowance import Left, covers, late_reports, left_in, reports_may_wait, unspent, without
from kvproof.search.canonical import Renaming, canonical, canonical_with, ranks_of
from kvproof.search.graph import Graph
from kvproof.search.modes import MODES, VAIN, Variant, paired, switched_on, variants
from kvproof.search.nodes import Nodes
from kvproof.search.product import Product, _Reached
from kvproof.targets.command import Command, named_arguments
from kvproof.targets.divergence import Divergence
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer

Step = tuple[State, Hashable, str]


def renamed(command: Command, renaming: Renaming) -> str:
    """The command in the names of a state; of a job that is none of the renaming's nobody says which."""
    names = {
        "worker": lambda worker: ranks_of(renaming)[worker],
        "job": lambda job: renaming.jobs.get(job, "forgotten"),
    }
    given = named_arguments(command).items()
    return f"{command.verb} {[names.get(name, str)(value) for name, value in given]}"


class Noting(Product):
    """Notes each step, and from which pair, whatever was left there."""

    def __init__(self, machine: Machine, allowance: bool) -> None:
        super().__init__(machine, Ledger(machine.setting), composites=True, allowance=allowance)
        self.steps: set[Step] = set()

    def _taken(self, state: State, command: Command) -> _Reached | Divergence:
        whole = unspent(self.machine.initial(), state)
        canonical, renaming = canonical_with(self.machine.setting.contract, whole)
        self.steps.add((canonical, self.target.control(renaming), renamed(command, renaming)))
        return super()._taken(state, command)


def variant(modes: tuple[str, ...], discipline: Discipline, base: str = "s1") -> Variant:
    found = Variant(base, SCOPES[base], Contract(discipline))
    for mode in modes:
        found = MODES[mode](found)
    return found


SEARCHED: dict[tuple[Discipline, tuple[str, ...]], tuple[int, int]] = {
    ("pinning", ("resets",)): (329, 123),
    ("pinning", ("failures",)): (425, 155),
    ("pinning", ("duplicates", "double-frees")): (848, 155),
    ("pinning", ("marks",)): (1181, 392),
    ("pinning", ("expiry",)): (1254, 881),
    ("pinning", ("declared",)): (102, 62),
    ("fencing", ("tiers",)): (907, 864),
    ("fencing", ("lazy", "forgeries", "resets")): (608, 202),
}
"""Pairs of s1 with these modes, if each is followed, and if one stands for those with less left."""


@pytest.mark.parametrize(("where", "pairs"), SEARCHED.items(), ids=str)
def test_every_step_is_given_every_pair(where: tuple[Discipline, tuple[str, ...]], pairs: tuple[int, int]) -> None:
    one = variant(where[1], where[0])
    machine = Machine(one.contract, one.scope)
    whole, less = Noting(machine, allowance=False), Noting(machine, allowance=True)
    for search in (whole, less):
        assert search.search(lambda: False, lambda said: None).finished
    assert less.steps == whole.steps
    assert (whole.pairs, less.pairs) == pairs


class NotingLate(Product):
    """Names each pair as if the late reports had come, and notes whether there are any."""

    def __init__(self, machine: Machine, late: bool) -> None:
        super().__init__(machine, Ledger(machine.setting), composites=True, allowance=late, late=late)
        self.given: set[tuple[State, Hashable, bool, str]] = set()

    def _commands(self, state: State, actions: list[Action]) -> list[Command]:
        return self._noted(state, super()._commands(state, actions))

    def _late_commands(self, state: State) -> list[Command]:
        return self._noted(state, super()._late_commands(state))

    def _noted(self, state: State, commands: list[Command]) -> list[Command]:
        assert isinstance(self.target, Ledger)
        late = late_reports(state)
        come = without(self.machine, unspent(self.machine.initial(), state), late)
        canonical, renaming = canonical_with(self.machine.setting.contract, come)
        control, _ = self.target.control_without(renaming, late)
        self.given.update([(canonical, control, bool(late), renamed(command, renaming)) for command in commands])
        return commands


LATE: dict[tuple[str, tuple[str, ...]], tuple[int, int, int]] = {
    ("s1", ()): (846, 299, 54),
    ("s2", ()): (3918, 811, 998),
    ("s1", ("lazy",)): (102, 59, 6),
    ("s1", ("failures",)): (2103, 454, 107),
}
"""Pairs under fencing, if each is followed; those that are followed if others stand for them; and those others."""


@pytest.mark.parametrize(("where", "pairs"), LATE.items(), ids=str)
def test_every_command_is_given_to_every_pair_with_late_reports_and_without(
    where: tuple[str, tuple[str, ...]], pairs: tuple[int, int, int]
) -> None:
    """Whatever is given to a pair of which late reports are still to come is given to one that has as many or more of
    them, and whatever is given to one that has none is given to it."""
    one = variant(where[1], "fencing", where[0])
    machine = Machine(one.contract, one.scope)
    whole, less = NotingLate(machine, late=False), NotingLate(machine, late=True)
    for search in (whole, less):
        assert search.search(lambda: False, lambda said: None).finished
    assert less.given == whole.given
    assert (whole.pairs, less.pairs - less.stood_for, less.stood_for) == pairs


NOT_LATE = {"duplicates": False, "deaths": False, "marks": False, "expiry": False, "losses": True, "failures": True}
"""Modes, and whether nothing but the report of a forgotten job tells with them when it came."""


@pytest.mark.parametrize(("mode", "may_wait"), NOT_LATE.items())
def test_where_something_else_tells_when_a_report_came_each_pair_is_followed(mode: str, may_wait: bool) -> None:
    one = variant((mode,), "fencing")
    assert reports_may_wait(Machine(one.contract, one.scope).setting) is may_wait


class Released(Ledger):
    """Takes the report of a forgotten job of one key for that of a job that it has still to store, which no view
    shows."""

    key = 1

    def _report(self, worker: int, job: int) -> Answer:
        known = self.engine.jobs.get(job)
        if known is not None and known.state is JobState.FORGOTTEN and known.pairs[0].key == self.key:
            self.engine.connector.storing.add(self.key)
        return super()._report(worker, job)

    _PERFORM = {**Ledger._PERFORM, "report": _report}  # noqa: RUF012


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("key", "commands"), [(1, 8), (2, 11)])
def test_a_late_report_after_which_the_target_is_another_is_followed(
    key: int, commands: int, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each job, also where the report of another one stands for it."""
    monkeypatch.setattr(Released, "key", key)
    machine = Machine(Contract("fencing"), SCOPES["s1"])
    found = Product(machine, Released(machine.setting), True, allowance=late, late=late).search(
        lambda: False, lambda said: None
    )
    assert found.divergence is not None
    assert (found.divergence.property, len(found.commands)) == ("every-full-block-is-stored-or-refused", commands)


EXPLORED: dict[tuple[Discipline, tuple[str, ...]], tuple[int, int]] = {
    ("pinning", ("resets", "duplicates")): (695, 165),
    ("pinning", ("marks",)): (866, 224),
    ("pinning", ("expiry",)): (874, 325),
    ("fencing", ("failures",)): (2103, 1381),
}
"""States of s1 with these modes, in the same two ways."""


@pytest.mark.parametrize(("where", "states"), EXPLORED.items(), ids=str)
def test_every_fair_transition_is_there_between_the_same_states(
    where: tuple[Discipline, tuple[str, ...]], states: tuple[int, int]
) -> None:
    one = variant(where[1], where[0])
    machine = Machine(one.contract, one.scope)
    whole, less = Graph(machine), Graph(machine, allowance=True)
    for graph in (whole, less):
        explored = graph.explore(lambda: False, lambda said: None)
        assert (explored.finished, explored.violation) == (True, None)
    assert fair_transitions(less) == fair_transitions(whole)
    assert (len(whole.states), len(less.states)) == states


def fair_transitions(graph: Graph) -> set[tuple[State, int, State]]:
    """As if nothing but early expiries was left anywhere."""
    nothing = graph.machine.initial()._replace(resets_left=0, faults_left=Faults(0, 0, 0, 0))
    bare = [canonical(graph.setting.contract, unspent(nothing, state)) for state in graph.states]
    edges = zip(graph.edges.sources, graph.edges.kinds, graph.edges.targets, strict=True)
    return {(bare[source], kind, bare[target]) for source, kind, target in edges}


def test_a_trap_is_found_at_the_end_of_a_way_that_is_as_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake, "offered", lambda *_: False)
    one = variant(("failures", "resets"), "pinning")
    machine = Machine(one.contract, one.scope)
    whole, less = Graph(machine), Graph(machine, allowance=True)
    found = [graph.explore(lambda: False, lambda said: None).violation for graph in (whole, less)]
    assert [violation and (violation.property, len(violation.path)) for violation in found] == [
        ("work-remaining-keeps-the-engine-stepping", 12)
    ] * 2


class Impressed(Ledger):
    """Takes a forged report for a store that it need not make again, which no view shows."""

    def _forge_report(self, worker: int) -> Answer:
        self.engine.connector.storing.add(1)
        return super()._forge_report(worker)

    _PERFORM = {**Ledger._PERFORM, "forge_report": _forge_report}  # noqa: RUF012


@pytest.mark.parametrize("allowance", [False, True])
def test_a_fault_after_which_the_target_is_another_is_followed(allowance: bool) -> None:
    one = variant(("forgeries",), "pinning")
    machine = Machine(one.contract, one.scope)
    found = Product(machine, Impressed(machine.setting), True, allowance=allowance).search(
        lambda: False, lambda said: None
    )
    assert found.divergence is not None
    assert [command.verb for command in found.commands] == ["submit", "forge_report", "schedule"]


def test_more_of_one_does_not_stand_for_less_of_it_and_more_of_another() -> None:
    nodes, start = Nodes(), Machine(Contract("pinning"), SCOPES["s1"]).initial()
    assert nodes.add(start, (), Left((1, 0)))
    assert not nodes.add(start, (), Left((1, 0)))
    assert not nodes.add(start, (), Left((0, 0)))
    assert nodes.add(start, (), Left((0, 1)))
    assert not nodes.add(start, (), Left((0, 0)))
    assert nodes.add(start, (), Left((1, 1)))
    assert (covers(Left((1, 1)), Left((0, 1))), covers(Left((1, 0)), Left((0, 1)))) == (True, False)


def test_early_expiries_stay_what_tells_states_apart() -> None:
    one = variant(("expiry",), "pinning")
    start = Machine(one.contract, one.scope).initial()
    spent = start._replace(resets_left=0, faults_left=start.faults_left._replace(expiries=0, losses=0))
    assert unspent(start, spent) == start._replace(faults_left=start.faults_left._replace(expiries=0))
    assert left_in(spent).times == (0,) * 9


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("name", ["s1", "s2"])
def test_the_modes_in_pairs_have_every_mode_alone_and_every_two_that_are_paired(
    name: str, discipline: Discipline
) -> None:
    """In the same scope, but for vain faults; or in a larger one: under fencing with one worker two of the modes are
    taken with less when they are taken alone."""
    scope, contract = SCOPES[name], Contract(discipline)
    together = variants(name, scope, contract, pairs=True)
    contained = [one[1:] for one in together]
    contained += [(one.scope._replace(duplicates=0, forgeries=0, double_frees=0), one.contract) for one in together]
    for mode, one in zip(MODES, variants(name, scope, contract, pairs=False), strict=True):
        lighter = name == "s1" and discipline == "fencing" and mode in ("pressure", "resets")
        whole = variant((mode,), discipline) if lighter else one
        if mode not in VAIN:
            assert whole[1:] in contained, mode
    for pair in paired():
        assert any(set(pair) <= set(switched_on(one.contract, one.scope)) for one in together), pair


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_failed_copy_whose_report_is_lost_is_no_violation(discipline: Discipline) -> None:
    """Nobody notes that it failed: what the proofs say of what it has written is not asked there, and the rest is."""
    one = variant(("failures", "losses"), discipline)
    machine = Machine(one.contract, one.scope._replace(resets=0))
    search = Product(machine, Ledger(machine.setting), True, allowance=True)
    found = search.search(lambda: False, lambda said: None)
    assert (found.finished, found.divergence) == (True, None)
    assert (search.asked, search.passed_over) == (found.pairs - 1, 0)
