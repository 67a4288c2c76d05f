"""What the bank is compared with is right about the sound kvoffload, and meets a bug that is easy to meet."""

import random
import re

from tests.bugs.bank import BANK, BY_ID
from tests.bugs.compare import results
from tests.bugs.compare.__main__ import compared
from tests.bugs.compare.serving import COMMANDS, Serving
from tests.bugs.planting import ROOT


def test_walks_find_nothing_in_the_sound_one() -> None:
    chance = random.Random(0)
    for _ in range(60):
        serving = Serving(lambda options: chance.choice(list(options)))
        for _ in range(50):
            getattr(serving, chance.choice(COMMANDS))()
            serving.go_on()
            serving.check()
        serving.drain()


def test_both_meet_a_bug_in_the_first_steps() -> None:
    found = compared("live-never-released", 100)
    assert [(one.way, one.runs, one.met, one.seeds) for one in found] == [
        ("walk", 400, 5, 5),
        ("hypothesis", 100, 5, 5),
    ]


def test_no_further_seed_is_tried_once_one_has_met_it() -> None:
    found = compared("live-never-released", 100, until_met=True)
    assert [(one.way, one.met, one.seeds) for one in found] == [("walk", 1, 1), ("hypothesis", 1, 1)]


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
