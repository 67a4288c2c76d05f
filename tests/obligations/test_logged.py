"""Logs of engines that go their own way: what every engine owes is held against them, and nothing else."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kvproof.cli import main
from kvproof.log.entry import BadLog
from kvproof.log.lines import Lines
from kvproof.obligations.logged import Broken, Logged

Line = dict[str, Any]

HEADER: Line = {
    "kvproof_log": 1,
    "engine": "by hand",
    "contract": {"discipline": "pinning"},
    "sizes": {"device_blocks": 6, "host_blocks": 1, "workers": 2},
    "runs": "unrecorded",
    "tokens_per_block": 2,
}

# x computes two blocks, which are stored; y loads them; then it computes the last token of the prompt that they share.
LINES: list[Line] = [
    {
        "do": {"verb": "step"},
        "requests": {"x": {"start": 0, "count": 4, "table": [1, 2], "keys": ["a", "b"]}},
        "copies": [[0, "store", [[1, 7], [2, 8]]]],
    },
    {"do": {"verb": "report"}, "jobs": [0]},
    {"do": {"verb": "end", "request": "x"}},
    {"do": {"verb": "step"}, "copies": [[1, "load", [[7, 3], [8, 4]]]]},
    {"do": {"verb": "report"}, "jobs": [1]},
    {"do": {"verb": "step"}, "requests": {"y": {"start": 3, "count": 1, "table": [3, 4], "keys": ["a", "b"]}}},
    {"do": {"verb": "step"}, "requests": {"y": {"start": 4, "count": 1, "more": [5]}}},
    {"do": {"verb": "step"}, "requests": {"y": {"start": 5, "count": 1}}},
]


def written(folder: Path, lines: list[Line], header: Line = HEADER) -> Path:
    path = folder / "engine.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return path


def judged(path: Path) -> Broken | None:
    lines = Lines(path)
    header = lines.header
    logged = Logged(str(path), header.scope.device_blocks, header.tokens_per_block, header.contract.depth)
    found = [logged.take(number, record) for number, record in lines.records()]
    return next((broken for broken in found if broken is not None), None)


def test_a_sound_log_breaks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(written(tmp_path, LINES))]) == 0
    assert "none of 8 lines breaks what every engine owes" in capsys.readouterr().out


def changed(position: int, *inserted: Line, drop: int = 0, **fields: Any) -> list[Line]:
    lines = copy.deepcopy(LINES)
    if fields:
        lines[position] |= fields
    lines[position : position + drop] = inserted
    return lines


OF_ONE_BLOCK: Line = {"start": 0, "count": 2, "table": [3]}
OVERWRITES = {"do": {"verb": "step"}, "requests": {"z": {**OF_ONE_BLOCK, "keys": ["c"]}}}
RESET = {"do": {"verb": "reset"}, "answered": True}

BROKEN: dict[str, tuple[list[Line], Broken]] = {
    "a load of the wrong blocks": (
        changed(3, copies=[[1, "load", [[8, 3], [7, 4]]]]),
        Broken(8, "reads-what-was-written",
               "The compute of request y reads its block 0 in device block 3, which holds something else."),
    ),
    "a request that computes before its load is reported": (
        changed(4, drop=1),
        Broken(7, "reads-what-was-written",
               "The compute of request y reads its block 0 in device block 3, which nobody has written."),
    ),
    "a block that is given to somebody else while it is used": (
        changed(5, OVERWRITES),
        Broken(9, "reads-what-was-written",
               "The compute of request y reads its block 0 in device block 3, which holds something else."),
    ),
    "a load of what was stored before a reset": (
        changed(3, RESET),
        Broken(6, "true-reset-serves-nothing-old",
               "Job 1 loads host block 7, which was stored before a reset that answered True."),
    ),
    "a report of nobody's job": (
        changed(4, jobs=[9]), Broken(6, "workers-agree", "Job 9 is reported, and was never launched."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named_with_the_line_where_it_shows(tmp_path: Path, name: str) -> None:
    lines, broken = BROKEN[name]
    assert judged(written(tmp_path, lines)) == broken


def test_the_verb_refutes_with_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BROKEN["a report of nobody's job"][0])
    page = tmp_path / "page.html"
    assert main(["validate", str(path), "--html", str(page)]) == 1
    assert "REFUTED workers-agree   line 6, after 4 that break nothing" in capsys.readouterr().out
    drawn = page.read_text()
    assert '["line 2: step","compute x tokens 0 to 4; job 0: store 1 -\\u003e 7, 2 -\\u003e 8"]' in drawn
    assert '["line 4: end","request x"]' in drawn


def test_a_reset_that_answers_false_promises_nothing(tmp_path: Path) -> None:
    assert judged(written(tmp_path, changed(3, {**RESET, "answered": False}))) is None


def test_a_flush_has_the_copy_over_before_its_source_is_written_again(tmp_path: Path) -> None:
    reuses = {"do": {"verb": "step"}, "requests": {"z": {"start": 0, "count": 4, "table": [1, 2], "keys": ["c", "d"]}}}
    late = [LINES[0], {"do": {"verb": "end", "request": "x"}}, reuses, *LINES[3:]]
    late[1:1] = []
    unfenced = judged(written(tmp_path, [late[0], late[1], reuses, reuses, *LINES[1:2], *LINES[3:]]))
    assert unfenced is not None
    assert unfenced.property == "reads-what-was-written"
    fenced = {**reuses, "flush": [0]}
    assert judged(written(tmp_path, [late[0], late[1], fenced, fenced, *LINES[1:2], *LINES[3:]])) is None


def test_a_block_goes_by_its_key_once_it_has_one(tmp_path: Path) -> None:
    """y decodes a block, whose key comes with the step after; z hits it on the device."""
    more: list[Line] = [
        {"do": {"verb": "step"}, "requests": {"y": {"start": 6, "count": 1, "more": [0], "keys": ["e"]}}},
        {
            "do": {"verb": "step"},
            "requests": {"z": {"start": 6, "count": 1, "table": [3, 4, 5, 2], "keys": ["a", "b", "e"]}},
        },
        {"do": {"verb": "step"}},
    ]
    assert judged(written(tmp_path, [*LINES, *more])) is None
    more[1]["requests"]["z"]["keys"] = ["a", "b", "f"]
    broken = judged(written(tmp_path, [*LINES, *more]))
    assert broken is not None
    assert broken.line == 12


BAD: dict[str, tuple[Line, str]] = {
    "verb": ({"do": {"verb": "fly"}}, "has the verb 'fly', which is none of step, report, reset, end"),
    "block": (
        {"do": {"verb": "step"}, "requests": {"x": {"start": 0, "count": 1, "table": [6]}}},
        "has device block 6, and there are 6",
    ),
    "too few blocks": (
        {"do": {"verb": "step"}, "requests": {"x": {"start": 0, "count": 3, "table": [1]}}},
        "computes 2 blocks of request x, which has 1",
    ),
    "no numbers": ({"do": {"verb": "step"}, "requests": {"x": {"table": [1]}}}, "has None in start and count"),
    "key": (
        {"do": {"verb": "step"}, "requests": {"x": {"start": 0, "count": 1, "table": [1], "keys": ["\x1b"]}}},
        "where a key belongs",
    ),
    "copy": ({"do": {"verb": "step"}, "copies": [[0, "steal", []]]}, "has no [job, store or load, pairs]"),
    "pair": ({"do": {"verb": "step"}, "copies": [[0, "store", [[1]]]]}, "has no [source, destination]"),
    "no pairs": ({"do": {"verb": "step"}, "copies": [[0, "store", []]]}, "has a copy of no blocks"),
    "field": (
        {"do": {"verb": "step"}, "copise": []},
        "has 'copise', which is none of do, requests, copies, flush, time",
    ),
    "field of a request": (
        {"do": {"verb": "step"}, "requests": {"x": {"start": 0, "count": 1, "tables": [1]}}},
        "has 'tables', which is none of start, count, table, more, keys",
    ),
    "a name that steers": (
        {"do": {"verb": "step"}, "requests": {"\x1b[2J": {"start": 0, "count": 1}}},
        r"has request '\x1b[2J'; its name",
    ),
    "a reset without an answer": ({"do": {"verb": "reset"}}, "is a reset and lacks answered"),
    "host": ({"do": {"verb": "step"}, "copies": [[0, "store", [[1, 10**7]]]]}, "has host block 10000000"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_line_that_makes_no_sense_is_a_sentence(tmp_path: Path, name: str) -> None:
    line, sentence = BAD[name]
    with pytest.raises(BadLog) as caught:
        judged(written(tmp_path, [line]))
    assert sentence in str(caught.value)


def test_what_is_kept_of_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that nobody reports, and what ended requests were called."""
    monkeypatch.setattr("kvproof.obligations.logged.MOST_WAITING", 3)
    unreported = [{"do": {"verb": "step"}, "copies": [[job, "store", [[1, 7], [2, 8]]]]} for job in range(2)]
    reported = {"do": {"verb": "report"}, "jobs": [0]}
    assert judged(written(tmp_path, [unreported[0], reported, unreported[1]])) is None
    with pytest.raises(BadLog, match="line 3, has a copy too many: at most 3 blocks are copied and not reported"):
        judged(written(tmp_path, unreported))

    logged = Logged("engine.log", 6, 2, 1)
    for number in range(99):
        logged.take(number, {"do": {"verb": "step"}, "requests": {f"q{number}": {**OF_ONE_BLOCK, "keys": ["c"]}}})
        logged.take(number, {"do": {"verb": "end", "request": f"q{number}"}})
    assert list(logged._told.values()) == ["q98"]


def test_a_request_that_ended_before_its_compute_ran_is_named(tmp_path: Path) -> None:
    reads: Line = {"do": {"verb": "step"}, "requests": {"y": {"start": 2, "count": 1, "table": [3, 4], "keys": ["c"]}}}
    broken = judged(written(tmp_path, [reads, {"do": {"verb": "end", "request": "y"}}, {"do": {"verb": "step"}}]))
    assert broken is not None
    assert broken.sentence.startswith("The compute of request y reads its block 0")


LOADED_IN_THE_STEP: Line = {
    "do": {"verb": "step"},
    "requests": {"y": {"start": 3, "count": 1, "table": [3, 4], "keys": ["a", "b"]}},
    "copies": [[1, "load", [[7, 3], [8, 4]]], [2, "store", [[1, 9]]]],
}
"""Of an engine whose compute waits for the load that it was launched with: y's, and a store of x's block beside it."""


def reported(*jobs: int) -> Line:
    return {"do": {"verb": "report"}, "jobs": list(jobs)}


def test_a_store_may_be_over_before_a_compute_that_does_not_write_its_source(tmp_path: Path) -> None:
    before = LINES[:3]
    sound = [*before, LOADED_IN_THE_STEP, reported(2), reported(1), {"do": {"verb": "step"}}]
    assert judged(written(tmp_path, sound)) is None


def test_a_store_that_is_over_says_that_the_compute_has_run_which_writes_its_source(tmp_path: Path) -> None:
    writes = {**LOADED_IN_THE_STEP, "copies": [[1, "load", [[7, 3], [8, 4]]], [2, "store", [[4, 9]]]]}
    broken = judged(written(tmp_path, [*LINES[:3], writes, reported(2), reported(1)]))
    assert broken is not None
    assert (broken.line, broken.property) == (6, "reads-what-was-written")


def test_a_load_is_over_after_the_computes_that_use_what_it_overwrites(tmp_path: Path) -> None:
    """z has ended and its compute may still run, when its block is y's: whether the load waited, no hook tells."""
    ended: Line = {"do": {"verb": "end", "request": "z"}}
    header = {**HEADER, "contract": {"discipline": "pinning", "depth": 2}}
    assert judged(written(tmp_path, [*LINES[:3], OVERWRITES, ended, *LINES[3:]], header)) is None
    late = [*LINES[:4], OVERWRITES, *LINES[4:]]
    broken = judged(written(tmp_path, late, header))
    assert broken is not None
    assert broken.sentence.endswith("reads its block 0 in device block 3, which holds something else.")
