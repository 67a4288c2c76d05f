"""The pytest plugin: what conformance tests find is kept, and what is kept is tried first. Under xdist too.

`--kvproof-budget TIME` and `--kvproof-replay ID` are for all conformance tests of a run. Nothing heavy is imported
until there is one. `--kvproof-watch` is for all other tests (`kvproof.watched_tests`).
"""

import sys
from typing import Any

import pytest

from kvproof.budget import parse_time
from kvproof.trace import store
from kvproof.usage import BadUsage

UNWATCHED = "kvproof_unwatched"
"""The marker of tests that reach below the engine's own methods, or lie to it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kvproof", "conformance tests of kvproof")
    group.addoption(
        "--kvproof-budget",
        metavar="TIME",
        help="how long each conformance test may take, as in 60s, 2m: one that is cut short fails, and says so",
    )
    group.addoption(
        "--kvproof-replay",
        metavar="ID",
        help="try only this kept failure (or the beginning of its id), in the tests of its target",
    )
    group.addoption(
        "--kvproof-watch",
        action="store_true",
        help="record every kvoffload engine that a test makes: a test whose log the contract does not explain fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    budget: str | None = config.getoption("--kvproof-budget")
    replay: str | None = config.getoption("--kvproof-replay")
    try:
        if budget is not None:
            parse_time("--kvproof-budget", budget)
    except BadUsage as error:
        raise pytest.UsageError(str(error)) from None
    config.addinivalue_line("markers", f"{UNWATCHED}: --kvproof-watch leaves this test alone")
    if config.getoption("--kvproof-watch"):
        from kvproof.watched_tests import WatchedTests

        config.pluginmanager.register(WatchedTests(config), "kvproof-watch")
    root = store.default_root(config.rootpath)
    if replay is not None and not any(identifier.startswith(replay) for identifier in store.ids(root)):
        raise pytest.UsageError(f"--kvproof-replay {replay!r:.40}: no such failure is kept in {root}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of targets with kept failures come first."""
    if "kvproof.conforming" not in sys.modules:
        return
    from kvproof import conforming
    from kvproof.trace import itf
    from kvproof.trace.trace import BadTrace

    budget: str | None = config.getoption("--kvproof-budget")
    conforming.session = conforming.Session(
        root=store.default_root(config.rootpath),
        budget_s=None if budget is None else parse_time("--kvproof-budget", budget),
        replay=config.getoption("--kvproof-replay"),
    )
    failing: set[str] = set()
    for identifier in store.ids(conforming.session.root):
        try:
            failing.add(itf.read(conforming.session.root / identifier / store.TRACE_FILE).target)
        except BadTrace:
            continue  # the test that would try it says so
    items.sort(key=lambda item: _target_of(item) not in failing)


def pytest_unconfigure(config: pytest.Config) -> None:
    if "kvproof.conforming" in sys.modules:
        from kvproof import conforming

        conforming.session = None


def _target_of(item: pytest.Item) -> Any:
    return getattr(getattr(item, "cls", None), "kvproof_target", None)
