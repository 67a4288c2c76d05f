"""`pytest --kvproof-watch`: a team's existing tests, as they are, say more. Every engine that a test makes is recorded,
and when the test is over its log must be one that the contract explains, whatever the test itself asserts.

A log that is not explained fails the test with what `kvproof validate` says, and is kept beside that:

    .kvproof/logs/3fa09c/engine.log      the log, for kvproof validate
    .kvproof/logs/3fa09c/report.txt      what validate said
    .kvproof/logs/3fa09c/verdict.json    the same for machines

The id is that of the test and of the engine in it, so that a run replaces what the one before it has left. What the log
shows is kept as any other failure too, in `.kvproof/failures`: with a trace that asks the same of an engine again.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kvproof.atomic import write_whole
from kvproof.commit import current_commit
from kvproof.engines import validate
from kvproof.job import Job
from kvproof.log.keeping import keep
from kvproof.log.lines import Lines
from kvproof.pytest_plugin import UNWATCHED
from kvproof.report.json_report import SCHEMA
from kvproof.trace import store
from kvproof.verdict import Result, Verdict

LOG_FILE = "engine.log"
PROPERTY = "kvproof-watch"
"""Under this name a test's report says what was watched in it, also from a worker of xdist."""

_Watch = pytest.StashKey["Watch"]()


class Watch:
    """What is recorded of one test. Close it when the test's fixtures are gone."""

    def __init__(self) -> None:
        from kvproof.targets.kvoffload_recorder import engines_recorded  # only now: few tests need an engine

        self._open = ExitStack()
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="kvproof-watch-")))
        self._recording = self._open.enter_context(ExitStack())
        self.recordings = self._recording.enter_context(engines_recorded(folder))

    def stop(self) -> None:
        """The logs are whole. What engines do from now on is not recorded."""
        self._recording.close()

    def close(self) -> None:
        self._open.close()


class WatchedTests:
    """The plugin. counts: what was watched, over all tests and workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.failures = store.default_root(config.rootpath)
        self.root = self.failures.parent / "logs"
        self.counts = Counter[str]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.get_closest_marker(UNWATCHED) is None:
            item.stash[_Watch] = Watch()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test that fails by itself does, and its report says what its log says too. One that skips itself when its
        engine has broken the contract already fails."""
        watch = item.stash.get(_Watch, None)
        if watch is None:
            return (yield)
        try:
            result = yield
        except pytest.skip.Exception:
            self._fail_unless_explained(item, watch)
            raise
        except BaseException:
            for said in self._unexplained(item, watch):
                item.add_report_section("call", "kvproof", said)
            raise
        self._fail_unless_explained(item, watch)
        return result

    def _fail_unless_explained(self, item: pytest.Item, watch: Watch) -> None:
        unexplained = self._unexplained(item, watch)
        if unexplained:
            pytest.fail("\n\n".join(unexplained), pytrace=False)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        watch = item.stash.get(_Watch, None)
        if watch is not None:
            watch.close()
            del item.stash[_Watch]

    def _unexplained(self, item: pytest.Item, watch: Watch) -> list[str]:
        """What is to be said of each log that the contract does not explain. It is kept."""
        watch.stop()
        logs = watch.recordings.paths
        counts = Counter[str](tests=bool(logs), engines=len(logs))
        counts["not recorded"] = watch.recordings.unrecorded
        said: list[str] = []
        for number, path in enumerate(logs):
            judged = _judged(path)
            counts["lines"] += judged.result.counts.get("commands", 0)
            kept = self.root / sha256(f"{item.nodeid} {number}".encode()).hexdigest()[:6]
            if judged.result.verdict is Verdict.REFUTED:
                trace = _with_trace(self.failures, judged)
                said.append("\n".join([_kept(kept, path, judged, item.nodeid), *trace]))
                continue
            if kept.is_dir():
                _removed(kept)
            if judged.result.verdict is not Verdict.PASSED:
                counts["not judged"] += 1
                item.add_report_section("call", "kvproof", f"not judged: {judged.result.detail}")
        item.user_properties.append((PROPERTY, dict(counts)))
        return said

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, counts in report.user_properties:
                if name == PROPERTY:
                    self.counts.update(_counts(counts))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        counts = self.counts
        line = f"kvproof watched {_number(counts['engines'], 'engine')} in {_number(counts['tests'], 'test')}: "
        line += f"{_number(counts['lines'], 'line')} explained"
        for gap in ("not judged", "not recorded"):
            if counts[gap]:
                line += f"; {gap}: {_number(counts[gap], 'engine')}"
        terminalreporter.write_line(line)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Judged(NamedTuple):
    job: Job
    result: Result


def _judged(path: Path) -> Judged:
    header = Lines(path).header
    discipline = header.contract.discipline
    options = {"log": str(path)}
    job = Job("validate", header.engine, discipline, "", header.scope, header.contract, options=options)
    return Judged(job, validate.run(job, lambda words: None, lambda: False))


def _with_trace(root: Path, judged: Judged) -> list[str]:
    """Keep what the log shows as a failure, if a trace can be made of it, and say where it is."""
    if judged.result.failure is None:
        return []
    try:
        return [keep(root, judged.job, judged.result, current_commit())[1]]
    except OSError as error:  # the verdict matters more than the file
        return [f"The trace was not saved ({error})."]


def _kept(folder: Path, log: Path, judged: Judged, test: str) -> str:
    """Keep a log that was refuted, and what to say of it."""
    result = judged.result
    shown = store.shown(folder / LOG_FILE)
    text = f"REFUTED {result.detail}\nKept: {shown}. Again: kvproof validate {shown}"
    about = {
        "schema": SCHEMA,
        "verdict": str(result.verdict),
        "property": result.property,
        "engine": judged.job.target,
        "discipline": result.discipline,
        "test": test,
        "explained": result.counts["commands"],
        "log": LOG_FILE,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, folder / LOG_FILE)
        write_whole(folder / store.REPORT_FILE, text + "\n")
        write_whole(folder / store.VERDICT_FILE, json.dumps(about, indent=2) + "\n")
    except OSError as error:  # the verdict matters more than the files
        with suppress(OSError):
            _removed(folder)
        return f"REFUTED {result.detail}\nThe log was not kept ({error})."
    return text


def _removed(folder: Path) -> None:
    """What the same test left when it was last refuted; nothing else that may be there."""
    for name in (LOG_FILE, store.REPORT_FILE, store.VERDICT_FILE):
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _counts(said: object) -> dict[str, int]:
    assert isinstance(said, dict)
    return {str(name): int(count) for name, count in said.items()}
