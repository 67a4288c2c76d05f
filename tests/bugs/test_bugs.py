"""Of every planted bug the shortest way to the property that it breaks is stored, and replays: with the bug it fails,
without it it does not. That the exhaustive engines find it, and nothing shorter, is what `make bugs` asserts."""

from dataclasses import replace

import pytest

from kvproof.targets.naming import COUNTS
from kvproof.targets.registry import load
from kvproof.trace import itf
from kvspecs.catalogue import NAMES
from tests.bugs import honest_books
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug, report_of, variant_of
from tests.bugs.hunt import replay, replay_with
from tests.bugs.planting import SOUND, DoesNotApply, mutated
from tests.bugs.reports import REPORTS
from tests.bugs.traces import DEVICES, FOLDER, trace_file, trace_of


@pytest.mark.parametrize("bug", BANK, ids=lambda bug: bug.id)
def test_its_trace_breaks_its_property_at_the_last_command(bug: Bug) -> None:
    assert len(itf.read(trace_file(bug)).commands) == bug.commands
    assert replay_with(bug) == (bug.property, bug.commands)


@pytest.mark.parametrize("bug", BANK, ids=lambda bug: bug.id)
def test_its_trace_is_accounted_for_without_it(bug: Bug) -> None:
    path = trace_file(bug)
    trace = itf.read(path)
    assert trace == trace_of(bug, trace.commands), f"write it anew: python -m tests.bugs --record {bug.id}"
    run = replay(variant_of(bug.variant, bug.discipline), load("kvoffload", DEVICES[bug.engine]), trace.commands)
    assert run.divergence is None
    assert run.done == bug.commands


def test_the_stored_traces_are_those_of_the_bank() -> None:
    assert sorted(FOLDER.iterdir()) == sorted(trace_file(bug) for bug in BANK)


def test_every_property_is_broken_by_a_bug_of_the_implementation() -> None:
    assert sorted({bug.property for bug in BANK}) == sorted(NAMES)


def test_the_bank_has_the_bugs_of_many_public_reports() -> None:
    reported = [report for bug in BANK if (report := report_of(bug)) is not None]
    assert {report.link for report in reported} == set(REPORTS)
    assert {report.same_as for report in reported} <= {"", *REPORTS}
    distinct = {report.bug for report in reported}
    assert (len(reported), len(distinct)) == (130, 77)  # at least 60 mutants from at least 45 reports (issue 5)


def test_of_two_twins_a_count_gives_away_the_one_whose_books_disagree() -> None:
    twins = [(BY_ID[bug.twin], bug) for bug in BANK if bug.twin]
    assert {one.property for one, _ in twins} == {"owners-account-for-references"}
    assert not {bug.property for _, bug in twins} & set(COUNTS)
    assert len(twins) == 9
    assert {bug.id for _, bug in twins} > {bug.id for bug in honest_books.BUGS}


def test_every_kind_of_code_and_both_disciplines_have_bugs() -> None:
    assert {bug.kind for bug in BANK} == {
        "pool",
        "connector",
        "completion",
        "store",
        "scheduler",
        "ordering",
        "device",
        "event",
    }
    assert {bug.discipline for bug in BANK} == {"pinning", "fencing"}


@pytest.mark.parametrize("bug", BANK, ids=lambda bug: bug.id)
def test_it_changes_one_place_that_compiles(bug: Bug) -> None:
    source = mutated(bug)
    assert source != (SOUND / bug.file).read_text()
    compile(source, bug.file, "exec")
    assert max(bug.old.count("\n"), bug.new.count("\n")) < 10


def test_a_bug_whose_place_is_gone_is_an_error() -> None:
    with pytest.raises(DoesNotApply, match="0 times"):
        mutated(replace(BY_ID["ids-rewound"], old="a line that nobody wrote"))
    with pytest.raises(DoesNotApply, match="times; it must be there once"):
        mutated(replace(BY_ID["ids-rewound"], old="self"))
