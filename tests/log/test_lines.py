"""Files that are no logs are refused in one sentence that says what is wrong, and in which line."""

import json
import tracemalloc
from pathlib import Path

import pytest

from kvproof.cli import main
from kvproof.log.entry import BadLog
from kvproof.log.follow import Follower
from kvproof.log.lines import MAX_LINE, Lines
from tests.log.a_log import HEADER, LINES, Line, lines, written


def follow(path: Path) -> None:
    log = Lines(path)
    follower = Follower(str(path), log.header, log.failures())
    for entry in log:
        follower.take(entry)


def refused(path: Path) -> str:
    with pytest.raises(BadLog) as caught:
        follow(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


HEADERS: dict[str, tuple[Line, str]] = {
    "no schema": ({"engine": "x"}, "does not begin with"),
    "newer": ({**HEADER, "kvproof_log": 2}, "has schema 2, and this kvproof reads up to 1; upgrade kvproof"),
    "true": ({**HEADER, "kvproof_log": True}, "does not begin with"),
    "unknown": ({**HEADER, "colour": 1}, "has 'colour', which is none of"),
    "no runs": ({k: v for k, v in HEADER.items() if k != "runs"}, "has runs None, and not recorded or unrecorded"),
    "no sizes": ({**HEADER, "sizes": {}}, "has device_blocks None in sizes, and not a number from 1 to 100,000"),
    "no blocks": ({**HEADER, "sizes": {**HEADER["sizes"], "host_blocks": 0}}, "has host_blocks 0 in sizes"),
    "too many": ({**HEADER, "sizes": {**HEADER["sizes"], "workers": 65}}, "has workers 65 in sizes"),
    "discipline": ({**HEADER, "contract": {"discipline": "hope"}}, "has a contract that makes no sense"),
    "contract": ({**HEADER, "contract": {}}, "has a contract that makes no sense"),
    "mode": ({**HEADER, "contract": {"discipline": "pinning", "depth": "2"}}, "has depth '2' in its contract"),
    "engine": ({**HEADER, "engine": "<\x00>"}, "a printable text"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_makes_no_sense(tmp_path: Path, name: str) -> None:
    header, sentence = HEADERS[name]
    assert sentence in refused(written(tmp_path, lines(), header))


BAD_LINES: dict[str, tuple[Line, str]] = {
    "no command": ({"seen": {}}, "line 2, has no record where do belongs"),
    "unknown verb": ({"do": {"verb": "levitate"}}, "line 2, has the unknown verb 'levitate'"),
    "unknown field": ({"do": {"verb": "schedule"}, "mood": 1}, "line 2, has 'mood', which is none of"),
    "unknown request": ({"do": {"verb": "abort", "request": "who"}}, "names request 'who', which was never submitted"),
    "no request": ({"do": {"verb": "abort"}}, "has a wrong command: abort lacks its request"),
    "no keys": ({"do": {"verb": "submit", "request": "a"}}, "submits request a without keys"),
    "number for a name": ({"do": {"verb": "submit", "request": 3}, "keys": ["k"]}, "submits request 3; its name is a"),
    "keys": ({"do": {"verb": "submit", "request": "a"}, "keys": "k"}, "has no list of at most 4,096 keys where keys"),
    "worker": ({"do": {"verb": "report", "worker": 2, "job": 0}}, "the scope has workers 0 to 1"),
    "no answer": ({"do": {"verb": "reset", "meaning": "evict", "requests": "keep"}}, "is a reset and lacks answered"),
    "answer": ({"do": {"verb": "schedule"}, "answered": "yes"}, "has answered 'yes', and not true or false"),
    "action": ({"do": {"verb": "schedule"}, "did": [{"action": "Fly"}]}, "has the action 'Fly' in did"),
    "pair": (
        {"do": {"verb": "schedule"}, "did": [{"action": "Launch", "stores": [[None, [[0]]]]}]},
        "has no list of 3",
    ),
    "block": ({"do": {"verb": "schedule"}, "did": [{"action": "Launch", "flush": [-1]}]}, "has -1 in flush"),
    "seen": ({"do": {"verb": "schedule"}, "seen": {"weather": 1}}, "has 'weather' in seen"),
    "key": ({"do": {"verb": "schedule"}, "seen": {"host_keys": ["nobody's"]}}, "which no request of the log has"),
    "job": ({"do": {"verb": "schedule"}, "seen": {"jobs": {"one": {}}}}, "has job 'one', and job ids are numbers"),
    "a name that steers": (
        {"do": {"verb": "schedule"}, "seen": {"requests": {"\x1b[2J\n": 3}}},
        r"has no record where request '\x1b[2J\n' belongs",
    ),
    "block in a record": ({"do": {"verb": "schedule"}, "seen": {"device_refs": {"3": 1}}}, "has '3' in device_refs"),
    "failed": ({"do": {"verb": "schedule"}, "failed": [0]}, "line 2, has failed, which is of a report"),
    "failed of nobody": (
        {"do": {"verb": "report", "worker": 0, "jobs": [0]}, "failed": {"1": [0]}},
        "has failed of a job that it does not report",
    ),
    "failed pair": ({"do": {"verb": "report", "worker": 0, "job": 0}, "failed": [-1]}, "has -1 in failed"),
    "jobs": ({"do": {"verb": "report", "worker": 0, "jobs": 3}}, "has no list of 1 to 4,096 job ids"),
    "end": ({"end": 3}, "has 3 where the end belongs"),
    "report_all": ({"do": {"verb": "report_all", "worker": 0}}, "which says nothing in a log without runs"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_line_that_makes_no_sense(tmp_path: Path, name: str) -> None:
    line, sentence = BAD_LINES[name]
    assert sentence in refused(written(tmp_path, [line]))


def test_a_request_that_is_submitted_twice(tmp_path: Path) -> None:
    assert "line 3, submits request chat-1, which is there already" in refused(written(tmp_path, [LINES[0], LINES[0]]))


def test_more_requests_at_once_than_there_are_places(tmp_path: Path) -> None:
    many: list[Line] = [{"do": {"verb": "submit", "request": f"q{n}"}, "keys": ["k"]} for n in range(65)]
    assert "line 66, has more than 64 requests at once" in refused(written(tmp_path, many))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "line 1, is not UTF-8 text"),
        (b"[" * 100_000, "line 1, is nested 100,000 deep"),
        (b"[" * 33 + b"]" * 33, "line 1, is nested 33 deep, and a log never more than 32"),
        (
            json.dumps(HEADER)[:-1].encode() + b', "engine": "other"}\n',
            "line 1, is not JSON: a record has 'engine' twice",
        ),
        (b"[1]", "line 1, has no record where the line belongs"),
        (b'{"kvproof_log": NaN}', "line 1, is not JSON: NaN is not JSON"),
        (b" " * (MAX_LINE + 1), "line 1, is longer than 1,048,576 bytes"),
        (json.dumps(HEADER).encode() + b'\n{"do": {"verb"', "line 2, is not JSON: Expecting ':' delimiter: line 1"),
    ],
)
def test_a_file_that_is_no_log(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(content)
    assert sentence in refused(path)


def test_a_field_is_the_same_however_its_name_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, lines())
    path.write_text(path.read_text().replace('"keys"', '"\\u006beys"'))
    follow(path)


def test_a_log_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, lines())
    log = Lines(path)
    follower = Follower(str(path), log.header, log.failures())
    with path.open("a") as file:
        file.write(json.dumps({"do": {"verb": "submit", "request": "late"}, "keys": ["new"]}) + "\n")
    assert [follower.take(entry) for entry in log] == [None] * 9


def test_nothing_comes_after_the_end(tmp_path: Path) -> None:
    path = written(tmp_path, [*lines(), {"end": "closed"}])
    follow(path)
    with path.open("a") as file:
        file.write(json.dumps({"do": {"verb": "schedule"}}) + "\n")
    assert "line 11, comes after the end of the log" in refused(path)


@pytest.mark.parametrize(("bound", "most"), [("MAX_DISTINCT_KEYS", 9), ("MAX_NAMES", 38)])
def test_what_is_kept_of_a_log_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    many: list[Line] = [{"do": {"verb": "submit", "request": f"q{n}"}, "keys": [f"k{n}", "all"]} for n in range(9)]
    monkeypatch.setattr(f"kvproof.log.follow.{bound}", most)
    assert "line 10, has a key too many" in refused(written(tmp_path, many))
    monkeypatch.setattr(f"kvproof.log.follow.{bound}", most + 1)
    follow(written(tmp_path, many))  # 10 keys of 21 characters, and names of 18


def test_the_failures_that_are_kept_of_a_log_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[Line] = [{"do": {"verb": "report", "worker": 0, "job": job}, "failed": [0, 1]} for job in range(3)]
    monkeypatch.setattr("kvproof.log.lines.MAX_FAILURES", 5)
    assert "line 4, has a failed block too many" in refused(written(tmp_path, failing))


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "is no file" in refused(tmp_path)
    assert "is no file" in refused(tmp_path / "nowhere.log")


def test_a_line_of_a_gigabyte_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    with path.open("wb") as file:
        file.truncate(2**30)  # sparse
    tracemalloc.start()
    try:
        assert "is longer than 1,048,576 bytes" in refused(path)
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_LINE
    finally:
        tracemalloc.stop()


def test_the_verb_says_it_in_one_sentence_with_exit_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, [{"do": {"verb": "levitate"}}])
    assert main(["validate", str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"kvproof: log {path}, line 2, has the unknown verb 'levitate'; docs/reference/logs.md lists them"
    )
    assert main(["validate", str(tmp_path / "none")]) == 2
