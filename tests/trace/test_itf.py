"""Traces survive a round trip, and no file whatsoever does more than raise BadTrace."""

import dataclasses
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.bounded import MAX_DEPTH
from kvproof.targets.command import RESETS, VERBS, Command
from kvproof.trace import itf
from kvproof.trace.itf import MAX_BYTES
from kvproof.trace.trace import MAX_COMMANDS, BadTrace, Trace
from kvproof.verdict import Verdict

SCOPE = Scope(device_blocks=3, host_blocks=2, workers=2, prompts=("ab", "ac"), lookups=True, meanings=("evict",))


def trace(*commands: Command) -> Trace:
    return Trace(
        contract=Contract("fencing", output_from="first", depth=2, environment=frozenset({"loss"})),
        scope=SCOPE,
        scope_name="s4,lookups=yes",
        target="kvoffload",
        commands=commands,
        verdict=Verdict.REFUTED,
        property="fence-before-reuse",
        engine="conform",
        device="ledger",
        seed=7,
        commit="1a2b3c4",
        note='job 1 reads d0 while "ac" is computed into it',
    )


def arguments(verb: str) -> st.SearchStrategy[tuple[int | str, ...]]:
    if verb == "reset":
        return st.sampled_from(RESETS)
    limits = {"request": len(SCOPE.prompts) - 1, "worker": SCOPE.workers - 1, "position": 9}
    limits |= {"job": 10_000, "mark": 10_000}
    return st.tuples(*(st.sampled_from(p.values) if p.values else st.integers(0, limits[p.name]) for p in VERBS[verb]))


commands = st.sampled_from(sorted(VERBS)).flatmap(lambda verb: st.builds(Command, st.just(verb), arguments(verb)))


@given(st.lists(commands, max_size=20))
def test_round_trip(found: list[Command]) -> None:
    before = trace(*found)
    assert itf.from_bytes(itf.to_text(before).encode(), "it") == before


def test_what_each_request_decodes_survives_it_too_and_most_files_do_not_mention_it() -> None:
    before = dataclasses.replace(trace(), scope=SCOPE._replace(decoded=("", "c")))
    assert itf.from_bytes(itf.to_text(before).encode(), "it") == before
    assert "decoded" not in itf.to_text(trace())


def test_the_file_is_itf(tmp_path: Path) -> None:
    """The fields that the format prescribes, as Apalache's ADR 15 has them, so that other tools can show our traces."""
    itf.write(tmp_path / "t.itf.json", trace(Command("submit", (0,)), Command("run", (1, "store"))))
    data = json.loads((tmp_path / "t.itf.json").read_text())
    assert data["#meta"]["format"] == "ITF"
    assert data["vars"] == ["command"]
    assert data["states"] == [
        {"#meta": {"index": 0}, "command": {"verb": "start"}},
        {"#meta": {"index": 1}, "command": {"verb": "submit", "request": 0}},
        {"#meta": {"index": 2}, "command": {"verb": "run", "worker": 1, "stream": "store"}},
    ]


def test_a_file_from_before_a_mode_existed_has_its_default() -> None:
    data = json.loads(itf.to_text(trace()))
    del data["#meta"]["kvproof"]["contract"]["output_from"]
    del data["#meta"]["kvproof"]["contract"]["depth"]
    del data["#meta"]["kvproof"]["scope"]["lookups"]
    del data["#meta"]["kvproof"]["scope"]["tiers"]
    read = itf.from_bytes(json.dumps(data).encode(), "old")
    assert read.contract.output_from == "all"
    assert read.contract.depth == 1
    assert read.scope.lookups is False
    assert read.scope.tiers == ("all",)


def test_how_a_false_is_read_is_written_where_the_run_said_it() -> None:
    assert "reading" not in json.loads(itf.to_text(trace()))["#meta"]["kvproof"]
    strict = dataclasses.replace(trace(), reading="strict")
    assert itf.from_bytes(itf.to_text(strict).encode(), "it") == strict


def test_a_reset_names_its_tiers_or_means_all() -> None:
    """The shortest form is what is written, so that files from before there were tiers say the same."""
    told = json.loads(
        itf.to_text(trace(Command("reset", ("evict", "keep")), Command("reset", ("evict", "keep", "host"))))
    )
    assert [state["command"] for state in told["states"][1:]] == [
        {"verb": "reset", "meaning": "evict", "requests": "keep"},
        {"verb": "reset", "meaning": "evict", "requests": "keep", "tiers": "host"},
    ]
    told["states"][1]["command"]["tiers"] = "all"
    read = itf.from_bytes(json.dumps(told).encode(), "it")
    assert read.commands == (Command("reset", ("evict", "keep")), Command("reset", ("evict", "keep", "host")))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ({"meaning": "evict", "requests": "keep", "tiers": "disk"}, "tiers of reset must be all or device or host"),
        ({"meaning": "evict", "requests": "keep", "tiers": 3}, "tiers of reset must be all or device or host, not 3"),
        ({"meaning": "evict", "tiers": "host"}, "reset lacks its requests"),
        ({"meaning": "invalidate", "requests": "keep", "tiers": "device"}, "the host would serve the old weights' KV"),
        ({"meaning": "evict", "requests": "preempt", "tiers": "host"}, "preempts nobody"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(command: dict[str, object], says: str) -> None:
    told = json.loads(itf.to_text(trace(Command("launch"))))
    told["states"][1]["command"] = {"verb": "reset", **command}
    with pytest.raises(BadTrace, match=says):
        itf.from_bytes(json.dumps(told).encode(), "it")


def test_variables_of_other_tools_are_ignored() -> None:
    data = json.loads(itf.to_text(trace(Command("schedule"))))
    data["vars"].append("note")
    data["states"][1]["note"] = {"#tup": [1, {"#bigint": "12345678901234567890"}]}
    assert itf.from_bytes(json.dumps(data).encode(), "theirs").commands == (Command("schedule"),)


def test_a_note_that_cannot_be_printed_is_written_so_that_it_can_be_read() -> None:
    noted = itf.to_text(Trace(**{**trace().__dict__, "note": "a\x1b[31m\nb" * 200}))
    assert itf.from_bytes(noted.encode(), "it").note.isprintable()


def test_the_longest_trace_is_smaller_than_the_largest_file(tmp_path: Path) -> None:
    path = tmp_path / "long.itf.json"
    itf.write(path, trace(*[Command("duplicate_report", (1, 2**31 - 1))] * MAX_COMMANDS))
    assert path.stat().st_size < MAX_BYTES
    assert len(itf.read(path).commands) == MAX_COMMANDS


def test_a_longer_trace_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="shrink it first"):
        itf.write(tmp_path / "t", trace(*[Command("schedule")] * (MAX_COMMANDS + 1)))
    assert list(tmp_path.iterdir()) == []


GOOD = itf.to_text(trace(Command("submit", (0,)), Command("schedule"), Command("run", (0, "compute"))))


def changed(path: str, value: object) -> bytes:
    """The good trace with one place changed; a path such as `states/1/command/verb`."""
    data = json.loads(GOOD)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place = data
    for step in steps:
        place = place[step]
    place[last] = value
    return json.dumps(data).encode()


def test_a_key_that_comes_twice_is_found_among_many_in_linear_time() -> None:
    names = [f'"k{number}":0' for number in (*range(300_000), 299_999)]
    with pytest.raises(BadTrace, match="a record has 'k299999' twice"):
        itf.from_bytes(f"{{{','.join(names)}}}".encode(), "it")


ABOUT = "#meta/kvproof"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"hello", "is not JSON"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"\x00" * 100, "is not JSON"),
        (b"[1, NaN]", "NaN is not JSON"),
        (b"[" + b"9" * 5000 + b"]", "is not JSON that can be read"),
        (GOOD.encode()[:-40], "ends in the middle"),
        (GOOD.encode()[: len(GOOD) // 2], "ends in the middle"),
        (GOOD.encode() + b"x", "is not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "is nested 100,000 deep"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), f"is nested {MAX_DEPTH + 1} deep"),
        (b"7", "no record where the file belongs"),
        (b"[]", "no record where the file belongs"),
        (b"{}", "no record where #meta belongs"),
        (b'{"#meta": {}}', "no record where #meta.kvproof belongs"),
        (changed(f"{ABOUT}/schema", 2), "has schema 2, and this kvproof reads up to 1; upgrade kvproof"),
        (changed(f"{ABOUT}/schema", 0), "schemas start at 1"),
        (changed(f"{ABOUT}/schema", "1"), "has schema '1', and not a number"),
        (changed(f"{ABOUT}/schema", True), "has schema True"),
        (changed(f"{ABOUT}/seed", -1), "has seed -1"),
        (
            changed(f"{ABOUT}/reading", "loose"),
            "has reading 'loose', which does not exist; it is one of lenient, strict",
        ),
        (changed(f"{ABOUT}/seed", 1.5), "has seed 1.5"),
        (changed(f"{ABOUT}/seed", 2**64), "has seed 18446744073709551616"),
        (changed(f"{ABOUT}/target", None), "has target None"),
        (changed(f"{ABOUT}/target", "x" * 501), "has target 'xxx"),
        (changed(f"{ABOUT}/note", "\x1b[2J"), "not a printable text"),
        (changed(f"{ABOUT}/note", "\ud800"), "not a printable text"),
        (changed(f"{ABOUT}/verdict", "MAYBE"), "has verdict 'MAYBE', which does not exist"),
        (changed(f"{ABOUT}/contract", []), "no record where contract belongs"),
        (changed(f"{ABOUT}/contract", {}), "has discipline None"),
        (changed(f"{ABOUT}/contract/discipline", "hoping"), "discipline 'hoping' does not exist"),
        (changed(f"{ABOUT}/contract/environment", ["loss", "fire"]), "fault 'fire' does not exist"),
        (changed(f"{ABOUT}/contract/width", 2), "has 'width' in its contract, which this version does not know"),
        (changed(f"{ABOUT}/scope/host_blocks", 0), "host_blocks is 0"),
        (changed(f"{ABOUT}/scope/host_blocks", "2"), "has host_blocks '2'"),
        (changed(f"{ABOUT}/scope/lookups", 1), "has lookups 1 in its scope, and not true or false"),
        (changed(f"{ABOUT}/scope/prompts", "ab"), "not a list of texts"),
        (changed(f"{ABOUT}/scope/prompts", [1]), "has prompts 1"),
        (changed(f"{ABOUT}/scope/prompts", ["ab"] * 1025), "prompts is 1025"),
        (changed(f"{ABOUT}/scope/colour", "red"), "has 'colour' in its scope"),
        (changed(f"{ABOUT}/scope", {"device_blocks": 2}), "lacks host_blocks in its scope"),
        (changed("states", []), "has no list of states"),
        (changed("states", {}), "has no list of states"),
        (changed("states/0/command/verb", "submit"), "does not begin with the command 'start'"),
        (changed("states/1", 7), "no record where state 1 belongs"),
        (changed("states/1/command", None), "no record where command of state 1 belongs"),
        (changed("states/1/command/verb", "submitt"), "has an unknown action 'submitt' in state 1"),
        (changed("states/1/command/verb", "start"), "has an unknown action 'start' in state 1"),
        (changed("states/1/command/verb", ["submit"]), "has an unknown action ['submit'] in state 1"),
        (changed("states/1/command/request", 2), "the scope has requests 0 to 1"),
        (changed("states/1/command/request", "x"), "must be a number from 0"),
        (changed("states/1/command/request", True), "must be a number from 0"),
        (changed("states/1/command/why", 1), "submit has no 'why'"),
        (changed("states/2/command", {"verb": "run", "worker": 0}), "run lacks its stream"),
        (changed("states/3/command/stream", "lode"), "must be compute or store or load"),
        (changed("states/3/command/worker", 2), "the scope has workers 0 to 1"),
    ],
)
def test_one_sentence_for_whatever_is_wrong(content: bytes, words: str) -> None:
    with pytest.raises(BadTrace) as raised:
        itf.from_bytes(content, "some.itf.json")
    sentence = str(raised.value)
    assert words in sentence
    assert sentence.startswith("trace some.itf.json ")
    assert "\n" not in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300


@given(st.data())
def test_a_damaged_file_is_a_trace_or_bad(data: st.DataObject) -> None:
    content = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content) - 1))
        content[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    with suppress(BadTrace):
        itf.from_bytes(bytes(content), "damaged")


def test_a_million_actions(tmp_path: Path) -> None:
    compact = json.loads(GOOD)
    compact["states"] = []
    head = json.dumps(compact).removesuffix("[]}")
    path = tmp_path / "million.itf.json"
    path.write_text(head + "[" + ",".join(['{"command":{"verb":"launch"}}'] * 1_000_000) + "]}")
    with pytest.raises(BadTrace, match=r"has 30,\d\d\d,\d\d\d bytes, and at most 16,777,216"):
        itf.read(path)
    path.write_text(head + "[" + ",".join(['{"command":{"verb":"launch"}}'] * (MAX_COMMANDS + 2)) + "]}")
    with pytest.raises(BadTrace, match="has 100,001 commands, and at most 100,000 are read"):
        itf.read(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="is not a regular file"):
        itf.read(tmp_path)
    with pytest.raises(BadTrace, match="cannot be opened"):
        itf.read(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadTrace, match="is not a regular file"):
        itf.read(tmp_path / "pipe")
    with pytest.raises(BadTrace, match="is not a regular file"):
        itf.read(Path("/dev/zero"))


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.itf.json"
    itf.write(path, trace())
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        itf.write(path, trace(Command("schedule")))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
