"""What the bank is compared with is right about the sound kvoffload, and meets a bug that is easy to meet."""

import random
import re
from collections.abc import Sequence

import pytest

from tests.bugs.bank import BANK, BY_ID
from tests.bugs.compare import __main__ as command
from tests.bugs.compare import results
from tests.bugs.compare.__main__ import compared, going_on
from tests.bugs.compare.results import Compared
from tests.bugs.compare.serving import COMMANDS, Serving
from tests.bugs.planting import ROOT


def test_walks_find_nothing_in_the_sound_one() -> None:
    chance = random.Random(0)
    for _ in range(60):
        serving = Serving(lambda options: chance.choice(list(options)))
        for _ in range(50):
            getattr(serving, chance.choice([one for one in COMMANDS if serving.can(one)]))()
            serving.go_on()
            serving.check()
        serving.drain()


FRESH = [
    Compared("live-never-released", "walk", 40, 0, 0, 0.0, ""),
    Compared("live-never-released", "hypothesis", 10, 0, 0, 0.0, ""),
]


def test_both_meet_a_bug_in_the_first_steps() -> None:
    assert [(one.way, one.met, one.seeds) for one in compared(FRESH, 5)] == [("walk", 5, 5), ("hypothesis", 5, 5)]


def test_no_further_seed_is_tried_once_one_has_met_it() -> None:
    found = compared(FRESH, 5, until_met=True)
    assert [(one.way, one.met, one.seeds) for one in found] == [("walk", 1, 1), ("hypothesis", 1, 1)]


def test_what_is_kept_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], int]] = []

    def pretended(lines: Sequence[Compared], seeds: int, until_met: bool) -> list[Compared]:
        asked.append(([line.seeds for line in lines], seeds))
        return [line._replace(seeds=seeds, met=line.met + (seeds == 4)) for line in lines]

    monkeypatch.setattr(command, "compared", pretended)
    walk, plain = [line._replace(runs=2_000) for line in FRESH]
    begun = [walk._replace(seeds=1, met=1), plain._replace(seeds=2)]
    found = list(going_on(begun, 5, until_met=True))
    assert asked == [([2], 3), ([3], 4)]  # the walk has met it; of many examples each seed is kept when it is done
    assert [(one.met, one.seeds) for one in found[-1]] == [(1, 1), (1, 4)]
    assert list(going_on(found[-1], 5, until_met=True)) == []


def test_what_goes_round_in_circles_is_met() -> None:
    def circles() -> None:
        while True:
            pass

    assert command.met(circles, 0.05)


def test_the_tables_are_made_of_what_is_kept() -> None:
    """If this fails: python -m tests.bugs.compare --readme"""
    wanted = f"{results.BEGIN}\n\n{results.tables(results.kept())}\n\n{results.END}"
    assert wanted in results.README.read_text()


def test_the_page_on_random_testing_has_the_figures_that_are_kept() -> None:
    page = (ROOT / "docs/explanation/random-testing.md").read_text()
    met = {(one.id, one.way): f"{one.met} of {one.seeds}" for one in results.kept() if one.runs in (100, 400)}
    rows = re.findall(r"^\| `(\S+)` \| (.+) \| (.+) \| (\d+)(?: commands)? \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for name, plain, walk, commands in rows:
        assert (plain, walk) == (met[name, "hypothesis"], met[name, "walk"])
        assert int(commands) == BY_ID[name].commands
    assert f"6 of the {len(BANK)} planted bugs" in page
