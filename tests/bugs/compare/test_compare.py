"""What the bank is compared with is right about the sound kvoffload, and meets a bug that is easy to meet."""

import random
import re
from collections.abc import Sequence

import pytest

from kvoffload.ids import JobId
from kvoffload.step_report import StepReport
from kvoffload.watching import Call, new_engines_watched
from tests.bugs import honest_books
from tests.bugs import kept as kills
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.compare import __main__ as command
from tests.bugs.compare import results
from tests.bugs.compare.__main__ import compared, going_on
from tests.bugs.compare.results import Compared
from tests.bugs.compare.serving import COMMANDS, LAST, Serving
from tests.bugs.planting import ROOT


def test_walks_find_nothing_in_the_sound_one_and_come_far_enough_to_load() -> None:
    """A test that never gets to a load passes too. Those in the end, of the last request, are not counted."""
    chance = random.Random(0)
    loaded: list[JobId] = []

    def watch(_: object, call: Call) -> None:
        if isinstance(call.answer, StepReport) and call.answer.plan is not None:
            loaded.extend(copy.job for copy in call.answer.plan.load_copies if copy.pairs[0].key != LAST)

    with new_engines_watched(lambda engine: watch):
        for _ in range(60):
            serving = Serving(lambda options: chance.choice(list(options)))
            for _ in range(50):
                getattr(serving, chance.choice([one for one in COMMANDS if serving.can(one)]))()
                serving.go_on()
                serving.check()
            serving.drain()
    assert len(loaded) >= 20


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


def test_bugs_that_the_plain_test_has_nothing_of_are_not_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty of the bank: thirteen of the second tier, four of bytes, three of workers that die."""
    assert sum(not results.can_be_met(bug) for bug in BANK) == 20
    with pytest.raises(SystemExit) as refused:
        command.main(["store-without-fence", "cascade-without-fence"])
    assert refused.value.code == 2
    sentence = "cascade-without-fence is of a second host tier, dying workers or bytes, which the plain test has not"
    assert sentence in capsys.readouterr().err


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
    fuzzed = [kill for (_, engine), (kill, _) in kills.read().items() if engine == "fuzz"]
    assert f"met {sum(kill.killed for kill in fuzzed)} of all {len(fuzzed)}" in page
    assert len(fuzzed) == len(BANK)
    missed = {name for name, *_ in rows} & {kill.id for kill in fuzzed if not kill.killed}
    assert missed == {"store-without-fence", "reset-overlooks-abandoned-loads"}


def plain_ones(examples: int) -> list[Compared]:
    return [one for one in results.kept() if one.way == "hypothesis" and one.runs == examples]


def test_every_bug_was_looked_for_with_default_settings() -> None:
    """If this fails: python -m tests.bugs.compare --until-met"""
    looked_for = {(one.id, one.way) for one in results.kept() if one.runs in (100, 400)}
    assert looked_for == {(bug.id, way) for bug in BANK if results.can_be_met(bug) for way in ("hypothesis", "walk")}


def test_of_bugs_whose_books_agree_most_are_missed() -> None:
    tried = {one.id: one.met for one in plain_ones(results.DEFAULT_EXAMPLES)}
    met = [tried[bug.id] for bug in honest_books.BUGS if bug.id in tried]
    assert (len(met), met.count(0)) == (6, 5)


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/random-testing.md"])
def test_pages_say_how_many_bugs_the_plain_test_missed_and_name_those_that_many_examples_miss(page: str) -> None:
    text = " ".join((ROOT / page).read_text().split())
    of_default = re.search(r"it missed (\d+) of (\d+) bugs with default settings", text)
    assert of_default is not None
    tried = plain_ones(results.DEFAULT_EXAMPLES)
    missed = results.missed_with_every_seed(tried)
    assert of_default.groups() == (str(len(missed)), str(len(tried)))
    names = "(?:`[a-z-]+`(?:, | and )?)+"
    of_many = re.search(rf"(\d+) of those (\d+)\b.{{0,160}}? missed (\d+) with every seed, among them ({names})", text)
    assert of_many is not None
    again = plain_ones(results.MANY_EXAMPLES)
    met = {one.id for one in again if one.met} & {*missed}
    assert {one.id for one in again} >= {*missed}
    missed = results.missed_with_every_seed(again)
    assert of_many.groups()[:3] == (str(len(met)), str(len(met) + len(missed)), str(len(missed)))
    assert len(named := re.findall(r"`([a-z-]+)`", of_many[4])) == 6
    assert {*named} <= {*missed}
    assert results.quick(missed) == missed
