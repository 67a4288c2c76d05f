"""A target that raises or answers nonsense is a violation with a trace, and no engine ends with it. (One that ends its
process, or hangs: `test_deaths`.)"""

import json
import re
from pathlib import Path

import pytest
from tests.harness.changed_file import job, written

from kvproof.engines import conform, fuzz
from kvproof.trace import itf
from kvproof.verdict import Result, Verdict

STEPPING = "work-remaining-keeps-the-engine-stepping"


def by_both(target: str) -> list[Result]:
    """What the product search and fuzz say of a target."""
    engines = (conform.run, job(target, "conform")), (fuzz.run, job(target, "fuzz", "fuzz", commands=3000))
    return [engine(todo, lambda text: None, lambda: False) for engine, todo in engines]


CRASHES = {
    "an exception": ({"perform": "raise OSError('disk full')"}, STEPPING, "OSError on handle_output(): disk full ("),
    "an assertion": ({"perform": "assert not self"}, STEPPING, "AssertionError on handle_output(): without a text ("),
    "an error that names a property": (
        {"perform": "raise type('DoubleFree', (Exception,), {})('block 1')"},
        "no-double-free",
        "DoubleFree on handle_output(): block 1 (",
    ),
    "an exit": ({"perform": "sys.exit(0)"}, STEPPING, "SystemExit on handle_output(): 0 ("),
    "too deep": ({"perform": "self.perform(command)"}, STEPPING, "RecursionError on handle_output(): "),
    "an answer of its own": (
        {"perform": "return 'done'"},
        STEPPING,
        "Malformed on handle_output(): perform answered 'done', which is no Answer, Refused or Crashed.",
    ),
    "no answer": ({"perform": "return None"}, STEPPING, "perform answered None"),
    "in the view": (
        {"view": "0 // self.setting.scope.workers if not any(view.host_refs) else [][1]"},
        STEPPING,
        ": list index out of range (",
    ),
    "no view": (
        {"view": "return vars(self) if any(view.host_refs) else view"},
        STEPPING,
        "which is no View",
    ),
    "at the start": ({"opened": "raise OSError('no such engine')"}, STEPPING, "OSError before the first command: no"),
    "a view that fails at once": (
        {"view": "raise KeyError('x')"},
        STEPPING,
        "KeyError before the first command: 'x' (",
    ),
    "in what it offers": (
        {"offers": "assert not any(view for view in self.view().host_refs)"},
        STEPPING,
        ": without a text (",
    ),
    "offers that are none": ({"offers": "return list(offers)"}, STEPPING, "Malformed before the first command: offers"),
}


@pytest.mark.parametrize("changes", CRASHES)
def test_a_crash_is_a_violation_that_says_where(changes: str, tmp_path: Path) -> None:
    changed, broken_property, sentence = CRASHES[changes]
    for result in by_both(written(tmp_path, **changed)):
        failure = result.failure
        assert (result.verdict, failure is not None) == (Verdict.REFUTED, True)
        assert failure is not None
        assert failure.property == broken_property
        assert failure.sentence.startswith("The target failed with ")
        assert sentence in failure.sentence
        assert failure.cause[0] == "crash"
        if sentence.endswith("("):
            assert re.search(r"\(engine\.py:\d+\)\.$", failure.sentence)
        if "before the first command" in sentence:
            assert failure.commands == ()
        else:
            assert failure.commands[-1].verb == failure.cause[1]


NONSENSE = {
    "observed what is no action": ({"perform": "return Answer(None, ('x',))"}, "observed has 'x', which is no action"),
    "a block that does not exist": (
        {"perform": "return Answer(None, (act.Grow(0, (7,)),))"},
        "device block 7 does not exist, it must be a number from 0 to",
    ),
    "a request that does not exist": (
        {"perform": "return Answer(None, (act.Finish(-1),))"},
        "request -1 does not exist, it must be a number from 0 to",
    ),
    "a request of another kind": ({"perform": "return Answer(None, (act.Wake('x'),))"}, "request 'x' does not exist"),
    "a choice that is none": ({"perform": "return Answer(None, (act.Admit(0, (1, 2)),))"}, "the choice of Admit is (1"),
    "a key that does not exist": (
        {"perform": "return Answer(None, (act.Launch(Launching((), ((0, (Pair(0, 0, 99),)),), (), ())),))"},
        "key 99 does not exist",
    ),
    "one request twice in a launch": (
        {"perform": "return Answer(None, (act.Launch(Launching(((0, 0, 1), (0, 0, 1)), (), (), ())),))"},
        "request 0 is computed twice in one launch",
    ),
    "a launch of pieces": (
        {"perform": "return Answer(None, (act.Launch(Launching(((0, 1),), (), (), ())),))"},
        "a compute has 2 members and should have 3",
    ),
    "too few references": (
        {"view": "view = view._replace(host_refs=view.host_refs[1:])"},
        "host_refs has",
    ),
    "a list": ({"view": "view = view._replace(device_refs=list(view.device_refs))"}, "which is no tuple"),
    "no numbers": (
        {"view": "view = view._replace(device_keys=('a',) * len(view.device_keys))"},
        "key 'a' does not exist",
    ),
    "requests missing": ({"view": "view = view._replace(requests=())"}, "requests has 0 members and should have"),
    "requests of its own": (
        {"view": "view = view._replace(requests=view.jobs + (1,) * len(view.requests))"},
        "requests",
    ),
    "jobs of its own": ({"view": "view = view._replace(jobs=((1, 2),))"}, "jobs has (1, 2), which is no JobView"),
    "a job without direction": (
        {"view": "view = view._replace(jobs=(JobView(0, 0, -1, (), 0, ()),))"},
        "job 0 has no direction",
    ),
    "streams that do not exist": ({"view": "view = view._replace(runnable=((0, 7),))"}, "stream 7 does not exist"),
    "offers of its own": ({"offers": "return frozenset({('Admit', 99, None)})"}, "request 99 does not exist"),
    "offers of another kind": ({"offers": "return frozenset({('Think',)})"}, "which is no key of an action of a"),
    "a key announced that does not exist": (
        {"view": "view = view._replace(announced=((), (99,)))"},
        "announced has 99, which is no key",
    ),
    "a tier announced that does not exist": (
        {"view": "view = view._replace(announced=((), (), ()))"},
        "announced has 3 members and should have 2",
    ),
    "contents missing": ({"view": "view = view._replace(contents=((), ()))"}, "contents of a tier has 0 members"),
}


@pytest.mark.parametrize("changes", NONSENSE)
def test_nonsense_is_told_apart_from_what_the_engine_did(changes: str, tmp_path: Path) -> None:
    changed, words = NONSENSE[changes]
    for result in by_both(written(tmp_path, **changed)):
        assert result.failure is not None
        assert result.failure.cause[::2] == ("crash", "Malformed")
        assert words in result.failure.sentence


def test_a_class_that_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text("class Engine:\n    def __init__(self, setting): pass\n    exact = True\n")
    result = conform.run(job(f"{tmp_path}/engine.py:Engine", "conform"), lambda text: None, lambda: False)
    assert result.failure is not None
    words = "Malformed before the first command: Engine is no target, it has no perform and no view and no close."
    assert words in result.failure.sentence


@pytest.mark.usefixtures("little_fuzzing")
def test_the_trace_of_a_crash_is_kept_and_can_be_replayed(folder: Path, cli) -> None:
    target = written(folder, perform="raise OSError('disk full')")
    ran = cli("check", "--target", target, "--scope", "s1", "--json", "r.json")
    assert ran.status == 1
    assert "SKIPPED foreign target" in ran.out
    assert f"REFUTED {STEPPING}" in ran.out
    results = json.loads((folder / "r.json").read_text())["results"]
    refuted = [result for result in results if result["verdict"] == "REFUTED"]
    assert {result["engine"] for result in refuted} == {"conform", "fuzz"}
    (trace,) = {result["trace"] for result in refuted}
    assert itf.read(folder / trace).commands[-1].verb == "handle_output"

    found = Path(trace).parent.name
    again = cli("replay", found, "--target", target)
    assert again.status == 1
    assert "OSError: disk full (engine.py:" in again.out
    written(folder)
    mended = cli("replay", found, "--target", target)
    assert mended.status == 0
    assert re.search(f"FIXED in [0-9.]+ s; 4 commands; {STEPPING} does not occur any more", mended.out)


@pytest.mark.usefixtures("little_fuzzing")
def test_a_trace_without_commands_can_be_replayed(folder: Path, cli) -> None:
    target = written(folder, opened="raise OSError('no such engine')")
    assert cli("fuzz", "--target", target, "--scope", "s1").status == 1
    (found,) = (path.name for path in (folder / ".kvproof/failures").iterdir())
    ran = cli("replay", found, "--target", target)
    assert ran.status == 1
    assert "0 commands" in ran.out
    assert "OSError before the first command: no such engine" in ran.out
