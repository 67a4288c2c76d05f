"""Failures are kept under their ids, found by the beginning of one, and nothing outside of the folder is touched."""

from pathlib import Path

import pytest

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.trace import itf, store
from kvproof.trace.trace import BadTrace, Trace
from kvproof.verdict import Verdict

TRACE = Trace(Contract("pinning"), Scope(2, 1, 1, ("ab",)), "s1", "kvoffload", (), Verdict.REFUTED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / ".kvproof" / "failures"
    for identifier in ("7c1f9e", "7c2000", "abcdef"):
        store.save(root, identifier, TRACE, "report\n")
    return root


def test_by_id_by_its_beginning_by_file_and_by_folder(root: Path) -> None:
    path = root / "7c1f9e" / store.TRACE_FILE
    for name in ("7c1f9e", "7c1", str(path), str(path.parent)):
        assert store.resolve(name, root) == path
        assert itf.read(path) == TRACE
    assert (path.parent / store.REPORT_FILE).read_text() == "report\n"


def test_the_beginning_of_several_is_refused(root: Path) -> None:
    with pytest.raises(BadTrace, match=r"beginning of 2 failures \(7c1f9e, 7c2000\)"):
        store.resolve("7c", root)


def test_a_whole_id_wins_over_ids_that_it_begins(root: Path) -> None:
    store.save(root, "7c", TRACE, "")
    assert store.resolve("7c", root) == root / "7c" / store.TRACE_FILE


def test_saving_again_replaces(root: Path) -> None:
    store.save(root, "7c1f9e", TRACE, "newer\n")
    assert sorted(path.name for path in (root / "7c1f9e").iterdir()) == [store.REPORT_FILE, store.TRACE_FILE]
    assert (root / "7c1f9e" / store.REPORT_FILE).read_text() == "newer\n"


def test_what_is_beside_a_trace_tells_of_that_trace(root: Path) -> None:
    folder = root / "7c1f9e"
    (folder / "notes.txt").write_text("mine")
    store.save(root, "7c1f9e", TRACE, "report\n", {store.TIMELINE_FILE: "<p>", store.VERDICT_FILE: "{}"})
    assert (folder / store.TIMELINE_FILE).read_text() == "<p>"
    store.save(root, "7c1f9e", TRACE, "report\n", {store.VERDICT_FILE: "{}"})
    assert sorted(path.name for path in folder.iterdir()) == [
        "notes.txt",
        "report.txt",
        "trace.itf.json",
        "verdict.json",
    ]


def test_pruning_removes_what_is_ours(root: Path, tmp_path: Path) -> None:
    (root / "7c2000" / "notes.txt").write_text("mine")
    elsewhere = tmp_path / "abc" / store.TRACE_FILE
    assert store.prune(root / "7c1f9e" / store.TRACE_FILE)
    assert store.prune(root / "7c2000" / store.TRACE_FILE)
    assert not store.prune(root / "abcdef" / "other.json")
    assert store.ids(root) == ("7c2000", "abcdef")
    assert [path.name for path in (root / "7c2000").iterdir()] == ["notes.txt"]
    assert not store.prune(elsewhere.parent.parent / "Abc" / store.TRACE_FILE)


@pytest.mark.parametrize("identifier", ["", ".", "..", "../x", "7c/../..", "7C1F9E", "a" * 65, "7c1f9e\n"])
def test_an_id_never_leads_out_of_the_folder(root: Path, identifier: str) -> None:
    before = sorted(root.parent.parent.rglob("*"))
    with pytest.raises(ValueError, match="is no id"):
        store.save(root, identifier, TRACE, "")
    assert sorted(root.parent.parent.rglob("*")) == before


def test_links_are_neither_followed_nor_listed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "beef").symlink_to(elsewhere)
    assert "beef" not in store.ids(root)
    with pytest.raises(BadTrace, match="does not exist"):
        store.resolve("beef", root)
    with pytest.raises(OSError, match="symbolic link"):
        store.save(root, "beef", TRACE, "")
    assert list(elsewhere.iterdir()) == []


def test_an_empty_store(tmp_path: Path) -> None:
    assert store.ids(tmp_path / "none") == ()
    with pytest.raises(BadTrace, match="does not exist; name a file, or one of the ids below"):
        store.resolve("7c1f9e", tmp_path / "none")
