"""What reaches vLLM's scheduler of what its workers report: all, but for what is lost and what comes again."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvproof.targets.vllm.reports import Form, Reports


class ByKey(Form):
    """Stores are told as jobs divided by two, loads by the requests that they were for: as SimpleCPUOffloadConnector's
    are."""

    def loads_of(self, metadata: Any) -> Mapping[int, Sequence[str]]:
        loads: Mapping[int, Sequence[str]] = metadata
        return loads

    def blank_report(self) -> dict[int, int]:
        return {}

    def completed_in(self, report: Any) -> dict[int, int]:
        completed: dict[int, int] = report
        return completed

    def key_of(self, job: int) -> int | None:
        return None if job % 2 else job // 2

    def job_of_key(self, key: int) -> int:
        return 2 * key


def reports() -> Reports:
    """Two workers; load 3 was launched for requests x and y."""
    made = Reports(ByKey(), workers=2)
    made.launched({3: ["x", "y"]})
    return made


def test_what_is_said_arrives_unchanged() -> None:
    made = reports()
    assert made.arrived(0, {"x", "y"}, {4: 1}) == ({"x", "y"}, {4: 1})
    assert made.arrived(0, set(), None) == (set(), None)
    assert (made.repeatable(0), made.repeatable(1)) == ([8, 3], [])


def test_what_is_lost_does_not_arrive_and_everything_else_does() -> None:
    made = reports()
    made.lost[0] |= {8, 3}
    assert made.arrived(0, {"z"}, {5: 1}) == ({"z"}, {5: 1})
    assert made.arrived(0, {"x", "y", "z"}, {4: 1, 5: 1}) == ({"z"}, {5: 1})
    assert made.arrived(0, set(), {4: 1}) == (set(), {4: 1})


def test_a_report_of_nothing_else_than_what_is_lost_is_none() -> None:
    made = reports()
    made.lost[1].add(8)
    assert made.arrived(1, set(), {4: 1}) == (set(), None)


def test_what_was_reported_comes_once_more_and_only_once() -> None:
    made = reports()
    made.arrived(0, {"x", "y"}, {4: 1})
    made.again[0] |= {8, 3}
    assert made.repeatable(0) == []
    assert made.arrived(0, set(), None) == ({"x", "y"}, {4: 1})
    assert made.arrived(0, set(), None) == (set(), None)
    made.again[0].add(8)
    assert made.arrived(0, set(), {4: 1, 5: 1}) == (set(), {4: 2, 5: 1})


def test_the_latest_two_may_come_again() -> None:
    made = reports()
    made.arrived(0, set(), {1: 1})
    made.arrived(0, set(), {2: 1, 6: 1})
    assert made.repeatable(0) == [4, 12]
