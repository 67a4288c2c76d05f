"""Mutation testing of kvoffload's control plane and of the predicates: prints the score of each module and every
survivor that is not known, and writes build/mutants/mutants.json. Fails if there is one, or if a known one is none any
more.

python -m tests.mutants                  all of them (for the night)
python -m tests.mutants FILE ...         some, such as kvoffload/scheduler.py or kvspecs/safety/*.py
python -m tests.mutants --quick FILE ...    without searches, and without tests of more than a second of CPU
python -m tests.mutants --unexplained FILE ...   without those that equivalent.toml explains, which cost most
python -m tests.mutants --record FILE ...   also write open.toml anew, for these: survivors that wait for a test
"""

import argparse
import json
import math
import sys
from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatch

from tests.mutants.judging import BUILD, SUITES, CannotJudge, Judged, Suite, judged
from tests.mutants.survivors import OPEN, Account, BadEntry, Key, Known, Score, account, as_toml, known, scores

QUICK = 1.0
"""CPU seconds that a test takes at most which is asked with `--quick`."""


def asked_of(suite: Suite, files: Sequence[str]) -> tuple[str, ...]:
    """Which of these files belong to the suite; all of it if none is named."""
    if not files:
        return suite.mutated
    return tuple(file for file in files if any(fnmatch(file, pattern) for pattern in suite.mutated))


def run(files: Sequence[str], quick: bool = False, explained: Container[Key] = ()) -> list[Judged]:
    """quick: what survives may still be noticed by a test that is slow. explained: mutants that are not tried. Raises
    CannotJudge, FileNotFoundError."""
    from tests.mutants.staging import stage  # needs mutmut, which the tests of this package do without

    found: list[Judged] = []
    for suite in SUITES:
        asked = asked_of(suite, files)
        if asked:
            folder, mutants = stage(suite.name, asked)
            found += [Judged(mutant, "not tried", None) for mutant in mutants if mutant.key in explained]
            found += judged(
                folder,
                [mutant for mutant in mutants if mutant.key not in explained],
                suite.quick_judges if quick else suite.judges,
                QUICK if quick else math.inf,
            )
    return found


def table(rows: Sequence[Score]) -> Iterator[str]:
    yield f"{'module':54} mutants noticed equivalent   score of all   of the others"
    for row in rows:
        numbers = f"{row.total:7} {row.noticed:7} {row.equivalent:10}"
        yield f"{row.module:54} {numbers} {row.before:12.1f} % {row.after:13.1f} %"


def said(found: Account, listed: Known) -> Iterator[str]:
    for each in found.unknown:
        mutant = each.mutant
        yield f"\n{each.outcome}: {mutant.module}, {mutant.function}"
        yield from (f"  - {line}" for line in mutant.was.splitlines())
        yield from (f"  + {line}" for line in mutant.now.splitlines())
    for module, function, was, now in found.stale:
        file = "equivalent.toml" if (module, function, was, now) in listed.equivalent else "open.toml"
        yield f"\n{file}: {module}, {function}: no survivor any more, take the entry out: {was!r} -> {now!r}"


def record(found: Sequence[Judged], listed: Known) -> None:
    """open.toml, with what survives now in the modules that were judged, and what it had of the others."""
    modules = {each.mutant.module for each in found}
    kept = [key for key in listed.waiting if key[0] not in modules]
    new = [each.mutant.key for each in found if not each.noticed and each.mutant.key not in listed.equivalent]
    OPEN.write_text(as_toml([*kept, *new]))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="below the source root, such as kvoffload/engine.py")
    parser.add_argument("--record", action="store_true", help="write open.toml anew for these files")
    parser.add_argument("--quick", action="store_true", help=f"no searches, no tests of more than {QUICK:.0f} s of CPU")
    parser.add_argument("--unexplained", action="store_true", help="without those that equivalent.toml explains")
    asked = parser.parse_args(arguments)
    strangers = [file for file in asked.files if not any(asked_of(suite, [file]) for suite in SUITES)]
    if strangers:
        parser.error(f"{strangers[0]} is no module that is mutated; tests/mutants/judging.py lists them")
    try:
        listed = known()
        found = run(asked.files, asked.quick, listed.equivalent if asked.unexplained else ())
    except (BadEntry, CannotJudge, FileNotFoundError) as problem:
        print(f"tests.mutants: {problem}", file=sys.stderr)
        return 2
    if asked.record:
        record(found, listed)
        listed = known()
    result = account(found, listed)
    print(*said(result, listed), "", *table(scores(found, listed)), sep="\n")
    rows = [{**each.mutant._asdict(), "outcome": each.outcome, "by": each.by} for each in found]
    (BUILD / "mutants.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if result.unknown or result.stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
