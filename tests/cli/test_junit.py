"""JUnit XML and the summary of a GitHub step say what the exit status says."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import row

from kvproof.report.junit import to_junit
from kvproof.report.step_summary import add_to_step_summary
from kvproof.verdict import Result, Verdict


def result(verdict: Verdict, detail: str = "") -> Result:
    return Result("conform", "kvoffload", "pinning", "s1", None, verdict, 1.5, detail=detail)


@pytest.mark.parametrize(
    ("verdict", "children", "counts"),
    [
        (Verdict.PROVED, ["system-out"], ("0", "0", "0")),
        (Verdict.PASSED, ["system-out"], ("0", "0", "0")),
        (Verdict.KNOWN, ["system-out"], ("0", "0", "0")),
        (Verdict.FIXED, ["system-out"], ("0", "0", "0")),
        (Verdict.REFUTED, ["failure"], ("1", "0", "0")),
        (Verdict.ERROR, ["error"], ("0", "1", "0")),
        (Verdict.UNDETERMINED, ["error"], ("0", "1", "0")),
        (Verdict.COUNTEREXAMPLE_TO_INDUCTION, ["error"], ("0", "1", "0")),
        (Verdict.SKIPPED, ["skipped"], ("0", "0", "1")),
    ],
)
def test_each_verdict_has_its_element(verdict: Verdict, children: list[str], counts: tuple[str, str, str]) -> None:
    suite = ElementTree.fromstring(to_junit([result(verdict, "why")]))
    (case,) = suite
    assert [child.tag for child in case] == children
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == counts
    assert suite.get("tests") == "1"
    assert (case.get("classname"), case.get("name")) == ("kvproof.kvoffload.pinning", "conform s1")


def test_what_a_target_says_is_neither_markup_nor_broken_xml() -> None:
    said = to_junit([result(Verdict.ERROR, 'died: <b attr="x"> & \x00\x1b[31m ]]>')])
    (case,) = ElementTree.fromstring(said)
    assert case[0].get("message") == 'died: <b attr="x"> & \ufffd\ufffd[31m ]]>'


def test_the_flag_writes_a_file(folder: Path, cli, planned) -> None:
    planned(row("conform ledger", "refuted"))
    ran = cli("check", "--discipline", "pinning", "--junit", "report.xml")
    assert ran.status == 1
    suite = ElementTree.parse(folder / "report.xml").getroot()
    assert suite.get("failures") == "2"
    failure = suite[0].find("failure")
    assert failure is not None
    assert failure.get("message", "").startswith("Reset released device block d0")
    assert failure.text is not None
    assert "REFUTED owners-account-for-references" in failure.text
    assert failure.text.rstrip().endswith("Replay: kvproof replay 9abbd5")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--junit", "-"), "--junit takes a file, and not -"),
        (("--junit", "nowhere/x.xml"), "report 'nowhere/x.xml' cannot be written"),
        (("--junit", "a", "--junit", "b"), "--junit is given twice"),
    ],
)
def test_bad_destinations(folder: Path, cli, words: tuple[str, ...], sentence: str) -> None:
    ran = cli("check", *words)
    assert ran.status == 2
    assert sentence in ran.err


def test_the_step_summary_has_the_screen(folder: Path, cli, planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    planned(row("conform ledger", "refuted"))
    ran = cli("check", "--discipline", "pinning")
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("### kvproof\n\n```\nkvproof 0.1.0")
    assert "REFUTED owners-account-for-references" in text
    assert text.count("```") == 4
    assert ran.status == 1


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    folder: Path, cli, planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder))
    planned(row("conform ledger", "refuted"))
    ran = cli("check", "--discipline", "pinning")
    assert ran.status == 1
    assert "the step summary cannot be written" in ran.err


def test_a_fence_is_longer_than_any_in_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    add_to_step_summary("a ```` b", ())
    assert (folder / "summary.md").read_text(encoding="utf-8") == "### kvproof\n\n`````\na ```` b\n`````\n"
