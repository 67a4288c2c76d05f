"""The table in the terminal."""

import pytest

from kvproof.report.story_table import lanes_named, story_table
from tests.desk import stories


def test_each_step_says_what_it_changed_and_the_last_one_where_the_two_part() -> None:
    assert story_table(stories.refuted(), 100).splitlines() == [
        "toy, pinning, s1",
        "  1 submit x",
        "  2 schedule   admit x: d0",
        "      x: WAITING -> RUNNING   d0: free -> x",
        "> 3 launch   job 1",
        "        contract  d0: 2 references, owned by x, job 1",
        "      ! target    d0: 1 reference, owned by x, job 1",
        "owners-account-for-references: Device block 0 counts 1 reference and has 2 owners (x, job 1). Two",
        "facts contradict each other: after these commands the contract has 'd0 references 2: x, job 1', and",
        "the target has 'd0 references 1: x'. Rule: kvmodel/rules/launch.py.",
    ]


def test_only_what_is_about_one_thing() -> None:
    story = stories.refuted()
    assert story_table(story, 120, lanes_named(story, ["job 1"])).splitlines()[:3] == [
        "toy, pinning, s1",
        "  ... 2 that change nothing of it",
        "> 3 launch   job 1",
    ]


def test_a_worker_names_all_its_streams_and_a_job_no_other_that_begins_so() -> None:
    story = stories.refuted()
    assert lanes_named(story, ["w0", "job 1"]) == {"w0 store", "job 1"}


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match="d7"):
        lanes_named(stories.refuted(), ["d0", "d7"])


@pytest.mark.parametrize("width", [1, 40, 60, 80])
def test_lines_fit_a_narrow_terminal(width: int) -> None:
    for story in (stories.refuted(), stories.refuted()._replace(contract=None, target=None, facts=())):
        assert max(map(len, story_table(story, width).splitlines())) <= max(width, 24)
