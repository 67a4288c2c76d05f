"""The pages of the reference say what the code says."""

import dataclasses
import json
import re

import pytest

from kvproof import verdict
from kvproof.bounded import MAX_DEPTH
from kvproof.cli import VERBS
from kvproof.report.json_report import to_json
from kvproof.trace import itf, store
from kvproof.trace.trace import MAX_COMMANDS, Trace
from kvproof.verdict import Result, Verdict
from kvspecs.catalogue import NAMES
from kvspecs.proof.obligations import properties
from tests.docs.reference import FOLDER, PAGES
from tests.docs.typing_page import ROOT


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run python -m tests.docs.reference"


def test_nothing_is_missing() -> None:
    command_line = (FOLDER / "command-line.md").read_text()
    assert re.findall(r"^## kvproof (\w+)$", command_line, re.MULTILINE) == list(VERBS)
    assert "| `--budget TIME` |" in command_line
    page = (FOLDER / "properties.md").read_text()
    assert re.findall(r"^### (\S+)$", page, re.MULTILINE) == list(NAMES)
    owned = "[`device-owned`](formulas.md#device-owned), [`host-owned`](formulas.md#host-owned)"
    assert f"Proved for all sizes: {owned}." in page
    formulas = (FOLDER / "formulas.md").read_text()
    assert "def cached_on_device(w: Vocabulary, s: State, d: Term, x: Term) -> Term:" in formulas
    linked = set(re.findall(r"formulas\.md#([\w-]+)", page))
    assert linked <= set(re.findall(r"^### (\S+)$", formulas, re.MULTILINE))


def test_every_page_proves_as_many_properties() -> None:
    many = len(properties())
    assert f"the {many} properties that are" in (ROOT / "docs/explanation/limits.md").read_text()
    assert f"proves {many} safety properties" in (ROOT / "docs/proofs.md").read_text()
    assert f"{many}/{many} safety" in (ROOT / "README.md").read_text()


def test_results_names_every_field_and_status() -> None:
    page = (FOLDER / "results.md").read_text()
    report = json.loads(to_json([Result("e", "t", None, "s", None, Verdict.PASSED, 0.0)]))
    for field in (*report, *report["results"][0]):
        assert f"`{field}`" in page
    statuses = {verdict.exit_status([Result("e", "t", None, "s", None, v, 0.0)]) for v in Verdict}
    assert statuses == {0, 1, 2, 3, 4}
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == ["0", "1", "2", "3", "4", "130"]
    assert all(f"`{name}`" in page for name in store.FILES)


def test_traces_names_every_field_and_bound() -> None:
    page = (FOLDER / "traces.md").read_text()
    for field in dataclasses.fields(Trace):
        assert field.name == "commands" or f"`{field.name}`" in page
    assert f"{itf.MAX_BYTES // 2**20} MiB, {MAX_COMMANDS:,} commands, nesting of {MAX_DEPTH}" in page
    assert f"{itf.MAX_TEXT} characters" in page
    assert f"{itf.MAX_CONTAINERS:,} lists and records, {itf.MAX_QUOTES:,}" in page


def test_the_site_has_every_page() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"- (\S+\.md)$", settings, re.MULTILINE))
    assert listed == {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
