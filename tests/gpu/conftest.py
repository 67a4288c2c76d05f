"""Skips everything here where there is no CUDA device, and prints the table of rates at the end."""

from pathlib import Path

import pytest
from tests.gpu.devices import why_not

HERE = Path(__file__).parent
RATES: list[str] = []
"""Lines that `test_throughput` has measured."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    reason = why_not() if ours else ""
    if reason:
        for item in ours:
            item.add_marker(
                pytest.mark.skip(reason=f"no GPU to run on ({reason}); `make gpu` is for a machine with one")
            )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RATES:
        terminalreporter.section("rates")
        for line in RATES:
            terminalreporter.write_line(line)


@pytest.fixture
def rates() -> list[str]:
    return RATES
