"""A live engine is recorded, whoever drives it; the contract explains its log, and not that of a broken one."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kvoffload.config import Config, Discipline
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import DoubleFree, UnknownJob
from kvoffload.ids import Meaning, Tiers
from kvoffload.operations import Stream
from kvoffload.runtime import Runtime
from kvoffload.transfer_job import Direction, JobState
from kvproof.targets.kvoffload_recorder import NotFresh, Recorder, recorded
from tests.impl.test_runtime import keys, serve
from tests.log.test_follow import followed


def served(config: Config, path: Path, look_every: int) -> None:
    device = Ledger.create(config.workers, config.device_blocks, config.host_blocks, gated=False)
    engine = Engine.create(config)
    with recorded(engine, path, look_every):
        serve(Runtime(engine, device), 20, random.Random(1))


MODES: list[dict[str, Any]] = [
    {"discipline": "pinning", "depth": 2},
    {"discipline": "pinning", "store_mode": "lazy", "reports": "marks"},
    {"discipline": "fencing", "output_from": "first"},
    {"discipline": "fencing", "depth": 2, "reports": "marks", "output_from": "first"},
]


@pytest.mark.parametrize("look_every", [1, 50])
@pytest.mark.parametrize("modes", MODES)
def test_whatever_a_serving_engine_does_is_explained(tmp_path: Path, modes: dict[str, Any], look_every: int) -> None:
    path = tmp_path / "engine.log"
    served(Config(device_blocks=6, host_blocks=4, workers=2, **modes), path, look_every)
    follower, stuck, explained = followed(path)
    assert stuck is None
    assert explained > 90
    assert follower.inferred > 40


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_so_is_what_an_engine_with_threads_does(tmp_path: Path, discipline: Discipline) -> None:
    path, device = tmp_path / "engine.log", Host(2, 6, 4, delays=3)
    engine = Engine.create(Config(discipline, 6, 4, 2))
    try:
        with recorded(engine, path):
            serve(Runtime(engine, device), 8, random.Random(1))
    finally:
        device.close()
    _, stuck, explained = followed(path)
    assert stuck is None
    assert explained > 40
    assert json.loads(path.read_text().splitlines()[-1]) == {"end": "closed"}


class Forgetful(PinningConnector):
    """A reset leaves the stores in flight as they are."""

    def reset_cache(self, meaning: Meaning, requests: Any, tiers: Tiers = "all") -> bool:
        done = super().reset_cache(meaning, requests, tiers)
        for job in self.jobs.values():
            job.state = JobState.LIVE
        return done


@pytest.mark.parametrize(("look_every", "line"), [(1, 4), (50, 9)])
def test_the_log_of_a_broken_engine_is_refuted_by_what_was_seen_or_later_by_what_it_did(
    tmp_path: Path, look_every: int, line: int
) -> None:
    path, ledger = tmp_path / "engine.log", Ledger.create(1, 4, 4)
    engine = Engine.create(Config("pinning", 4, 4), Forgetful)
    runtime = Runtime(engine, ledger)
    with recorded(engine, path, look_every):
        engine.submit(0, keys("a"), keys("a"))
        runtime.schedule()
        engine.reset("evict", "preempt")
        engine.abort(0)
        while lanes := ledger.runnable():
            ledger.run(*lanes[0])
        runtime.poll()
        engine.submit(1, keys("a"), keys("a"))
        engine.schedule()
    _, stuck, _ = followed(path)
    assert stuck is not None
    assert stuck.entry.number == line
    assert stuck.divergence.property == "false-reset-serves-nothing-old" or line == 9


def test_a_crash_is_recorded_and_refutes(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    engine = Engine.create(Config("pinning", 4, 4))
    with recorded(engine, path):
        engine.submit(0, keys("a"), keys("a"))
        engine.schedule(may_launch=False)
        engine.device_pool.counts[engine.requests[0].table[0]] = 0
        with pytest.raises(DoubleFree):
            engine.abort(0)
    _, stuck, _ = followed(path)
    assert stuck is not None
    assert (stuck.entry.number, stuck.divergence.property) == (4, "no-double-free")


class Unmarked(PinningConnector):
    """Fails of every mark."""

    def update_connector_mark(self, worker: int, direction: Direction, mark: int, failed: Any) -> Any:
        raise DoubleFree("block 3")


def test_a_crash_of_a_mark_is_recorded_and_refutes(tmp_path: Path) -> None:
    path, ledger = tmp_path / "engine.log", Ledger.create(1, 4, 4)
    engine = Engine.create(Config("pinning", 4, 4, reports="marks"), Unmarked)
    with recorded(engine, path):
        engine.submit(0, keys("a"), keys("a"))
        Runtime(engine, ledger).schedule()
        while lanes := ledger.runnable():
            ledger.run(*lanes[0])
        with pytest.raises(DoubleFree):
            engine.report_mark(0, Direction.STORE, 0)
    assert json.loads(path.read_text().splitlines()[-2]) == {
        "do": {"verb": "report_mark", "worker": 0, "stream": "store", "mark": 0},
        "crashed": "DoubleFree: block 3",
    }
    _, stuck, _ = followed(path)
    assert stuck is not None
    assert stuck.divergence.property == "no-double-free"


def test_a_deadline_of_a_job_that_was_never_issued_is_nobodys_report(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    engine = Engine.create(Config("pinning", 4, 4, deadline=9))
    with recorded(engine, path), pytest.raises(UnknownJob):
        engine.expire(0)
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == [{"end": "closed"}]


def test_copies_that_failed_are_taken_to_have_failed_when_they_ran(tmp_path: Path) -> None:
    """Not when they are reported, when the fence has already waited for one of them."""
    path, ledger = tmp_path / "engine.log", Ledger.create(1, 4, 4)
    engine = Engine.create(Config("fencing", 4, 4))
    runtime = Runtime(engine, ledger)
    with recorded(engine, path, 1):
        engine.submit(0, keys("abc"), keys("abc"))
        runtime.schedule()
        ledger.run(0, Stream.COMPUTE)
        ledger.run_failing(0, Stream.STORE, (0, 2))
        runtime.handle_output()
        engine.preempt(0)
        engine.submit(1, keys("wxyz"), keys("wxyz"))
        runtime.schedule()
        ledger.run(0, Stream.COMPUTE)
        runtime.handle_output()
        runtime.deliver(0, [0])
    said = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["failed"] for line in said if "failed" in line] == [{"0": [0, 2]}]
    _, stuck, explained = followed(path)
    assert stuck is None
    assert explained == len(said) - 2


def test_an_id_that_is_used_again_is_another_request(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    engine = Engine.create(Config("pinning", 4, 4))
    with recorded(engine, path, 1):
        for _ in range(3):
            engine.submit(0, keys("a"), keys("a"))
            engine.abort(0)
            engine.collect(0)
    assert followed(path)[1] is None


def test_an_engine_that_has_served_cannot_be_recorded_from_its_middle(tmp_path: Path) -> None:
    engine = Engine.create(Config("pinning", 4, 4))
    engine.submit(0, keys("a"), keys("a"))
    with pytest.raises(NotFresh):
        Recorder(engine, tmp_path / "engine.log")
    assert not (tmp_path / "engine.log").exists()


def test_an_engine_goes_on_when_its_log_cannot_be_written(tmp_path: Path) -> None:
    engine = Engine.create(Config("pinning", 4, 4))
    recorder = Recorder(engine, tmp_path / "engine.log")
    engine.watched_by(recorder)
    recorder._log._file.close()
    recorder._log._file = Path("/dev/full").open("w")  # noqa: SIM115 (the recorder closes it)
    engine.submit(0, keys("a"), keys("a"))
    with pytest.warns(RuntimeWarning, match="is not recorded any more: .*No space left"):
        recorder.flush()
    engine.abort(0)
    assert recorder.stopped is not None


def test_of_what_no_line_can_be_made_the_log_stops_and_says_so(tmp_path: Path) -> None:
    """What came after would be explained, or refuted, as if it had not happened."""
    path = tmp_path / "engine.log"
    engine = Engine.create(Config("pinning", 4, 4))
    recorder = Recorder(engine, path)
    engine.watched_by(recorder)
    engine.submit(0, keys("a"), keys("a"))
    recorder.flush()
    with pytest.raises(TypeError):
        engine.abort()  # type: ignore[call-arg]
    with pytest.warns(RuntimeWarning, match="no line can be made of what was noted .IndexError"):
        recorder.close()
    engine.abort(0)
    verbs = [json.loads(line).get("do", {}).get("verb") for line in path.read_text().splitlines()]
    assert verbs == [None, "submit", None]
    assert json.loads(path.read_text().splitlines()[-1]) == {"end": "stopped"}
