"""A log is explained line by line, or the first line that the contract does not allow is told."""

from pathlib import Path
from typing import Any

import pytest

from kvmodel.request import WAITING
from kvproof.log import follow
from kvproof.log.follow import Follower, Stuck
from kvproof.log.lines import Lines
from kvproof.log.telling import told
from kvproof.targets import side_by_side
from tests.log.a_log import HEADER, Line, lines, written


def followed(path: Path) -> tuple[Follower, Stuck | None, int]:
    log = Lines(path)
    follower = Follower(str(path), log.header, log.failures())
    explained = 0
    for entry in log:
        stuck = follower.take(entry)
        if stuck is not None:
            return follower, stuck, explained
        explained += 1
    return follower, None, explained


def test_a_sound_log_is_explained_to_its_end_with_the_runs_that_nobody_saw(tmp_path: Path) -> None:
    follower, stuck, explained = followed(written(tmp_path, lines()))
    assert stuck is None
    assert explained == 8
    assert follower.inferred == 4  # each worker's compute, then its store: no report without them


def test_operations_run_no_sooner_than_the_log_needs_them(tmp_path: Path) -> None:
    follower, stuck, _ = followed(written(tmp_path, lines()[:4]))
    assert stuck is None
    assert follower.inferred == 3  # both computes before the output, and the store of the worker that reported


def test_of_more_runs_than_there_is_room_for_states_every_command_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy, _, _ = followed(written(tmp_path, lines()[:4]))
    monkeypatch.setattr(follow, "MOST_CELLS", 1)
    follower, stuck, _ = followed(written(tmp_path, lines()[:4]))
    assert stuck is None
    assert (len(roomy.recent), len(follower.recent), follower.inferred) == (len(roomy.transcript.commands), 1, 3)
    assert follower.transcript.commands == roomy.transcript.commands
    assert follower.state == roomy.state


CHANGES: dict[str, tuple[int, list[str], object, str, int]] = {
    # where in the log, what is changed there, the property that breaks, the line of the file where it shows
    "a reset that says True while its store is in flight": (
        4, ["answered"], True, "true-reset-serves-nothing-old", 6,
    ),
    "a reset that says False with nothing in flight": (6, ["answered"], False, "false-reset-has-a-cause", 8),
    "a reset that lets go of a block under a store": (
        4, ["seen", "device_refs"], [0, 0, 0], "owners-account-for-references", 6,
    ),
    "a job that is there after its last completion": (
        5, ["seen", "jobs"], {"0": {"state": "ABANDONED"}}, "reset-converges", 7,
    ),
    "a publication while a worker still writes the block": (
        3, ["seen", "host_keys"], [None, "hello"], "no-use-after-free", 5,
    ),
    "a request that stays where the reset found it": (
        4, ["seen", "requests", "chat-1", "phase"], "RUNNING", "every-request-can-finish", 6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_the_first_line_that_the_contract_forbids_is_found_and_its_property_named(tmp_path: Path, name: str) -> None:
    position, where, value, broken, line = CHANGES[name]
    changed = lines()
    place: Line = changed[position]
    for word in where[:-1]:
        place = place[word]
    place[where[-1]] = value
    _, stuck, explained = followed(written(tmp_path, changed))
    assert stuck is not None
    assert (stuck.divergence.property, stuck.entry.number, explained) == (broken, line, position)


def test_what_is_told_has_the_line_the_facts_what_was_allowed_and_the_logs_own_names(tmp_path: Path) -> None:
    changed = lines()
    changed[5]["do"]["job"] = 7
    follower, stuck, explained = followed(written(tmp_path, changed))
    assert stuck is not None
    text = told(follower, stuck, explained)
    assert "line 7, after 5 that are explained" in text
    assert "Nearest: report w0 job 0" not in text  # its store has not run: that is not logged
    assert "run w0 store" in text.partition("Allowed here:")[2]


def test_the_nearest_allowed_command_is_told_with_what_differs(tmp_path: Path) -> None:
    recorded = [*lines()[:4], {"do": {"verb": "run", "worker": 0, "stream": "store"}}]
    recorded[2:2] = [{"do": {"verb": "run", "worker": worker, "stream": "compute"}} for worker in (0, 1)]
    recorded.insert(5, {"do": {"verb": "run", "worker": 1, "stream": "store"}})
    recorded.append({"do": {"verb": "report", "worker": 0, "job": 3}})
    follower, stuck, explained = followed(written(tmp_path, recorded, {**HEADER, "runs": "recorded"}))
    assert stuck is not None
    text = told(follower, stuck, explained)
    assert "Nearest: report w0 job 0 (argument 2 is 3 in the log, and could be 0)." in text


def test_of_a_reset_the_other_answer_is_nearest(tmp_path: Path) -> None:
    changed = lines()
    changed[4]["answered"] = True
    follower, stuck, explained = followed(written(tmp_path, changed))
    assert stuck is not None
    assert "Nearest: the same, answered False (answered is True in the log)." in told(follower, stuck, explained)


def test_where_every_run_is_recorded_none_is_inferred(tmp_path: Path) -> None:
    _, stuck, explained = followed(written(tmp_path, lines(), {**HEADER, "runs": "recorded"}))
    assert stuck is not None
    assert stuck.entry.number == 4  # the output of a step that no worker has computed
    assert explained == 2


@pytest.mark.parametrize(
    ("source", "key", "explained", "broken"), [(2, "hello", 9, None), (1, "bye", 6, "reads-what-was-written")]
)
def test_a_store_may_run_at_once_if_its_source_is_computed(
    tmp_path: Path, source: int, key: str, explained: int, broken: str | None
) -> None:
    """chat-1's block 2 is computed; a store of it is launched with the compute of block 1, or one of block 1 is."""
    header = {**HEADER, "sizes": {"device_blocks": 3, "host_blocks": 2, "workers": 1}, "runs": "recorded"}
    recorded: list[Line] = [
        lines()[0],
        {
            "do": {"verb": "schedule"},
            "did": [
                {"action": "Admit", "request": "chat-1", "fresh": [2]},
                {"action": "Launch", "computes": [["chat-1", 0, 1]], "stores": []},
            ],
        },
        {"do": {"verb": "run", "worker": 0, "stream": "compute"}},
        {"do": {"verb": "handle_output"}},
        {"do": {"verb": "submit", "request": "chat-2"}, "keys": ["bye"]},
        {
            "do": {"verb": "schedule"},
            "did": [
                {"action": "Admit", "request": "chat-2", "fresh": [1]},
                {"action": "Launch", "computes": [["chat-2", 0, 1]], "stores": [[None, [[source, 1, key]]]]},
            ],
        },
        {"do": {"verb": "run", "worker": 0, "stream": "store"}},
        {"do": {"verb": "report", "worker": 0, "job": 0}},
        {"do": {"verb": "run", "worker": 0, "stream": "compute"}},
    ]
    _, stuck, until = followed(written(tmp_path, recorded, header))
    assert until == explained
    assert (stuck.divergence.property if stuck else None) == broken


def test_of_a_large_pool_no_more_is_put_in_words_than_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = 1_000
    changed = lines()
    changed[1]["seen"] = {"device_refs": [7] * blocks}
    header = {**HEADER, "sizes": {"device_blocks": blocks, "host_blocks": 2, "workers": 2}}
    in_words: list[int] = []
    original = side_by_side._block

    def counted(*arguments: Any) -> str:
        in_words.append(arguments[-1])
        return original(*arguments)

    monkeypatch.setattr(side_by_side, "_block", counted)
    _, stuck, _ = followed(written(tmp_path, changed, header))
    assert stuck is not None
    assert len(stuck.divergence.contract_lines) == len(stuck.divergence.target_lines) == 12
    assert set(in_words) == set(range(12))


def test_a_place_is_used_again_once_its_request_has_ended(tmp_path: Path) -> None:
    many: list[Line] = []
    for number in range(200):  # there are 64 places
        many.append({"do": {"verb": "submit", "request": f"chat-{number}"}, "keys": [f"text-{number}"]})
        many.append({"do": {"verb": "abort", "request": f"chat-{number}"}})
    follower, stuck, explained = followed(written(tmp_path, many))
    assert stuck is None
    assert explained == 400
    assert follower.state.requests[1].phase != WAITING
