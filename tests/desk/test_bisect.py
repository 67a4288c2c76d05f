"""`kvproof bisect` names the commit that brought a failure in, and says which could not be tried."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kvproof.bisecting.search import Judgement, first_bad
from kvproof.cli import main
from kvproof.targets.command import Command
from kvproof.trace import itf
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict
from tests.harness.changed_file import job

C = Command

ENGINE = """
from kvproof.targets.kvoffload import Ledger
from inner import lost

class Engine(Ledger):
    def perform(self, command):
        outcome = super().perform(command)
        if command.verb == "handle_output":
            self.engine.device_pool.counts[0] -= lost()
        return outcome
"""


@pytest.mark.parametrize("length", [1, 2, 3, 8, 33])
def test_the_search_finds_any_first_bad_commit_in_few_steps(length: int) -> None:
    for first in range(length):
        asked: list[str] = []

        def judge(commit: str, first: int = first, asked: list[str] = asked) -> Judgement:
            asked.append(commit)
            return "bad" if int(commit) >= first else "good"

        assert first_bad([str(number) for number in range(length)], judge).suspects == (str(first),)
        assert len(asked) == len(set(asked)) <= length.bit_length() + 1


def test_what_is_skipped_next_to_the_first_bad_one_is_suspected_too() -> None:
    kinds: dict[str, Judgement] = {"d": "skipped", "e": "skipped", "f": "bad", "g": "bad"}
    for commit in "abc":
        kinds[commit] = "good"
    assert first_bad("abcdefg", lambda commit: kinds[commit]).suspects == ("d", "e", "f")
    kinds["e"] = "good"
    assert first_bad("abcdefg", lambda commit: kinds[commit]).suspects == ("f",)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


History = Callable[..., list[str]]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Makes a repository whose commits have these texts of `inner.lost`, and answers the commits."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "engine.py").write_text(ENGINE)
    commands = (C("submit", (0,)), C("schedule"), C("run", (0, "compute")), C("handle_output"))
    scope, contract = job("x", "x").scope, job("x", "x").contract
    trace = Trace(contract, scope, "s1", "engine.py:Engine", commands, Verdict.REFUTED, "owners-account-for-references")
    itf.write(tmp_path / "t.itf.json", trace)

    def make(*texts: str) -> list[str]:
        commits = []
        for number, text in enumerate(texts):
            (tmp_path / "inner.py").write_text(text)
            git(tmp_path, "add", "engine.py", "inner.py")
            git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", f"change {number}")
            commits.append(git(tmp_path, "rev-parse", "HEAD"))
        return commits

    return make


GOOD, BAD, DEAD = "def lost(): return 0\n", "def lost(): return 1\n", "def lost(:\n"
OTHER = "def lost(): raise KeyError('x')\n"


def bisected(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["bisect", "t.itf.json", "--target", "engine.py:Engine", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_first_bad_commit_is_named(history: History, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    commits = history(GOOD, GOOD, GOOD, DEAD, BAD, BAD)
    (tmp_path / "inner.py").write_text("def lost(): return 1  # not committed, and not tried\n")
    status, out, err = bisected(capsys, "--good", commits[0], "--bad", "HEAD", "--json", "report.json")
    assert status == 3
    assert out.startswith("one of these 2 is the first bad commit; 1 could not be tried:\n")
    assert f"  {commits[3][:9]} change 3\n  {commits[4][:9]} change 4\n" in out
    assert f"{commits[3][:9]} skipped (" in err
    assert "SyntaxError" in err
    assert git(tmp_path, "worktree", "list").count("\n") == 0
    assert "not committed" in (tmp_path / "inner.py").read_text()

    status, out, err = bisected(capsys, "--good", commits[3 - 1], "--bad", commits[4])
    assert status == 3
    history(GOOD, BAD)
    status, out, err = bisected(capsys, "--good", "HEAD~1", "--bad", "HEAD")
    assert (status, out) == (
        0,
        f"{git(tmp_path, 'rev-parse', 'HEAD')[:9]} is the first bad commit, 2 tried: change 1\n",
    )


def test_another_failure_on_the_way_is_not_the_one(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    commits = history(GOOD, OTHER, GOOD, BAD)
    status, out, err = bisected(capsys, "--good", commits[0])
    assert (status, out[:9]) == (0, commits[3][:9])
    assert (
        f"{commits[1][:9]} skipped (it breaks work-remaining-keeps-the-engine-stepping there, which is another" in err
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--good", "nowhere"), "commit 'nowhere' does not exist in"),
        (("--good", "--all"), "--good: expected one argument"),
        (("--good", "HEAD", "--bad", "HEAD"), "--good and --bad are one commit; name two"),
        (("--good", "HEAD", "--bad", "HEAD~1"), "is no ancestor of --bad"),
        (("--good", "HEAD~1", "--bad", "HEAD~2"), "is no ancestor of --bad"),
        (("--good", "HEAD~2", "--bad", "HEAD~1"), "the trace does not fail at --bad"),
        (("--good", "HEAD~1", "--repository", "/"), "/ is in no git repository"),
        ((), "the following arguments are required: --good"),
    ],
)
def test_bad_usage_is_one_sentence(
    history: History, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    history(GOOD, GOOD, BAD)
    status, out, err = bisected(capsys, *arguments)
    assert (status, out) == (2, "")
    assert words in err.splitlines()[-1]
