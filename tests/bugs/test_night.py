"""What one engine gives up does not end the night, and is no kill."""

import pytest

from tests.bugs import night
from tests.bugs.bank import BY_ID


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
