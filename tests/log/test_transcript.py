"""What a log shows can be done again: its transcript is a trace, which other verbs replay, show and shrink."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvmodel import Contract, Machine
from kvmodel.contract import DISCIPLINES, Discipline
from kvmodel.errors import BadScope
from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger as LedgerDevice
from kvoffload.engine import Engine
from kvoffload.runtime import Runtime
from kvproof.cli import main
from kvproof.engines import validate
from kvproof.engines.run_of import run_of
from kvproof.engines.shrink import shrunk_with_scope
from kvproof.job import Job
from kvproof.log.lines import Lines
from kvproof.log.transcript import Transcript
from kvproof.search.modes import Variant
from kvproof.targets.command import describe_all
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.kvoffload_recorder import recorded
from kvproof.trace import itf
from kvproof.verdict import Result, Verdict
from tests.impl.test_runtime import keys
from tests.log import test_recorder
from tests.log.a_log import HEADER, Line, lines, written
from tests.log.test_follow import followed
from tests.log.test_kvoffload_recorder import MODES, Forgetful, served


def given_again(path: Path) -> None:
    """All that an explained log says, given to a new engine: each command is accounted for, choices included."""
    follower, stuck, _ = followed(path)
    assert stuck is None
    transcript = follower.transcript
    assert transcript.lacking == ""
    machine = Machine(follower.machine.setting.contract, transcript.scope())
    run = run_of(machine, lambda: Ledger(machine.setting), transcript.commands, lambda: False)
    assert (run.done, run.divergence, run.beyond) == (len(transcript.commands), None, "")


@pytest.mark.parametrize("modes", [MODES[0], MODES[-1]])
def test_what_a_serving_engine_did_it_does_again(tmp_path: Path, modes: dict[str, Any]) -> None:
    path = tmp_path / "engine.log"
    served(Config(device_blocks=6, host_blocks=4, workers=2, **modes), path, 50)
    given_again(path)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_so_it_does_what_was_asked_decision_by_decision(tmp_path: Path, discipline: Discipline) -> None:
    path = tmp_path / "engine.log"
    test_recorder.recorded(path, discipline, 0, runs=False)
    given_again(path)


def refuted(path: Path) -> Result:
    header = Lines(path).header
    job = Job("validate", header.engine, header.contract.discipline, "", header.scope, header.contract,
              options={"log": str(path)})  # fmt: skip
    result = validate.run(job, lambda words: None, lambda: False)
    assert result.verdict is Verdict.REFUTED
    return result


def changed() -> list[Line]:
    """The log by hand, in which a reset answers True while a store is in flight."""
    said = lines()
    said[4]["answered"] = True
    return said


def test_the_failure_has_the_commands_up_to_the_line_with_the_runs_that_were_inferred(tmp_path: Path) -> None:
    failure = refuted(written(tmp_path, changed())).failure
    assert failure is not None
    assert describe_all(failure.commands, failure.scope) == (
        'submit x "a"',
        "schedule",
        "run w0 compute",
        "run w1 compute",
        "handle output",
        "run w1 store",
        "report w1 job 0",
        "reset invalidate",
    )
    assert failure.sentence.endswith("is left. It is line 6 of engine.log.")
    assert (failure.scope.resets, failure.scope.aborts, failure.scope.meanings) == (1, False, ("invalidate",))
    assert failure.notes[-1] == "answered True"


def test_the_account_has_the_logs_last_lines_and_leaves_out_what_stands_still(tmp_path: Path) -> None:
    story = refuted(written(tmp_path, changed())).story
    assert story is not None
    said = [step.command for step in story.steps]
    assert said[2:5] == ["(inferred) run w0 compute", "(inferred) run w1 compute", "line 4: handle output"]
    assert said[-1] == "line 6: reset invalidate"
    lanes = [lane.name for lane in story.lanes]
    assert ("x" in lanes, "d2" in lanes, "d1" in lanes) == (True, True, False)
    assert story.title == "engine.log, by hand, pinning (x is chat-1)"


class Broken(Ledger):
    def create(self, config: Config) -> Engine:
        return Engine.create(config, Forgetful)


def test_the_violation_in_the_log_of_a_broken_engine_is_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    engine = Engine.create(Config("pinning", 4, 4), Forgetful)
    with recorded(engine, path, look_every=1):
        for number, text in enumerate(("ab", "ac")):
            engine.submit(number, keys(text), keys(text))
        Runtime(engine, LedgerDevice.create(1, 4, 4)).schedule()
        engine.reset("invalidate", "preempt")
    failure = refuted(path).failure
    assert failure is not None
    assert len(failure.commands) == 4
    contract = Contract("pinning")
    machine = Machine(contract, failure.scope)
    run = run_of(machine, lambda: Broken(machine.setting), failure.commands, lambda: False)
    assert run.divergence is not None
    found = shrunk_with_scope(
        Variant(failure.scope_name, failure.scope, contract),
        lambda smaller: lambda: Broken(smaller.setting),
        failure.commands, run.divergence, lambda: False, lambda words: None,
    )  # fmt: skip
    assert describe_all(found.commands, found.variant.scope) == ('submit x "a"', "schedule", "reset invalidate")


def test_the_verb_keeps_it_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, changed())
    assert main(["validate", str(path), "--html", "page.html"]) == 1
    last = capsys.readouterr().out.splitlines()[-2:]
    (folder,) = (tmp_path / ".kvproof" / "failures").iterdir()
    assert last == [
        "Timeline: page.html",
        f"Saved .kvproof/failures/{folder.name}. Replay: kvproof replay {folder.name} --target MODULE:CLASS",
    ]
    assert "(inferred) run w0 compute" in (tmp_path / "page.html").read_text()
    files = {file.name for file in folder.iterdir()}
    assert files == {"trace.itf.json", "report.txt", "verdict.json", "timeline.html"}  # a test needs an adapter
    assert itf.read(folder / "trace.itf.json").target == "by hand"
    assert main(["replay", folder.name]) == 2
    assert "add --target MODULE:CLASS" in capsys.readouterr().err
    assert main(["replay", folder.name, "--target", "kvoffload"]) == 0
    assert "FIXED" in capsys.readouterr().out
    assert main(["show", str(path)]) == 2
    assert "is a log, and no trace; kvproof validate keeps a trace of it" in capsys.readouterr().err
    assert main(["validate", str(path), "--html", str(tmp_path)]) == 2
    assert "name a file in a folder that exists" in capsys.readouterr().err


def transcript(*requests: tuple[str, str]) -> Transcript:
    """Of requests with these keys, one character each: of the prompt, and of what is decoded."""
    made = Transcript(Lines.__new__(Lines)._header_of(1, dict(HEADER)).scope._replace(device_blocks=9))
    for number, (prompt, decoded) in enumerate(requests):
        made.comes(number % 64, prompt, decoded)
    return made


def test_keys_become_symbols_so_that_equal_prefixes_stay_equal() -> None:
    scope = transcript(("pq", "r"), ("pqr", ""), ("ps", "t"), ("x", "")).scope()
    assert (scope.prompts, scope.decoded) == (("ab", "abc", "ac", "b"), ("c", "", "c", ""))
    assert scope.repeats is False


def test_a_key_at_several_positions_is_one_symbol_wherever_it_stands() -> None:
    scope = transcript(("pqp", ""), ("q", "")).scope()
    assert (scope.prompts, scope.decoded, scope.repeats) == (("aba", "b"), (), True)


def test_what_a_trace_cannot_say_is_said() -> None:
    assert transcript(*[("p", "")] * 1_025).lacking == (
        "there are more than 1,024 requests in the log, which a trace cannot say"
    )
    assert (
        transcript(("p" * 257, "")).lacking == "a request of the log has more than 256 blocks, which a trace cannot say"
    )
    with pytest.raises(BadScope, match="needs 10 device blocks"):
        transcript(("abcdefghij", "")).scope()


def test_pools_that_would_not_fit_into_memory_are_not_drawn(tmp_path: Path) -> None:
    said = [lines()[0], {"do": {"verb": "reset", "meaning": "invalidate", "requests": "preempt"}, "answered": False}]
    header = {**HEADER, "sizes": {"device_blocks": 100_000, "host_blocks": 2, "workers": 2}}
    result = refuted(written(tmp_path, said, header))
    assert result.story is None
    assert result.failure is not None
    smaller = {**HEADER, "sizes": {"device_blocks": 20_000, "host_blocks": 2, "workers": 2}}
    story = refuted(written(tmp_path, said, smaller)).story
    assert story is not None
    assert {lane.name for lane in story.lanes} == {"x"} == {name for step in story.steps for name in step.picture}


def test_a_violation_in_a_log_that_is_too_long_for_a_trace_is_told_all_the_same(tmp_path: Path) -> None:
    many: list[Line] = []
    for number in range(1_025):
        many.append({"do": {"verb": "submit", "request": f"r-{number}"}, "keys": ["key"]})
        many.append({"do": {"verb": "abort", "request": f"r-{number}"}})
    many.append({"do": {"verb": "reset", "meaning": "invalidate", "requests": "preempt"}, "answered": False})
    result = refuted(written(tmp_path, many))
    assert result.failure is None
    assert "No trace can be made of it: there are more than 1,024 requests in the log" in result.detail
    assert result.story is not None
    assert json.dumps(result.story.steps[-1].command) == '"line 2052: reset invalidate"'
