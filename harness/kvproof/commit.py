"""Which commit is judged."""

import subprocess

TIMEOUT_S = 2.0


def current_commit() -> str:
    """The commit of the current folder, `-dirty` if tracked files differ from it; empty where there is none."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
