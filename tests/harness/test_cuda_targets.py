"""kvoffload on the cuda device under conform and soak, with CUDA simulated: nothing here runs on a GPU."""

from itertools import count

import pytest
from tests.impl.simulated_cuda import SimulatedDriver, SimulatedStream

from kvmodel.contract import Contract, Discipline
from kvoffload.devices import cuda_torch
from kvoffload.devices.cuda_driver import Event
from kvproof.engines import conform, soak
from kvproof.job import Job
from kvproof.rows import BELOW
from kvproof.scopes import parse_scope
from kvproof.verdict import Result, Verdict

TARGET = "kvproof.targets.kvoffload:Cuda"


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[SimulatedDriver]:
    """Every driver that was opened."""
    drivers: list[SimulatedDriver] = []
    seeds = count()

    def driver() -> SimulatedDriver:
        drivers.append(SimulatedDriver(gpus=1 + len(drivers) % 2, haste=3, seed=next(seeds)))
        return drivers[-1]

    monkeypatch.setattr(cuda_torch, "driver", driver)
    return drivers


def job(engine: str, discipline: Discipline, scope: str, options: dict[str, object], target: str = TARGET) -> Job:
    name, sizes = parse_scope(scope)
    return Job(
        engine=engine,
        target=target,
        discipline=discipline,
        scope_name=name,
        scope=sizes,
        contract=Contract(discipline),
        seed=0,
        device="cuda",
        options=options,
        title=engine,
    )


def conformed(discipline: Discipline, scope: str) -> Result:
    planned = job("conform", discipline, scope, {"cover": "transitions"})
    return conform.run(planned, lambda words: None, lambda: False)


@pytest.mark.parametrize(
    ("discipline", "scope", "edges"), [("pinning", "s2,resets=0", 500), ("fencing", "s1,aborts=no", 1575)]
)
def test_every_transition_of_a_small_scope_on_gated_streams(discipline: Discipline, scope: str, edges: int) -> None:
    result = conformed(discipline, scope)
    assert result.verdict is Verdict.PROVED, result.detail
    assert (result.counts["edges"], result.counts["planned_edges"]) == (edges, edges)
    assert "all bytes checked" in result.detail


@pytest.mark.parametrize(("scope", "edges"), [(BELOW, 246), ("s2,resets=0,aborts=no,preempts=no,deaths=1", 192)])
def test_every_transition_with_a_second_tier_and_with_a_worker_that_dies(scope: str, edges: int) -> None:
    result = conformed("pinning", scope)
    assert result.verdict is Verdict.PROVED, result.detail
    assert (result.counts["edges"], result.counts["planned_edges"]) == (edges, edges)


def test_waits_that_cuda_was_not_told_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: SimulatedStream, event: Event) -> None:
        pass

    monkeypatch.setattr(SimulatedStream, "wait", forgotten)
    result = conformed("pinning", "s1,resets=0")
    assert result.verdict is Verdict.REFUTED
    assert result.failure is not None
    assert result.failure.property == "reads-what-was-written"
    assert result.failure.sentence == (
        "The oldest operation of worker 0's store stream does not wait for the compute that writes what it reads."
    )


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_soak_on_free_streams(discipline: Discipline, simulated: list[SimulatedDriver]) -> None:
    result = soak.run(job("soak", discipline, "s7", {"copies": 300}, "kvoffload"), lambda words: None, lambda: False)
    assert result.verdict is Verdict.PASSED, result.detail
    assert result.counts["copies"] >= 300
    assert all(driver.released == 1 for driver in simulated)


def test_a_soak_finds_waits_that_cuda_was_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: SimulatedStream, event: Event) -> None:
        pass

    monkeypatch.setattr(SimulatedStream, "wait", forgotten)
    result = soak.run(job("soak", "pinning", "s7", {"copies": 2000}, "kvoffload"), lambda words: None, lambda: False)
    assert result.verdict is Verdict.REFUTED
    assert result.failure is not None
    bytes_of = ("reads-what-was-written", "false-reset-serves-nothing-old", "published-after-all-copied")
    assert result.failure.property in bytes_of
    assert result.failure.device == "cuda"
