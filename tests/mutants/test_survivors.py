"""What is said of survivors is checked: none is unknown, and no entry outlives its survivor."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import asked_of, said, table
from tests.mutants.judging import CONTROL_PLANE, PREDICATES, ROOT, Judged
from tests.mutants.mutant import Mutant
from tests.mutants.survivors import BadEntry, Known, account, as_toml, known, scores


def judged(module: str, now: str, outcome: str) -> Judged:
    mutant = Mutant(f"{module}.x_f__mutmut_1", module, "f", "return a", now)
    return Judged(mutant, outcome, "test" if outcome == "killed" else None)


KILLED = judged("m", "return b", "killed")
SURVIVED = judged("m", "return c", "survived")
NOT_CALLED = judged("n", "return d", "not called")
HANGS = judged("n", "return e", "timeout")
ALL = (KILLED, SURVIVED, NOT_CALLED, HANGS)


def test_a_survivor_that_nobody_knows_is_told_with_the_lines_that_differ() -> None:
    nothing = Known({}, frozenset())
    found = account(ALL, nothing)
    assert found.unknown == (SURVIVED, NOT_CALLED)
    assert found.stale == ()
    assert list(said(found, nothing)) == [
        "\nsurvived: m, f",
        "  - return a",
        "  + return c",
        "\nnot called: n, f",
        "  - return a",
        "  + return d",
    ]


def test_known_survivors_are_not_told() -> None:
    found = account(ALL, Known({SURVIVED.mutant.key: "It is the same."}, frozenset([NOT_CALLED.mutant.key])))
    assert (found.unknown, found.stale) == ((), ())


def test_what_is_explained_and_was_not_tried_is_as_it_was() -> None:
    skipped = judged("m", "return c", "not tried")
    listed = Known({skipped.mutant.key: "It is the same."}, frozenset())
    assert account([KILLED, skipped], listed) == account([KILLED, SURVIVED], listed) == ((), ())
    assert [tuple(row) for row in scores([KILLED, skipped], listed)] == [("m", 2, 1, 1), ("all", 2, 1, 1)]


def test_an_entry_of_a_mutant_that_is_killed_or_gone_has_to_go() -> None:
    gone = ("n", "g", "x", "y")
    listed = Known({KILLED.mutant.key: "It is the same."}, frozenset([gone]))
    found = account(ALL, listed)
    assert found.stale == (KILLED.mutant.key, gone)
    assert list(said(found, listed))[-2:] == [
        "\nequivalent.toml: m, f: no survivor any more, take the entry out: 'return a' -> 'return b'",
        "\nopen.toml: n, g: no survivor any more, take the entry out: 'x' -> 'y'",
    ]


def test_entries_of_modules_that_were_not_judged_are_left_alone() -> None:
    assert account([KILLED], Known({}, frozenset([("n", "g", "x", "y")]))).stale == ()


def test_the_score_leaves_out_what_is_explained_and_nothing_else() -> None:
    rows = scores(ALL, Known({SURVIVED.mutant.key: "It is the same."}, frozenset([NOT_CALLED.mutant.key])))
    assert [tuple(row) for row in rows] == [("m", 2, 1, 1), ("n", 2, 1, 0), ("all", 4, 2, 1)]
    assert [(row.before, round(row.after, 1)) for row in rows] == [(50.0, 100.0), (50.0, 50.0), (50.0, 66.7)]
    assert list(table(rows))[-1].split() == ["all", "4", "2", "1", "50.0", "%", "66.7", "%"]


def test_entries_are_read_as_they_are_written(tmp_path: Path) -> None:
    equivalent, waiting = tmp_path / "equivalent.toml", tmp_path / "open.toml"
    key = ("m", "f", 'raise E("x\\n")\nelse:', "")
    waiting.write_text(as_toml([key, key]))
    equivalent.write_text('[[mutant]]\nmodule = "m"\nfunction = "f"\nwas = "a"\nnow = "b"\nwhy = "It is the same."\n')
    assert known(equivalent, waiting) == Known({("m", "f", "a", "b"): "It is the same."}, frozenset([key]))


@pytest.mark.parametrize(
    ("equivalent", "waiting", "sentence"),
    [
        ('module = "m"\nfunction = "f"\nwas = "a"\nnow = "b"', "", "f of m needs a sentence in `why`"),
        ('module = "m"\nfunction = "f"\nwas = "a"\nwhy = "Same."', "", "equivalent.toml: an entry lacks 'now'"),
        (
            'module = "m"\nfunction = "f"\nwas = "a"\nnow = "b"\nwhy = "Same."',
            'module = "m"\nfunction = "f"\nwas = "a"\nnow = "b"',
            "open.toml: f of m is in equivalent.toml too: 'b'",
        ),
    ],
)
def test_a_bad_entry_is_refused(tmp_path: Path, equivalent: str, waiting: str, sentence: str) -> None:
    files = tmp_path / "equivalent.toml", tmp_path / "open.toml"
    for file, entry in zip(files, (equivalent, waiting), strict=True):
        file.write_text(f"[[mutant]]\n{entry}\n" if entry else "")
    with pytest.raises(BadEntry) as raised:
        known(*files)
    assert sentence in str(raised.value)


def test_the_files_of_this_repository_can_be_read() -> None:
    known()


def test_no_module_of_the_control_plane_is_left_out() -> None:
    """But for interfaces and plain data."""
    source = ROOT / "impl"
    modules = {path.relative_to(source).as_posix() for path in source.glob("kvoffload/**/*.py")}
    bytes_and_devices = {name for name in modules if name.startswith("kvoffload/devices/")} | {
        "kvoffload/kv_tensors.py"
    }
    plain = {
        f"kvoffload/{name}.py" for name in ("connector", "errors", "ids", "operations", "statistics", "step_report")
    }
    mutated = {
        path.relative_to(source).as_posix() for pattern in CONTROL_PLANE.mutated for path in source.glob(pattern)
    }
    left_out = modules - bytes_and_devices - plain - mutated
    assert {name for name in left_out if not name.endswith("__init__.py")} == set()
    assert not mutated & (bytes_and_devices | plain)


def test_files_belong_to_the_suite_that_mutates_them() -> None:
    assert asked_of(CONTROL_PLANE, ["kvoffload/engine.py", "kvspecs/safety/*.py"]) == ("kvoffload/engine.py",)
    assert asked_of(PREDICATES, ["kvspecs/safety/workers_agree.py"]) == ("kvspecs/safety/workers_agree.py",)
    assert asked_of(CONTROL_PLANE, ["kvoffload/devices/host.py"]) == ()
    assert asked_of(PREDICATES, []) == PREDICATES.mutated
