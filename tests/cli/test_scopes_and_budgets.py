"""What the text forms of scopes and budgets stand for."""

import pytest

from kvmodel.errors import BadScope
from kvproof import plan
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser, add_selection, selection
from kvproof.scopes import SCOPES, describe_scope, name_of, parse_scope


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("2m", 120.0), ("500ms", 0.5), ("1.5h", 5400.0), ("0.25s", 0.25)]
)
def test_budget(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


def test_a_name_alone_is_the_named_scope() -> None:
    assert {name: parse_scope(name) for name in SCOPES} == {name: (name, SCOPES[name]) for name in SCOPES}


def test_sizes_that_differ() -> None:
    name, scope = parse_scope("s3,host=3,lookups=yes,prompts=ab+ac+ad,meanings=invalidate+evict,decode=1")
    assert name == "s3,host=3,lookups=yes,prompts=ab+ac+ad,meanings=invalidate+evict,decode=1"
    assert scope == SCOPES["s3"]._replace(
        host_blocks=3, lookups=True, prompts=("ab", "ac", "ad"), meanings=("invalidate", "evict"), decode=1
    )
    assert describe_scope(scope) == "3/3/1 ab,ac,ad resets 1 invalidate+evict decode 1 lookups"


def test_what_each_request_decodes_has_its_place_even_where_it_is_nothing() -> None:
    _, scope = parse_scope("s3,decoded=+c")
    assert scope.decoded == ("", "c")
    assert name_of(scope) == "s3,decoded=+c"
    assert describe_scope(scope) == "3/2/1 ab,ac resets 1 decoded +c"


def test_every_field_of_a_scope_can_be_changed() -> None:
    _, scope = parse_scope(
        "s1,device=9,host=8,workers=7,prompts=a,decode=1,resets=2,meanings=evict,survivors=yes,tiers=device+host,"
        "aborts=no,preempts=no,lookups=yes,stops=yes,duplicates=1,losses=2,forgeries=3,double_frees=4,failures=5,"
        "partial_failures=6,expiries=7,lazy_window=8,repeats=yes,window=9,second=2,deaths=3"
    )
    modes = (("evict",), True, ("device", "host"), False, False, True, True)
    assert tuple(scope) == (9, 8, 7, ("a",), 1, 2, *modes, 1, 2, 3, 4, 5, 6, 7, 8, True, 9, 2, 3, ())
    assert describe_scope(scope).startswith("9/8/7 a resets 2 evict of device+host decode 1 survivors no aborts")


def test_the_named_scopes_make_sense_and_differ() -> None:
    assert len(set(SCOPES.values())) == len(SCOPES)
    for scope in SCOPES.values():
        assert describe_scope(scope)


@pytest.mark.parametrize("text", ["s1,", "s1,,host=2", "s1 host=2", "s1,host", "s1,host=", "s1,host=٣", "S1"])
def test_no_scope(text: str) -> None:
    with pytest.raises(BadScope):
        parse_scope(text)


@pytest.mark.parametrize(
    ("words", "modes"),
    [
        ([], {("eager", "all", 1), ("eager", "first", 1)}),
        (["--depth", "2"], {("eager", "all", 2), ("eager", "first", 2)}),
        (["--depth", "1", "--store-mode", "lazy", "--output-from", "first"], {("lazy", "first", 1)}),
    ],
)
def test_modes_that_are_asked_for_are_those_of_every_job(words: list[str], modes: set[tuple[str, str, int]]) -> None:
    parser = Parser("explore", "")
    add_selection(parser)
    jobs = plan.build(selection(parser.read(words), ("explore",))).jobs
    assert {job.contract[1:4] for job in jobs} == modes
