"""What the bank is compared with is right about the sound kvoffload, and meets a bug that is easy to meet."""

import random

from tests.bugs.compare.__main__ import compared
from tests.bugs.compare.serving import COMMANDS, Serving


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
