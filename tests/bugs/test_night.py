"""What one engine gives up does not end the night, and is no kill; what was done is not done again."""

import pytest

from tests.bugs import kept, night
from tests.bugs.bank import BY_ID
from tests.bugs.matrix import Kill


@pytest.mark.parametrize("engine", ["fuzz", "suite"])
def test_what_is_given_up_is_not_killed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "LIMIT", 0.05)
    kill = night.ENGINES[engine](BY_ID["step-leaks"], engine)
    assert (kill.killed, kill.property) == (False, "")


def test_the_first_test_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "SUITE", ("tests/impl/test_block_pool.py",))
    monkeypatch.setattr(night, "NOT_ASKED", ())
    kill = night.by_suite(BY_ID["pool-release-head-first"], "suite")
    assert kill.killed
    assert kill.property.startswith("tests/impl/test_block_pool.py::test_")


def test_a_suite_that_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "SUITE", ("tests/impl/nowhere.py",))
    with pytest.raises(RuntimeError, match="the suite did not run with step-leaks"):
        night.by_suite(BY_ID["step-leaks"], "suite")


def test_a_night_goes_on_where_the_last_one_stopped() -> None:
    missed = Kill("step-leaks", "scheduler", "fuzz", "pinning", False, "", 0, 0, 1.0)
    known: kept.Known = {("step-leaks", "fuzz"): (missed, "2026-11-30")}
    assert night.left("fuzz", ["step-leaks", "ids-rewound"], known) == ["ids-rewound"]
    assert night.left("soak", ["step-leaks"], known) == ["step-leaks"]
    assert len(night.left("fuzz", [], known)) == len(BY_ID) - 1


def test_what_was_proved_is_not_proved_again() -> None:
    first, *others = night.left("prove", [], {})
    done = Kill(first, "specification", "prove", "pinning Admit, all sizes", True, "", 0, 0, 1.0)
    assert night.left("prove", [], {(first, kept.EXHAUSTIVE): (done, "2026-11-30")}) == others
    assert night.left("prove", ["step-leaks"], {}) == []
