"""What the bank is compared with is right about the sound kvoffload, and meets a bug that is easy to meet."""

import random

from tests.bugs.compare.__main__ import line
from tests.bugs.compare.serving import COMMANDS, Serving


def test_walks_find_nothing_in_the_sound_one() -> None:
    chance = random.Random(0)
    for _ in range(20):
        serving = Serving(lambda options: chance.choice(list(options)))
        for _ in range(50):
            getattr(serving, chance.choice(COMMANDS))()
            serving.check()
        serving.drain()


def test_both_meet_a_bug_in_the_first_steps() -> None:
    found = line("step-leaks", 100, walks=True)
    assert "hypothesis 100: 5 of 5 seeds" in found
    assert "walk: 5 of 5 seeds" in found
