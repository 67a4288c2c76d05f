"""kvoffload's own state, made without the machine, is the machine's, and every property is asked of it."""

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from kvmodel import Action, Contract, Machine, State
from kvmodel import actions as act
from kvmodel.contract import DISCIPLINES, Discipline
from kvmodel.setting import Setting
from kvmodel.state import Faults
from kvmodel.transfer_job import FORGOTTEN, LOST, REPORTED, Job
from kvproof.engines.run_of import run_of
from kvproof.scopes import SCOPES
from kvproof.search import product
from kvproof.search.modes import MODES, Variant
from kvproof.search.product import Product, _Reached
from kvproof.targets.command import Command
from kvproof.targets.invariants import Broken, Invariants, unnoted
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Crashed
from kvproof.targets.view import View

Patch = pytest.MonkeyPatch


def comparable(state: State) -> tuple[object, ...]:
    """What both can know. The engine does not know of a forgotten job that a report of it was lost, nor the machine's
    names of steps, nor on which worker a reported copy failed; waits are compared by `runnable`, in the view."""

    def job(one: Job) -> Job:
        positions = tuple(sorted({(0, position) for _, position in one.failed}))
        return one._replace(after_step=0, after_jobs=(), failed=positions)

    jobs = [job(one) for one in state.jobs if one.view != FORGOTTEN or not set(one.progress) <= {REPORTED, LOST}]
    steps = [
        (step.ran, step.handled, [share._replace(outdated=False, request=0) for share in step.shares])
        for step in state.steps
    ]
    pools_and_requests = state.device, state.host, state.second, state.requests
    contents = state.device_contents, state.host_contents, state.second_contents
    return (*pools_and_requests, jobs, steps, state.next_job, *contents)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("mode", ["", *MODES])
def test_the_own_state_is_the_machines(mode: str, discipline: Discipline) -> None:
    variant = Variant("s1", SCOPES["s1"], Contract(discipline))
    if mode:
        variant = MODES[mode](variant)
    machine = Machine(variant.contract, variant.scope)
    search = Comparing(machine, Ledger(machine.setting), composites=True)
    found = search.search(search.is_enough, lambda said: None)
    assert found.divergence is None
    assert search.compared == found.edges + 1
    assert search.compared >= 150
    assert found.finished or search.is_enough()


class Comparing(Product):
    """Compares the target's own state with the machine's at the start and wherever a command leads, each time anew."""

    compared = 0

    def is_enough(self) -> bool:
        """The shortest ways, and those on which a load, a promotion and a request come to their end: mostly after some
        800 commands, and in a few modes not even after 1,500."""
        ends = ["Wake", "Finish", *["Promote"] * bool(self.machine.setting.scope.second_blocks)]
        return self.compared >= (500 if all(self.taken[end] for end in ends) else 1500)

    def _met_again(self, actions: tuple[Action, ...], state: State, snapshot: Hashable) -> None:
        return None

    def _come_to(self, actions: tuple[Action, ...], state: State, snapshot: Hashable, view: View | Crashed) -> _Reached:
        reached = super()._come_to(actions, state, snapshot, view)
        assert isinstance(reached.own, State)
        assert comparable(reached.own) == comparable(state), actions
        self.compared += 1
        return reached


class Forgetful(Ledger):
    """kvoffload, whose job ids start afresh when nothing is on its way: no view shows that."""

    def perform(self, command: Command) -> Any:
        outcome = super().perform(command)
        if command.verb == "reset" and not self.engine.jobs:
            self.engine.connector.next_job = 0
        return outcome


TO_A_RESET = (
    *(Command("submit", (0,)), Command("schedule"), Command("run", (0, "compute")), Command("run", (0, "store"))),
    *(Command("report", (0, 0)), Command("reset", ("invalidate", "preempt"))),
)


def test_a_step_that_no_view_shows_is_seen_where_it_is_made() -> None:
    """The machine agrees with all that can be seen; the property is broken in the target's own state."""
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    found = Product(machine, Forgetful(machine.setting), composites=True).search(lambda: False, lambda said: None)
    assert found.divergence is not None
    assert found.divergence.property == "ids-are-never-reused"
    assert found.divergence.sentence == "The next job id went back from 1 to 0."
    assert found.divergence.cause == ("invariant", "reset", "ids-are-never-reused")
    assert found.divergence.rule is act.Reset
    assert len(found.commands) == 6


def test_every_step_is_judged_also_where_it_leads_to_what_is_known(monkeypatch: Patch) -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    search = Product(machine, Ledger(machine.setting), composites=False)
    judged: list[Action] = []
    of_step = search.invariants.of_step

    def noting(before: State, action: Action, after: State) -> Broken | None:
        judged.append(action)
        return of_step(before, action, after)

    monkeypatch.setattr(search.invariants, "of_step", noting)
    found = search.search(lambda: False, lambda said: None)
    assert (found.pairs, found.edges, len(judged)) == (206, 531, 531)


@pytest.fixture
def sampled(monkeypatch: Patch) -> Product:
    """A search of s1 that asks the invariants of the proofs at its first 10 pairs and at one in 3 of the rest."""
    monkeypatch.setattr(product, "THEN_ONE_IN", 3)
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    return Product(machine, Ledger(machine.setting), composites=True, asked_at_first=10)


def test_properties_are_asked_at_every_pair_and_invariants_of_the_proofs_at_a_sample(
    sampled: Product, monkeypatch: Patch
) -> None:
    properties_at: list[int] = []
    proofs_at: list[int] = []
    invariants = sampled.invariants
    of_state, of_specification = invariants.of_state, invariants.of_specification

    def noting_state(own: State, proofs: bool = True) -> Broken | None:
        properties_at.append(sampled.pairs)
        return of_state(own, proofs)

    def noting_specification(own: State) -> Broken | None:
        proofs_at.append(sampled.pairs)
        return of_specification(own)

    monkeypatch.setattr(invariants, "of_state", noting_state)
    monkeypatch.setattr(invariants, "of_specification", noting_specification)
    assert sampled.search(lambda: False, lambda said: None).finished
    assert properties_at == [*range(2, 207)]
    assert proofs_at == [*range(2, 11), *range(12, 207, 3)]
    assert (sampled.asked, sampled.passed_over) == (74, 131)


def test_an_invariant_of_the_proofs_that_breaks_is_seen_at_the_next_pair_of_the_sample(
    sampled: Product, monkeypatch: Patch
) -> None:
    broken = Broken("no-use-after-free", "it breaks")
    monkeypatch.setattr(sampled.invariants, "of_specification", lambda own: broken if sampled.pairs > 10 else None)
    found = sampled.search(lambda: False, lambda said: None)
    assert found.divergence is not None
    assert found.divergence.property == "no-use-after-free"
    assert found.pairs == 12


def test_at_s1_the_invariants_of_the_proofs_are_asked_at_every_pair_but_the_start() -> None:
    machine = Machine(Contract("fencing"), SCOPES["s1"])
    search = Product(machine, Ledger(machine.setting), composites=True)
    assert search.search(lambda: False, lambda said: None).pairs == 846
    assert (search.asked, search.passed_over) == (845, 0)


def test_a_replay_sees_it_too() -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    run = run_of(machine, lambda: Forgetful(machine.setting), TO_A_RESET, lambda: False)
    assert run.done == 6
    assert run.divergence is not None
    assert run.divergence.property == "ids-are-never-reused"


def test_what_holds_of_the_machine_holds_of_its_states() -> None:
    machine = Machine(Contract("fencing"), SCOPES["s1"])
    invariants = Invariants(machine.setting)
    before = machine.initial()
    after = machine.step(before, act.Submit(0))
    assert invariants.judged(before, TO_A_RESET[0], (act.Submit(0),), after) is None


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (Crashed("KeyError", "7"), "The target failed with KeyError on submit(0): 7."),
        (lambda state: state._replace(host=state.host._replace(refs=())), None),
    ],
)
def test_a_state_that_makes_no_sense_is_a_crash(own: Crashed | Callable[[State], State], says: str | None) -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    before = machine.initial()
    after = own if isinstance(own, Crashed) else own(before)._replace(faults_left=Faults(0, 0, 0, 0))
    found = Invariants(machine.setting).judged(before, TO_A_RESET[0], (), after)
    assert found is not None
    assert says is None or found.sentence == says


def test_what_own_state_answers_must_be_a_state() -> None:
    class Wordy(Ledger):
        def own_state(self, view: View) -> Any:
            return "all is well"

    machine = Machine(Contract("pinning"), SCOPES["s1"])
    run = run_of(machine, lambda: Wordy(machine.setting), TO_A_RESET, lambda: False)
    assert run.divergence is not None
    assert run.divergence.property == "work-remaining-keeps-the-engine-stepping"
    assert run.divergence.sentence == (
        "The target failed with Malformed before the first command: "
        "own_state answered 'all is well', which is no State."
    )
    found = Product(machine, Wordy(machine.setting), composites=True).search(lambda: False, lambda said: None)
    assert found.divergence is not None
    assert found.commands == ()


def test_a_late_report_of_a_forgotten_job_is_no_completion_that_nobody_owed() -> None:
    """The machine knew that the report was lost and has let the job go at the reset; kvoffload, which could not know,
    does so when the report comes after all."""
    variant = MODES["losses"](MODES["duplicates"](Variant("s1", SCOPES["s1"], Contract("fencing"))))
    machine = Machine(variant.contract, variant.scope)
    searched = Product(machine, Ledger(machine.setting), False).search(lambda: False, lambda words: None)
    assert (searched.finished, searched.divergence, searched.states) == (True, None, 2378)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_of_a_failed_copy_whose_report_can_be_lost_two_invariants_are_not_asked(discipline: Discipline) -> None:
    """By name, which the specification knows; the others are asked."""

    def setting(**faults: int) -> Setting:
        return Machine(Contract(discipline), SCOPES["s1"]._replace(**faults)).setting

    unheard = {"store-has-written", "load-has-written"}
    assert unnoted(setting(losses=1, failures=1)) == unnoted(setting(losses=1, partial_failures=1)) == unheard
    assert unnoted(setting(losses=1)) == unnoted(setting(failures=1, partial_failures=1)) == frozenset()
    asked = Invariants(setting(losses=1, failures=1))
    assert asked.specification is not None
    assert unheard < {invariant.name for invariant in asked.specification.invariants}
    start = Machine(Contract(discipline), SCOPES["s1"]).initial()
    broken = asked.of_specification(start._replace(device=start.device._replace(refs=(1, 0))))
    assert broken is not None
    assert broken.property == "owners-account-for-references"
