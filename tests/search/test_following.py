"""What is followed of a machine: actions, phases, modes and consecutive actions; and nothing stays behind."""

import pytest

from kvmodel import Contract, Machine
from kvmodel import actions as act
from kvproof.scopes import SCOPES
from kvproof.search.following import following
from kvproof.search.graph import Graph
from kvproof.search.modes import MODES, Variant, switched_on
from kvproof.search.phases import worded

S1 = Variant("s1", SCOPES["s1"], Contract("pinning"))


def test_two_steps_are_followed_in_their_order() -> None:
    machine = Machine(S1.contract, S1.scope)
    with following() as followed:
        submitted = machine.step(machine.initial(), act.Submit(0))
        machine.step(submitted, act.Admit(0))
    counts = {name: count for name, count in followed.counts().items() if count}
    assert counts == {
        "action:Submit": 1,
        "action:Admit": 1,
        "phase:Submit ABSENT": 1,
        "phase:Admit WAITING": 1,
        "then:Submit > Admit": 1,
    }


def test_a_pair_is_met_whichever_way_the_state_was_reached_first() -> None:
    """Two requests are submitted in either order; one of the orders is not how their state was met first."""
    machine = Machine(S1.contract, S1.scope._replace(prompts=("a", "b"), resets=0))
    with following() as followed:
        explored = Graph(machine).explore(lambda: False, lambda said: None)
    counts = followed.counts()
    assert explored.finished
    assert counts["action:Submit"] == explored.actions["Submit"]
    assert counts["then:Submit > Submit"] == 2
    assert counts["then:Submit > Admit"] > 0
    assert "then:Submit > Wake" in counts
    assert "then:Finish > Wake" in counts
    assert "then:Launch > Launch" not in counts


def test_nothing_is_followed_afterwards() -> None:
    plain = Machine.step
    with following():
        assert Machine.step is not plain
    assert Machine.step is plain
    with pytest.raises(RuntimeError, match="in the middle"), following():
        raise RuntimeError("in the middle")
    assert Machine.step is plain


def test_s1_has_no_mode_on() -> None:
    assert switched_on(S1.contract, S1.scope) == ()


@pytest.mark.parametrize("name", MODES)
def test_each_mode_is_seen_when_it_is_switched_on(name: str) -> None:
    varied = MODES[name](S1)
    assert name in switched_on(varied.contract, varied.scope)


def test_a_phase_is_told_in_words() -> None:
    job = ("store", "LIVE", ("copied", "launched"))
    assert (
        worded(("Preempt", "RUNNING", False, True, (job,))) == "Preempt RUNNING, in a step, store LIVE copied/launched"
    )
    assert worded(("Admit", "WAITING", True, False, ())) == "Admit WAITING, looked up"
    assert worded(("Reset", "evict", "keep", "host", *job)) == "Reset evict, keep, host, store LIVE copied/launched"
    assert worded(("Run", "compute")) == "Run compute"
