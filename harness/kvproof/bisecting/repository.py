"""The target's repository: its commits, and a worktree in which one after the other is tried."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kvproof.usage import BadUsage

_WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
TIMEOUT_S = 120.0


class Repository:
    """A git repository. folder: its top."""

    def __init__(self, folder: Path) -> None:
        """Raises BadUsage unless the folder is in a repository."""
        try:
            top = _git(folder, "rev-parse", "--show-toplevel")
        except BadUsage:
            raise BadUsage(
                f"{folder} is in no git repository; name the target's with --repository, or go there"
            ) from None
        self.folder = Path(top)

    def commit(self, name: str) -> str:
        """The commit that a name stands for. Raises BadUsage."""
        if name.startswith("-"):
            raise BadUsage(f"commit {name!r:.60} does not exist in {self.folder}")
        try:
            return _git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except BadUsage:
            raise BadUsage(f"commit {name!r:.60} does not exist in {self.folder}") from None

    def between(self, good: str, bad: str) -> Sequence[str]:
        """The commits after `good` up to `bad`, oldest first, along first parents. Raises BadUsage."""
        if good == bad:
            raise BadUsage("--good and --bad are one commit; name two")
        if good not in _git(self.folder, "rev-list", bad).split():
            raise BadUsage(f"--good {good[:9]} is no ancestor of --bad {bad[:9]}; exchange them, or name another")
        return _git(self.folder, "rev-list", "--reverse", "--first-parent", f"{good}..{bad}").split()

    def subject(self, commit: str) -> str:
        """The first line of its message."""
        return _git(self.folder, "show", "--no-patch", "--format=%s", commit)

    @contextmanager
    def worktree(self) -> Iterator["Worktree"]:
        """A worktree beside the repository, which is removed again."""
        with tempfile.TemporaryDirectory(prefix="kvproof-bisect-") as parent:
            folder = Path(parent).resolve() / self.folder.name
            _git(self.folder, *_WITHOUT_HOOKS, "worktree", "add", "--quiet", "--detach", str(folder), "HEAD")
            try:
                yield Worktree(folder)
            finally:
                _git(self.folder, "worktree", "remove", "--force", str(folder))


class Worktree:
    """Where one commit at a time is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def go_to(self, commit: str) -> None:
        """Have just what is in this commit. Raises BadUsage."""
        _git(self.folder, *_WITHOUT_HOOKS, "checkout", "--quiet", "--force", "--detach", commit)
        _git(self.folder, "clean", "-ffdxq")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadUsage(f"git cannot be run ({error})") from None
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise BadUsage(f"git {arguments[0] if arguments[0] != '-c' else 'checkout'} failed ({said:.200})")
    return done.stdout.strip()
