"""Levels that several processes take: nothing tells afterwards how many they were."""

import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kvmodel import Contract, Machine, State
from kvmodel import actions as act
from kvmodel.contract import Discipline
from kvproof.scopes import SCOPES
from kvproof.search import graph, product, sharing
from kvproof.search.aside import Aside
from kvproof.search.graph import Graph
from kvproof.search.modes import MODES, Variant
from kvproof.search.nodes import Named
from kvproof.search.product import Product, _Open
from kvproof.targets.command import Command
from kvproof.targets.invariants import Broken
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer


@pytest.fixture(autouse=True)
def _small_levels_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "SHARED_FROM", 8)
    monkeypatch.setattr(product, "SHARED_FROM", 8)
    monkeypatch.setattr(product, "THEN_ONE_IN", 3)


def taken_by(processes: int, variant: Variant, target: type[Ledger] = Ledger) -> dict[str, object]:
    """All that there is to be known of a search."""
    machine = Machine(variant.contract, variant.scope)
    search = Product(
        machine,
        target(machine.setting),
        composites=True,
        phases=set(),
        allowance=True,
        processes=processes,
        asked_at_first=0,
    )
    found = search.search(lambda: False, lambda said: None)
    return {
        **found._asdict(),
        "divergence": found.divergence and (found.divergence.property, found.divergence.sentence),
        "asked": (search.asked, search.passed_over),
        "phases": search.phases,
        "ways": (search.parent.tolist(), search.via),
    }


def s1(discipline: Discipline, *modes: str) -> Variant:
    variant = Variant("s1", SCOPES["s1"], Contract(discipline))
    for mode in modes:
        variant = MODES[mode](variant)
    return variant


@pytest.mark.parametrize(
    "variant",
    [s1("pinning"), s1("fencing", "lazy", "resets"), s1("pinning", "failures")],
    ids=["pinning", "fencing with lazy stores and resets", "pinning with failures"],
)
def test_the_same_is_found_in_the_same_order(variant: Variant) -> None:
    alone = taken_by(1, variant)
    assert alone["finished"]
    assert taken_by(2, variant) == alone
    assert taken_by(3, variant) == alone


def explored_by(processes: int, variant: Variant, breaks: State | None = None) -> dict[str, object]:
    """All that there is to be known of an exploration. breaks: a state which a property does not allow."""
    search = Graph(Machine(variant.contract, variant.scope), True, processes)
    search._on_state.append(("no-double-free", lambda setting, state: "it breaks" if state == breaks else None))
    found = search.explore(lambda: False, lambda said: None)
    return {
        **found._asdict(),
        "states": search.states,
        "ways": (search.parent.tolist(), search.via),
        "edges": search.edges,
        "goals": search.goals,
    }


@pytest.mark.parametrize(
    "variant",
    [s1("pinning"), s1("fencing", "lazy", "resets"), s1("pinning", "failures", "duplicates")],
    ids=["pinning", "fencing with lazy stores and resets", "pinning with failures and duplicates"],
)
def test_the_same_is_explored_in_the_same_order(variant: Variant) -> None:
    alone = explored_by(1, variant)
    assert alone["finished"]
    assert explored_by(2, variant) == alone
    assert explored_by(3, variant) == alone


@pytest.mark.parametrize("number", [119, 107], ids=["this process comes to it", "the other comes to it"])
def test_a_property_is_broken_in_the_same_state(number: int) -> None:
    variant = s1("fencing")
    whole = Graph(Machine(variant.contract, variant.scope), True)
    whole.explore(lambda: False, lambda said: None)
    broken = whole.states[number]
    alone = explored_by(1, variant, broken)
    assert (alone["states"], alone["finished"]) == (whole.states[: number + 1], False)
    assert explored_by(2, variant, broken) == alone


class Impressed(Ledger):
    """Takes a report that comes twice for a store that it need not make, which no view shows."""

    def _duplicate_report(self, worker: int, job: int) -> Answer:
        self.engine.connector.storing.add(1)
        return super()._duplicate_report(worker, job)

    _PERFORM = {**Ledger._PERFORM, "duplicate_report": _duplicate_report}  # noqa: RUF012


def test_so_is_the_same_divergence_after_the_same_commands() -> None:
    alone = taken_by(1, s1("fencing", "duplicates"), Impressed)
    assert alone["divergence"] is not None
    shared = taken_by(2, s1("fencing", "duplicates"), Impressed)
    assert (shared["commands"], shared["divergence"]) == (alone["commands"], alone["divergence"])


@pytest.mark.parametrize("processes", [1, 2])
def test_an_invariant_of_the_proofs_that_breaks_late_is_seen_at_the_same_pair(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    search = Product(machine, Ledger(machine.setting), composites=True, processes=processes, asked_at_first=0)
    broken = Broken("no-use-after-free", "it breaks")
    monkeypatch.setattr(search.invariants, "of_specification", lambda own: broken if search.pairs > 100 else None)
    found = search.search(lambda: False, lambda said: None)
    assert found.divergence is not None
    assert (found.pairs, found.divergence.property) == (102, "no-use-after-free")


class Keeping(Product):
    """Keeps the target's own states, in the order of their discovery."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, Ledger(machine.setting), composites=True)
        self.own: list[object] = []

    def _enter(self, name: Named, node: _Open, parent: int, command: Command | None) -> bool:
        is_new = super()._enter(name, node, parent, command)
        if is_new:
            self.own.append(node.own)
        return is_new


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        ({"no-use-after-free"}, "no-use-after-free"),
        ({"no-use-after-free", "no-double-free"}, "no-double-free"),
    ],
    ids=["of the proofs alone", "a property too"],
)
def test_what_breaks_in_one_state_is_told_in_the_same_way(
    breaks: set[str], told: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a property before an invariant of the proofs, and with the rule of the action. Pair 181 is one that, of two
    processes, the other comes to."""
    monkeypatch.setattr(product, "THEN_ONE_IN", 1)
    machine = Machine(Contract("fencing"), SCOPES["s1"])
    whole = Keeping(machine)
    assert whole.search(lambda: False, lambda said: None).finished
    wrong = whole.own[180]
    search = Product(machine, Ledger(machine.setting), composites=True, processes=processes, asked_at_first=0)
    broken = Broken("no-use-after-free", "it breaks")
    monkeypatch.setattr(search.invariants, "of_specification", lambda own: broken if own == wrong else None)
    if "no-double-free" in breaks:
        judge = ("no-double-free", lambda setting, own: "it breaks" if own == wrong else None)
        monkeypatch.setattr(search.invariants, "_on_state", [judge])
    found = search.search(lambda: False, lambda said: None)
    assert found.divergence is not None
    assert (found.pairs, len(found.commands)) == (181, 11)
    assert (found.divergence.property, found.divergence.rule) == (told, act.Run)


def test_what_is_done_aside_is_answered() -> None:
    assert Aside(lambda: os.getpid()).answer() != os.getpid()


def test_what_raises_aside_is_told_and_raises_here() -> None:
    aside = Aside(lambda: 1 // 0)
    with pytest.raises(RuntimeError, match=r"(?s)^a process that shares the search raised:\nTraceback .*ZeroDivision"):
        aside.answer()


def test_who_is_killed_aside_gives_no_answer() -> None:
    aside = Aside(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(RuntimeError, match=r"^a process that shares the search ended with status -9$"):
        aside.answer()


def test_what_is_called_off_is_ended() -> None:
    aside = Aside(signal.pause)
    aside.call_off()
    with pytest.raises(ChildProcessError):
        os.waitpid(aside._process, os.WNOHANG)


def shared_search() -> Product:
    one = s1("pinning")
    machine = Machine(one.contract, one.scope)
    return Product(machine, Ledger(machine.setting), composites=True, processes=2, asked_at_first=0)


@pytest.fixture
def asides(monkeypatch: pytest.MonkeyPatch) -> list[Aside[object]]:
    """Those that a search has begun."""
    begun: list[Aside[object]] = []

    def noted(work: Callable[[], object]) -> Aside[object]:
        begun.append(Aside(work))
        return begun[-1]

    monkeypatch.setattr(sharing, "Aside", noted)
    return begun


def test_no_process_is_left_when_the_search_raises(
    asides: list[Aside[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    search, whole = shared_search(), Product._take

    def take(self: Product, *arguments: Any, **named: Any) -> object:
        if asides and self._aside is None:
            raise OSError("it is not to be")
        return whole(self, *arguments, **named)

    monkeypatch.setattr(Product, "_take", take)
    with pytest.raises(OSError, match="it is not to be"):
        search.search(lambda: False, lambda said: None)
    assert len(asides) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(asides[0]._process, os.WNOHANG)


def test_who_shares_the_search_is_cut_short_too(asides: list[Aside[object]]) -> None:
    search, here = shared_search(), os.getpid()
    found = search.search(lambda: os.getpid() != here, lambda said: None)
    assert (found.finished, found.commands, found.divergence) == (False, (), None)
    assert asides


@pytest.mark.skipif(sys.platform != "linux", reason="no other system ends a process with the one that forked it")
def test_who_shares_the_search_ends_when_the_search_is_killed() -> None:
    here, there = os.pipe()
    searching = os.fork()
    if not searching:
        os.dup2(there, 1)
        Aside(lambda: (os.write(1, str(os.getpid()).encode()), signal.pause()))
        while True:
            signal.pause()
    os.close(there)
    shares = os.pidfd_open(int(os.read(here, 100)))
    os.close(here)
    os.kill(searching, signal.SIGKILL)
    os.waitpid(searching, 0)
    try:
        assert select.select([shares], [], [], 60.0)[0] == [shares]
        os.close(shares)
    except AssertionError:
        signal.pidfd_send_signal(shares, signal.SIGKILL)
        raise
