"""What README.md, and the pages beside it, say of the bank is what is kept of it."""

from tests.bugs import kept, rules
from tests.bugs.bank import BANK
from tests.bugs.bug import report_of
from tests.bugs.lies import LIES
from tests.bugs.matrix import by_kind
from tests.bugs.planting import ROOT

SPELT = {
    "ordering": "ordering (waits, fences)",
    "device": "device (real bytes)",
    "adapter": "lies of the adapter",
    "rule": "rules of the machine",
}


def test_the_table_of_kinds_is_that_of_the_kill_matrix() -> None:
    exhaustive = {name: kill for (name, engine), (kill, _) in kept.read().items() if engine == kept.EXHAUSTIVE}
    wanted = [exhaustive[name] for name in (*(bug.id for bug in BANK), *(lie.id for lie in LIES), *rules.BY_NAME)]
    lines = [
        f"| {SPELT.get(kind, kind)} | {killed} of {of} | {middle:.2f} s |"
        for kind, killed, of, middle in by_kind(wanted)
    ]
    assert "\n".join(lines) in (ROOT / "README.md").read_text()


def test_the_most_that_a_kill_takes_is_that_of_the_kill_matrix() -> None:
    most = max(kill.seconds for (_, engine), (kill, _) in kept.read().items() if engine == kept.EXHAUSTIVE)
    assert f"(the most is {most:.1f} s)" in (ROOT / "README.md").read_text()


def test_the_numbers_of_bugs_are_those_of_the_bank() -> None:
    reports = [report for bug in BANK if (report := report_of(bug)) is not None]
    said = " ".join((ROOT / "README.md").read_text().split())
    whole = len(BANK) + len(LIES) + len(rules.BY_NAME)
    distinct = len({report.bug for report in reports})
    assert f"{whole} planted bugs" in said
    assert f"{len(BANK)} of kvoffload, {len(reports)} of them from {distinct} public reports" in said
    assert f"{len(LIES)} lies of its adapter, {len(rules.BY_NAME)} bugs of protocol" in said
    assert f"[{whole} planted bugs](kill-matrix.md)" in (ROOT / "docs/index.md").read_text()
    of_bank = (ROOT / "tests/bugs/README.md").read_text()
    assert f"\n{len(reports)} of the {len(BANK)} bugs are taken from {distinct} public reports" in of_bank
