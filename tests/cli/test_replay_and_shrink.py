"""The verbs on saved traces, around fake engines."""

from pathlib import Path

import pytest

from kvmodel.contract import Contract
from kvproof.cli import replay, shrink, single
from kvproof.failure import fingerprint
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.trace import itf, store
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

COMMANDS = (
    Command("submit", (0,)),
    Command("schedule"),
    Command("run", (0, "compute")),
    Command("handle_output"),
    Command("schedule"),
    Command("reset", ("invalidate", "preempt")),
)


def saved(folder: Path, verdict: Verdict, target: str = "kvoffload", device: str = "host") -> str:
    trace = Trace(
        contract=Contract("pinning"),
        scope=SCOPES["s1"],
        scope_name="s1",
        target=target,
        device=device,
        commands=COMMANDS,
        verdict=verdict,
        property="owners-account-for-references" if verdict is Verdict.REFUTED else None,
    )
    store.save(store.default_root(folder), "9abbd5", trace, "")
    return "9abbd5"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Fake engines in place of replay and shrink; holds the jobs that they were given."""
    seen: list[Job] = []

    def fake(engine: str, *rest: object) -> Job:
        seen.append(single.job_of(f"fake_engines:{engine}", *rest))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(replay, "job_of", fake)
    monkeypatch.setattr(shrink, "job_of", fake)
    return seen


def test_a_trace_that_passes(folder: Path, cli, jobs: list[Job]) -> None:
    ran = cli("replay", saved(folder, Verdict.PASSED)[:3])
    assert ran.status == 0
    assert "replay" in ran.out
    assert "target kvoffload on host   pinning, s1" in ran.out
    assert "PASSED in 0.1 s; 6 commands." in ran.out
    assert (jobs[0].device, jobs[0].contract, jobs[0].scope) == ("host", Contract("pinning"), SCOPES["s1"])
    assert isinstance(jobs[0].options["trace"], Trace)


def test_a_violation_that_is_gone_is_fixed(folder: Path, cli, jobs: list[Job]) -> None:
    ran = cli("replay", saved(folder, Verdict.REFUTED))
    assert ran.status == 0
    assert "FIXED in 0.1 s; 6 commands; owners-account-for-references does not occur any more." in ran.out


def test_what_is_fixed_is_pruned_when_asked(folder: Path, cli, jobs: list[Job]) -> None:
    ran = cli("replay", saved(folder, Verdict.REFUTED), "--prune")
    assert "does not occur any more. Removed .kvproof/failures/9abbd5." in ran.out
    assert not (folder / ".kvproof/failures/9abbd5").exists()
    ran = cli("replay", saved(folder, Verdict.PASSED), "--prune")
    assert (folder / ".kvproof/failures/9abbd5").exists(), "it was no violation"
    assert ran.status == 0


def test_the_device_can_be_chosen(folder: Path, cli, jobs: list[Job]) -> None:
    cli("replay", saved(folder, Verdict.PASSED), "--device", "ledger")
    cli("replay", saved(folder, Verdict.PASSED), "--target", "kvoffload-ledger")
    cli("replay", saved(folder, Verdict.PASSED, device=""))
    assert [job.device for job in jobs] == ["ledger"] * 3


def test_a_trace_of_the_cuda_device_needs_one(
    folder: Path, cli, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single, "no_cuda", lambda gated=False: "no CUDA device")
    ran = cli("replay", saved(folder, Verdict.PASSED, device="cuda"))
    assert ran.status == 2
    assert "the trace cannot be tried on device cuda, no CUDA device; use --device host or --device ledger" in ran.err
    assert cli("replay", saved(folder, Verdict.PASSED, device="cuda"), "--device", "ledger").status == 0
    monkeypatch.setattr(single, "no_cuda", lambda gated=False: "")
    cli("replay", saved(folder, Verdict.PASSED, device="cuda"))
    assert [job.device for job in jobs] == ["ledger", "cuda"]


def test_a_trace_of_a_foreign_target_runs_where_the_command_line_says(folder: Path, cli, jobs: list[Job]) -> None:
    (folder / "engine.py").write_text("class Engine: pass\n")
    name = saved(folder, Verdict.PASSED, target="engine.py:Engine", device="")
    assert cli("replay", name).status == 2
    assert cli("replay", name, "--target", "engine.py:Engine").status == 0
    assert cli("replay", name, "--target", "kvoffload").status == 0
    assert [(job.target, job.device) for job in jobs] == [("engine.py:Engine", ""), ("kvoffload", "ledger")]


def test_a_trace_of_the_machine_alone(folder: Path, cli, jobs: list[Job]) -> None:
    name = saved(folder, Verdict.PASSED, target="machine", device="")
    assert cli("replay", name).status == 0
    assert cli("replay", name, "--target", "kvoffload").status == 0
    assert cli("replay", saved(folder, Verdict.PASSED), "--target", "machine").status == 0
    assert [(job.target, job.device) for job in jobs] == [("machine", ""), ("kvoffload", "ledger"), ("machine", "")]


def test_shrink_replaces_what_is_kept(folder: Path, cli, jobs: list[Job]) -> None:
    ran = cli("shrink", saved(folder, Verdict.REFUTED))
    assert ran.status == 1
    assert "6 commands became 5, in .kvproof/failures/9abbd5/trace.itf.json" in ran.out
    assert ran.out.endswith("Replay: kvproof replay 9abbd5\n")
    assert itf.read(folder / ".kvproof/failures/9abbd5/trace.itf.json").commands == COMMANDS[1:]


def test_shrink_to_a_file(folder: Path, cli, jobs: list[Job]) -> None:
    ran = cli("shrink", saved(folder, Verdict.REFUTED), "--out", "short.itf.json")
    assert ran.out.endswith("Replay: kvproof replay short.itf.json\n")
    assert itf.read(folder / "short.itf.json").commands == COMMANDS[1:]
    assert itf.read(folder / ".kvproof/failures/9abbd5/trace.itf.json").commands == COMMANDS


def test_the_fingerprint_is_the_one_of_the_saved_failures() -> None:
    cause = ("reset", "device block of a store in flight")
    assert fingerprint("owners-account-for-references", "kvoffload", cause) == "9abbd5"
