"""Two programs, two languages, one number: the machine counted by rumur in Murphi and by kvproof's search."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kvmodel.contract import Discipline
from kvproof.scopes import SCOPES
from tests.recount import __main__ as recount
from tests.recount.model import NotCounted, missing_tools, recounted, source_of

pytestmark = pytest.mark.recount

LIVE, ALL = True, False


def need(missing: Sequence[str], required: bool) -> None:
    """Skip, or fail where they must be there, as in CI."""
    if missing and required:
        pytest.fail(f"KVPROOF_REQUIRE_RUMUR is set, and there is no {' and no '.join(missing)} (Debian packages)")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian packages)")


@pytest.fixture
def tools() -> None:
    need(missing_tools(), bool(os.environ.get("KVPROOF_REQUIRE_RUMUR")))


needs_tools = pytest.mark.usefixtures("tools")


def test_a_missing_tool_is_skipped_at_the_desk_and_an_error_where_it_is_required() -> None:
    need([], required=True)
    with pytest.raises(pytest.skip.Exception, match="not installed: rumur"):
        need(["rumur"], required=False)
    with pytest.raises(pytest.fail.Exception, match="there is no rumur and no gcc"):
        need(["rumur", "gcc"], required=True)


@needs_tools
@pytest.mark.parametrize(
    ("discipline", "scope", "blank", "states", "transitions"),
    [
        ("pinning", "s1", LIVE, 206, 531),
        ("pinning", "s1", ALL, 316, 783),
        ("pinning", "s2", LIVE, 434, 1365),
        ("fencing", "s1", LIVE, 846, 2539),
        ("fencing", "s1", ALL, 1192, 3468),
        ("fencing", "s2", LIVE, 3918, 15_427),
    ],
)
def test_both_count_the_same(
    discipline: Discipline, scope: str, blank: bool, states: int, transitions: int, tmp_path: Path
) -> None:
    sizes = SCOPES[scope]
    assert recounted(source_of(discipline, sizes, blank), tmp_path, "-O0") == (states, transitions)
    assert recount.counted(discipline, sizes, blank) == (states, transitions)


@needs_tools
def test_a_model_in_error_is_not_counted(tmp_path: Path) -> None:
    """Without the reference that a pinning load takes on its destinations, it releases what it never had."""
    line = "      if PINNING = 1 then d_touch(req[r].table[i]); end;\n"
    source = source_of("pinning", SCOPES["s1"], LIVE)
    assert source.count(line) == 1
    with pytest.raises(NotCounted, match="released twice"):
        recounted(source.replace(line, ""), tmp_path, "-O0")


def test_a_difference_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = [recount.Row("pinning", "s1", LIVE, (206, 531), (206, 531))]
    monkeypatch.setattr(recount, "missing_tools", list)
    monkeypatch.setattr(recount, "rows", lambda names: iter(found))
    assert recount.main([]) == 0
    assert "all agree" in capsys.readouterr().out
    found.append(recount.Row("fencing", "s1", LIVE, (846, 2540), (846, 2539)))
    assert recount.main([]) == 1
    assert "846/2,540            846/2,539  DIFFERENT" in capsys.readouterr().out


def test_what_the_model_lacks_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(recount, "missing_tools", list)
    assert recount.main(["s1,lookups=yes"]) == 2
    assert "the Murphi model has no lookups" in capsys.readouterr().err
    monkeypatch.setattr(recount, "missing_tools", lambda: ["rumur"])
    assert recount.main(["s1"]) == 2
    assert "not installed: rumur" in capsys.readouterr().err


def test_what_is_not_counted_to_the_end_is_no_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(names: Sequence[str]) -> Iterator[recount.Row]:
        yield recount.Row("pinning", "s1", LIVE, (206, 531), (206, 531))
        raise NotCounted("gcc failed: no space left")

    monkeypatch.setattr(recount, "missing_tools", list)
    monkeypatch.setattr(recount, "rows", broken)
    assert recount.main([]) == 2
    assert capsys.readouterr().err == "recount: gcc failed: no space left\n"
