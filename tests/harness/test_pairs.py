"""Every two modes are searched together, part of each other, sampled by fuzz, or refused by name."""

from collections import Counter
from itertools import combinations

import pytest
from tests.harness.conftest import Cli

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvproof.engines import fuzz
from kvproof.job import Job
from kvproof.pairs import Pair, Treatment, pairs
from kvproof.rows import DYING
from kvproof.scopes import SCOPES, name_of, parse_scope
from kvproof.search.modes import MODES, Variant, switched_on, variants
from kvproof.search.narrow import variants_of
from kvproof.verdict import Verdict

PAIRS = pairs()
REFUSED = [pair for pair in PAIRS if pair.treatment is Treatment.REFUSED]
BASES = [(name, discipline) for name in ("s1", "s2") for discipline in DISCIPLINES]


def of(treatment: Treatment) -> list[Pair]:
    return [pair for pair in PAIRS if pair.treatment is treatment]


def with_mode(mode: str, name: str, discipline: Discipline) -> Variant:
    return MODES[mode](Variant(name, SCOPES[name], Contract(discipline)))


def test_there_is_no_pair_of_which_nothing_is_said() -> None:
    assert [(pair.one, pair.other) for pair in PAIRS] == list(combinations(MODES, 2))
    assert Counter(pair.treatment for pair in PAIRS) == {
        Treatment.SEARCHED: 101,
        Treatment.SAMPLED: 154,
        Treatment.PART: 15,
        Treatment.REFUSED: 6,
    }


@pytest.mark.parametrize(("name", "discipline"), BASES)
def test_what_is_searched_has_a_variant_with_both_modes_on(name: str, discipline: Discipline) -> None:
    found = [
        set(variant.name.split("+")[1:]) & set(switched_on(variant.contract, variant.scope))
        for variant in variants(name, SCOPES[name], Contract(discipline), pairs=True)
    ]
    searched = [{pair.one, pair.other} for pair in of(Treatment.SEARCHED)]
    assert [both for both in searched if not any(both <= on for on in found)] == []
    assert len([on for on in found if len(on) > 1]) == 80


@pytest.mark.parametrize(("name", "discipline"), BASES)
def test_what_is_part_of_a_mode_is_on_where_that_is_searched_alone(name: str, discipline: Discipline) -> None:
    for pair in of(Treatment.PART):
        whole = pair.why.partition(" ")[0]
        variant = with_mode(whole, name, discipline)
        assert whole in (pair.one, pair.other)
        assert {pair.one, pair.other} <= set(switched_on(variant.contract, variant.scope))
        assert whole in [
            each.name.rpartition("+")[2] for each in variants(name, SCOPES[name], Contract(discipline), False)
        ]


@pytest.mark.parametrize("pair", REFUSED, ids=lambda pair: pair.name)
def test_what_is_refused_is_refused_by_name_with_status_2(pair: Pair, cli: Cli) -> None:
    variant = MODES[pair.other](with_mode(pair.one, "s1", "pinning"))
    flags = [
        word
        for field in ("output_from", "depth", "reports", "deadline")
        for word in (f"--{field.replace('_', '-')}", str(getattr(variant.contract, field)))
    ]
    ran = cli("explore", "--scope", name_of(variant.scope), "--discipline", "pinning", *flags)
    assert (ran.status, ran.out) == (2, "")
    assert pair.why in ran.err
    assert ran.err.count("\n") == 1


def test_what_is_refused_is_said_of_both_modes() -> None:
    words = {
        "first": "output from the first",
        "marks": "reports marks",
        "declared": "deaths",
        "second": "second_blocks",
    }
    for pair in REFUSED:
        assert words.get(pair.one, pair.one) in pair.why
        assert words.get(pair.other, pair.other) in pair.why


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("text", DYING)
def test_fuzz_drives_a_worker_that_dies_among_every_other_fault(text: str, discipline: Discipline) -> None:
    name, scope = parse_scope(text)
    job = Job(
        "fuzz", "kvoffload", discipline, name, scope, Contract(discipline), device="ledger", options={"commands": 600}
    )
    result = fuzz.run(job, lambda words: None, lambda: False)
    assert result.verdict is Verdict.PASSED
    assert all(result.counts[f"action:{fault}"] for fault in ("Die", "ForgeReport", "FreeTwice"))


@pytest.mark.parametrize(("name", "discipline"), BASES)
def test_check_takes_each_listed_pair_with_a_worker_that_dies(name: str, discipline: Discipline) -> None:
    listed = variants_of(Variant(name, SCOPES[name], Contract(discipline)), "listed")
    found = [variant for variant in listed if {"deaths", "declared"} & set(variant.name.split("+"))]
    assert [variant.name.rpartition("declared+")[2].rpartition("deaths+")[2] for variant in found] == [
        *("depth", "decode", "lookups", "lazy", "losses", "failures", "resets", "tiers", "second", "depth")
    ]
    assert all("deaths" in switched_on(variant.contract, variant.scope) for variant in found)


def test_the_list_says_what_becomes_of_each(cli: Cli) -> None:
    lines = cli("list", "pairs").out.splitlines()
    assert len(lines) == 276 + 1
    first = next(line for line in lines if line.startswith("lazy+first "))
    assert " ".join(first.split()) == "lazy+first searched at s1 and s2, by check --all"
    early = next(line for line in lines if line.startswith("lazy+deaths "))
    where = "at s1 and s2, by check with few commands beside their own, and whole by check --all"
    assert " ".join(early.split()) == f"lazy+deaths searched {where}"
    narrow = next(line for line in lines if line.startswith("lookups+second "))
    assert " ".join(narrow.split()) == f"lookups+second searched {where}"
    assert lines[-1] == "276 pairs of modes: 101 searched, 154 sampled, 6 refused, 15 part"
