"""`kvproof shrink`: make a saved trace shorter while it fails in the same way."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from kvproof import verdict
from kvproof.budget import parse_budget
from kvproof.cli import bundle
from kvproof.cli.flags import Parser, add_patience, add_target
from kvproof.cli.planned import report
from kvproof.cli.single import headline, job_of, read_trace, run_one
from kvproof.commit import current_commit
from kvproof.report.failure_text import failure_text
from kvproof.trace import itf, store
from kvproof.trace.trace import of_failure
from kvproof.usage import BadUsage


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "shrink",
        "Make a saved trace smaller while it still fails with the same fingerprint: fewer commands, requests, workers, "
        "blocks and symbols, completions in order. Without --out the smaller trace takes the place of the one that is "
        "kept under its id. Ctrl-C keeps the smallest so far.",
    )
    parser.add_argument("trace", metavar="TRACE", help="an id (or its beginning), a trace file, or a folder with one")
    parser.add_argument("--out", metavar="FILE", help="write the shorter trace there")
    add_target(parser)
    add_patience(parser)
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="stop after 60s, 2m, 500ms")
    parsed = parser.read(arguments)
    if parsed.out is not None and not Path(parsed.out).parent.is_dir():
        raise BadUsage(f"trace {parsed.out!r:.200} cannot be written; name a file in a folder that exists")
    trace, path = read_trace(parsed.trace)
    job = job_of("shrink", trace, parsed)
    outcome = run_one(job, parsed.budget)
    result = outcome.results[0]
    failures: list[str] = []
    said = result.detail.partition("\n")[0] or "it does not fail any more"
    failure = result.failure
    if failure is not None:
        shrunk = of_failure(job, failure, current_commit())
        try:
            if parsed.out is not None:
                written = Path(parsed.out)
                itf.write(written, shrunk)
            else:
                root = store.default_root()
                text = failure_text(failure, saved=store.shown(root / failure.fingerprint))
                files = bundle.beside(job, result, shrunk, 0)
                written = store.save(root, failure.fingerprint, shrunk, text + "\n", files)
        except OSError as error:
            raise BadUsage(f"the shorter trace cannot be written ({error})") from None
        result = dataclasses.replace(result, trace=store.shown(written))
        failures = [failure_text(failure, saved=store.shown(written), replay=parsed.out)]
        said = f"{len(trace.commands):,} commands became {len(failure.commands):,}"
        if failure.scope != trace.scope:
            said += f", and {trace.scope_name} became {failure.scope_name}"
        said += f", in {store.shown(written)}" + (f"; {result.detail}" if result.detail else "")
    report(f"{headline(job, path)}\n{result.verdict} in {result.seconds:.1f} s; {said}.", failures, [result], parsed)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status([result])
