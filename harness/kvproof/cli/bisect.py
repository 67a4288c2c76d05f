"""`kvproof bisect`: which commit of the target's repository has brought a failure in."""

import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kvproof import verdict
from kvproof.bisecting.repository import Repository, Worktree
from kvproof.bisecting.search import Judgement, first_bad
from kvproof.bisecting.trying import Tried, Trying
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser, add_patience, add_target
from kvproof.cli.planned import report
from kvproof.cli.progress import waiting_for
from kvproof.cli.single import job_of, read_trace
from kvproof.job import Job
from kvproof.targets.registry import MACHINE
from kvproof.usage import BadUsage
from kvproof.verdict import Verdict


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "bisect",
        "Replay a saved trace at the commits between a good one and a bad one, in a worktree, and name the first at "
        "which it fails. A commit at which the target cannot be loaded is skipped, and said to be.",
    )
    parser.add_argument("trace", metavar="TRACE", help="an id (or its beginning), a trace file, or a folder with one")
    parser.add_argument("--good", metavar="COMMIT", required=True, help="where the trace does not fail")
    parser.add_argument("--bad", metavar="COMMIT", default="HEAD", help="where it fails (HEAD)")
    parser.add_argument("--repository", metavar="FOLDER", default=".", help="the target's (else this folder's)")
    add_target(parser)
    add_patience(parser)
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="of each replay: 60s, 2m, 500ms")
    parsed = parser.read(arguments)
    trace, path = read_trace(parsed.trace)
    limits = {"patience": parsed.patience, "budget": parsed.budget}
    flags = [f"--{name}={seconds:.3f}s" for name, seconds in limits.items() if seconds is not None]
    job = job_of("replay", trace, parsed)
    if job.target == MACHINE:
        raise BadUsage("the trace is of the reference machine itself, which is part of kvproof; name a --target")
    started = time.monotonic()
    repository = Repository(Path(parsed.repository))
    good, bad = repository.commit(parsed.good), repository.commit(parsed.bad)
    commits = repository.between(good, bad)
    with repository.worktree() as worktree:
        bisection = _Bisection(repository, worktree, job, path, flags)
        bisection.hold(good, bad)
        found = first_bad(commits, bisection.judge)
    said = _said(repository, found.suspects, bisection.tried)
    judged = Verdict.PASSED if len(found.suspects) == 1 else Verdict.UNDETERMINED
    result = job.result(judged, time.monotonic() - started, detail=said)
    report(said, (), [result], parsed)
    return verdict.exit_status([result])


class _Bisection:
    """Tries commits, and says of each what became of it."""

    def __init__(self, repository: Repository, worktree: Worktree, job: Job, trace: Path, flags: list[str]) -> None:
        self.repository = repository
        self.worktree = worktree
        self.tried = 0
        device = [f"--device={job.device}"] if job.device else []
        self.trying = Trying(trace.resolve(), "", job.target, repository.folder, worktree.folder, (*flags, *device))

    def hold(self, good: str, bad: str) -> None:
        """See that the good commit is good and the bad one bad, which also says what failure is looked for. Raises
        BadUsage."""
        tried = self._try(bad, "--bad")
        if tried.judgement != "bad":
            raise BadUsage(f"the trace does not fail at --bad {bad[:9]} ({tried.why or 'it passes'}); name another")
        self.trying = dataclasses.replace(self.trying, id=tried.id)
        tried = self._try(good, "--good")
        if tried.judgement != "good":
            raise BadUsage(f"the trace does not pass at --good {good[:9]} ({tried.why}); name an older one")

    def judge(self, commit: str) -> Judgement:
        """What a commit is."""
        return self._try(commit, self.repository.subject(commit)).judgement

    def _try(self, commit: str, words: str) -> Tried:
        self.tried += 1
        sys.stderr.write(f"{self.tried:3} {commit[:9]} ...\n")
        sys.stderr.flush()
        with waiting_for(f"replaying at {commit[:9]}"):
            self.worktree.go_to(commit)
            tried = self.trying.try_it()
        why = f" ({tried.why})" if tried.judgement == "skipped" else ""
        sys.stderr.write(f"{self.tried:3} {commit[:9]} {tried.judgement}{why}  {words:.80}\n")
        return tried


def _said(repository: Repository, suspects: tuple[str, ...], tried: int) -> str:
    if len(suspects) == 1:
        return f"{suspects[0][:9]} is the first bad commit, {tried} tried: {repository.subject(suspects[0])}"
    lines = [f"one of these {len(suspects)} is the first bad commit; {len(suspects) - 1} could not be tried:"]
    return "\n".join([*lines, *(f"  {commit[:9]} {repository.subject(commit)}" for commit in suspects)])
