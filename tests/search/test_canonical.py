"""The canonical form: states that differ in names alone become equal, and what is merged behaves alike.

Reductions must be sound, so the search with them is held against the search without.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel import Contract, Machine, Scope, State
from kvmodel.actions import Action
from kvmodel.block_pool import HOLE, Pool
from kvmodel.contract import Discipline
from kvmodel.launched_step import Step
from kvmodel.request import Pins, Request
from kvmodel.transfer_job import NONE, STORE, Job, Pair
from kvproof.search import graph
from kvproof.search.canonical import canonical, canonical_with
from kvproof.search.graph import Explored, Graph
from kvspecs.catalogue import JUDGED

RICH = Scope(
    device_blocks=3,
    host_blocks=2,
    workers=2,
    prompts=("ab", "a"),
    resets=2,
    meanings=("invalidate", "evict"),
    survivors=True,
    lookups=True,
    losses=1,
)
MACHINES = {
    f"{discipline} {name}": Machine(contract, scope)
    for discipline in ("pinning", "fencing")
    for name, contract, scope in (
        ("eager", Contract(discipline), RICH),
        ("decode", Contract(discipline), RICH._replace(decode=1, lookups=False)),
        ("lazy", Contract(discipline, "lazy"), RICH._replace(duplicates=1)),
        ("first", Contract(discipline, output_from="first"), RICH._replace(lookups=False)),
        ("deep", Contract(discipline, depth=2), RICH._replace(decode=1)),
        ("deep first", Contract(discipline, output_from="first", depth=2), RICH._replace(decode=1, lookups=False)),
        ("expiring", Contract(discipline, deadline="expire"), RICH._replace(expiries=2)),
        ("failing", Contract(discipline), RICH._replace(host_blocks=3, failures=2, partial_failures=2)),
        ("repeats", Contract(discipline), RICH._replace(prompts=("aa", "ab"), repeats=True)),
        ("window", Contract(discipline), RICH._replace(prompts=("aa", "b"), decode=2, repeats=True, window=1)),
        ("partial", Contract(discipline, admission="partial"), RICH._replace(prompts=("ab", "cb"))),
        ("marks", Contract(discipline, reports="marks"), RICH._replace(duplicates=1, failures=1)),
    )
}

walks = st.lists(st.integers(0, 1000), max_size=60)


@cache
def _rank(kind: type[Action]) -> int:
    """Walks get further if they mostly go on than if they mostly end things."""
    return {"Reset": 1, "Abort": 1, "Preempt": 1, "ReleaseLookup": 1}.get(kind.__name__, 4)


def walked(machine: Machine, choices: Sequence[int]) -> State:
    """The state at the end of a walk."""
    state = machine.initial()
    for choice in choices:
        offered = [action for action in machine.actions(state) for _ in range(_rank(type(action)))]
        if not offered:
            break
        state = machine.step(state, offered[choice % len(offered)])
    return state


def renamed(
    state: State, device: Sequence[int], host: Sequence[int], workers: Sequence[int], job_gap: int, step_gap: int
) -> State:
    """The same state under other names: device[old], host[old] new blocks; workers[new] old workers; ids moved on."""

    def pool(old: Pool, names: Sequence[int]) -> Pool:
        refs, keys = [0] * len(names), [0] * len(names)
        for block, name in enumerate(names):
            refs[name], keys[name] = old.refs[block], old.keys[block]
        return Pool(tuple(refs), tuple(keys), tuple(names[block] for block in old.free))

    def rows(old: tuple[tuple[int, ...], ...], names: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(old[worker][names.index(block)] for block in range(len(names))) for worker in workers)

    def request(old: Request) -> Request:
        pins = old.pins and Pins(tuple(device[b] for b in old.pins.device), tuple(host[b] for b in old.pins.host))
        jobs = tuple(job + job_gap for job in old.jobs)
        return old._replace(table=tuple(b if b == HOLE else device[b] for b in old.table), pins=pins, jobs=jobs)

    def job(old: Job) -> Job:
        source, target = (device, host) if old.direction == STORE else (host, device)
        return old._replace(
            id=old.id + job_gap,
            pairs=tuple(Pair(source[pair.source], target[pair.destination], pair.key) for pair in old.pairs),
            progress=tuple(old.progress[worker] for worker in workers),
            failed=tuple(sorted((workers.index(worker), position) for worker, position in old.failed)),
            after_step=old.after_step if old.after_step == NONE else old.after_step + step_gap,
            after_jobs=tuple(other + job_gap for other in old.after_jobs),
        )

    def step(old: Step) -> Step:
        return Step(
            old.id + step_gap,
            tuple(
                share._replace(table=tuple(b if b == HOLE else device[b] for b in share.table)) for share in old.shares
            ),
            tuple(old.ran[worker] for worker in workers),
            old.handled,
            tuple(other + job_gap for other in old.after_jobs),
        )

    return state._replace(
        device=pool(state.device, device),
        host=pool(state.host, host),
        requests=tuple(map(request, state.requests)),
        jobs=tuple(map(job, state.jobs)),
        steps=tuple(map(step, state.steps)),
        next_job=state.next_job + job_gap,
        device_contents=rows(state.device_contents, device),
        host_contents=rows(state.host_contents, host),
    )


@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=60)
@given(walk=walks, names=st.data())
def test_names_do_not_matter(name: str, walk: list[int], names: st.DataObject) -> None:
    machine = MACHINES[name]
    contract, scope = machine.setting.contract, machine.setting.scope
    state = walked(machine, walk)
    device = names.draw(st.permutations(range(scope.device_blocks)))
    host = names.draw(st.permutations(range(scope.host_blocks)))
    workers = list(range(scope.workers))
    if contract.output_from == "all":  # otherwise the first worker is not like the others
        workers = names.draw(st.permutations(workers))
    # whether a job has ever left the table is told apart while completions may be repeated
    job_gap = names.draw(st.integers(0, 9)) if not scope.duplicates or state.next_job > len(state.jobs) else 0
    step_gap = names.draw(st.integers(0, 9))
    other = renamed(state, device, host, workers, job_gap, step_gap)
    assert canonical(contract, other) == canonical(contract, state)


@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=60)
@given(walk=walks)
def test_what_is_merged_behaves_alike(name: str, walk: list[int]) -> None:
    """The canonical state has the same successors, up to names again, and every property says the same of it."""
    machine = MACHINES[name]
    contract = machine.setting.contract
    state = walked(machine, walk)
    reduced = canonical(contract, state)
    assert canonical(contract, reduced) == reduced
    assert successors(machine, reduced) == successors(machine, state)
    for judged in JUDGED:
        if judged.on_state is not None:
            assert (judged.on_state(machine.setting, reduced) is None) == (
                judged.on_state(machine.setting, state) is None
            )


def successors(machine: Machine, state: State) -> list[tuple[str, State]]:
    """Kind of action and canonical state, for everything that may happen next."""
    contract = machine.setting.contract
    found = [(type(a).__name__, canonical(contract, machine.step(state, a))) for a in machine.actions(state)]
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=30)
@given(walk=walks)
def test_the_renaming_is_one(name: str, walk: list[int]) -> None:
    """Blocks and workers are permuted; jobs and steps keep their order."""
    machine = MACHINES[name]
    scope = machine.setting.scope
    state = walked(machine, walk)
    reduced, renaming = canonical_with(machine.setting.contract, state)
    assert sorted(renaming.device) == list(range(scope.device_blocks))
    assert sorted(renaming.host) == list(range(scope.host_blocks))
    assert sorted(renaming.workers) == list(range(scope.workers))
    assert [renaming.jobs[job.id] for job in state.jobs] == [job.id for job in reduced.jobs]
    assert [renaming.steps[step.id] for step in state.steps] == [step.id for step in reduced.steps]
    assert [reduced.device.refs[new] for new in renaming.device] == list(state.device.refs)
    assert [reduced.host.keys[new] for new in renaming.host] == list(state.host.keys)


def explored(machine: Machine) -> tuple[Explored, set[State]]:
    searched = Graph(machine)
    found = searched.explore(lambda: False, lambda said: None)
    return found, set(searched.states)


ONCE = Scope(device_blocks=2, host_blocks=1, workers=1, prompts=("ab",), preempts=False)
"""Without preemption a request is admitted once between resets, so that ids end and a search without renaming does."""


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize(
    ("scope", "modes"),
    [
        (ONCE, {}),
        (ONCE._replace(workers=2), {}),
        (ONCE._replace(workers=2, resets=0), {"output_from": "first"}),
        (ONCE._replace(device_blocks=3, decode=1, resets=0), {}),
        (ONCE._replace(meanings=("invalidate", "evict"), survivors=True), {}),
        (ONCE._replace(meanings=("evict",), tiers=("device", "host"), resets=2, aborts=False), {}),
        (ONCE._replace(losses=1, double_frees=1), {}),
        (ONCE._replace(duplicates=1), {}),
        (ONCE._replace(device_blocks=3, decode=2, window=1, resets=0), {}),
        (ONCE._replace(prompts=("aa", "aa"), repeats=True, resets=0, aborts=False), {}),
        (ONCE._replace(prompts=("ab", "ac"), resets=0, aborts=False), {"admission": "partial"}),
        (ONCE._replace(host_blocks=2, workers=2, failures=1, partial_failures=1, resets=0), {}),
        (ONCE._replace(device_blocks=1, prompts=("a",), losses=1, expiries=1), {"deadline": "expire"}),
        (ONCE._replace(prompts=("a",), decode=1), {"depth": 2}),
        (ONCE._replace(prompts=("a",), decode=1, workers=2, resets=0), {"depth": 2, "output_from": "first"}),
        (ONCE._replace(prompts=("a",), decode=1, meanings=("evict",), survivors=True), {"depth": 2}),
        (ONCE._replace(prompts=("a",), decode=1, aborts=False, losses=1, resets=0), {"depth": 2, "store_mode": "lazy"}),
        (ONCE._replace(prompts=("a", "b"), aborts=False), {"store_mode": "lazy"}),
        (ONCE._replace(device_blocks=1, prompts=("a", "b", "a"), aborts=False, resets=0), {}),
    ],
)
def test_the_reduced_search_finds_one_state_of_each_orbit(
    discipline: Discipline, scope: Scope, modes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    holds_each_orbit(Contract(discipline, **modes), scope, monkeypatch)


def holds_each_orbit(contract: Contract, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same verdict; and the states of the search without renaming are, renamed, exactly those of the search with it."""
    machine = Machine(contract, scope)
    reduced, representatives = explored(machine)
    monkeypatch.setattr(graph, "canonical", lambda contract, state: state)
    whole, states = explored(machine)
    assert reduced.finished
    assert whole.finished
    assert reduced.violation is None
    assert whole.violation is None
    assert {canonical(contract, state) for state in states} == representatives
    assert whole.states >= reduced.states
    assert whole.depth >= reduced.depth


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize(
    "scope",
    [
        ONCE._replace(duplicates=1, losses=1),
        ONCE._replace(workers=2, prompts=("a",), host_blocks=2),
        ONCE._replace(device_blocks=3, decode=1, resets=0, duplicates=1),
        ONCE._replace(device_blocks=1, prompts=("a", "b", "a"), aborts=False, resets=0),
    ],
)
def test_the_same_where_workers_report_marks(
    discipline: Discipline, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds_each_orbit(Contract(discipline, reports="marks"), scope, monkeypatch)


def test_without_renaming_a_bug_is_found_at_the_same_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvmodel.rules.reset_pinning.is_drained", lambda state, tiers: True)
    machine = Machine(Contract("pinning"), ONCE)
    reduced, _ = explored(machine)
    monkeypatch.setattr(graph, "canonical", lambda contract, state: state)
    whole, _ = explored(machine)
    assert reduced.violation is not None
    assert whole.violation is not None
    assert reduced.violation.property == whole.violation.property == "true-reset-serves-nothing-old"
    assert len(reduced.violation.path) == len(whole.violation.path) == 4
