"""Where a release of vLLM is not as the adapters know it: an error that says so, and no violation."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvproof.obligations.books import Unreadable
from kvproof.targets.vllm.release import TRIED

_HERE = Path(__file__).parent
_OURS = re.compile(r"(Simulated\w+|CopyEvent|Recording\w*)\.")
"""How an exception's text begins by which Python says that vLLM calls one of these with other arguments."""


@contextmanager
def as_known(release: str) -> Iterator[None]:
    """Call vLLM in here. Raises Unreadable in place of what is raised because it is not as the adapter knows it; what
    vLLM itself raises is vLLM's."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        lacks = isinstance(error, AttributeError) and type(error.obj).__module__.startswith(__package__)
        if Path(frame.filename).parent == _HERE or lacks or _OURS.match(str(error)):
            raise unlike(release, error, f" ({Path(frame.filename).name}:{frame.lineno}, in {frame.name})") from error
        raise


def unlike(release: str, error: Exception, where: str = "") -> Unreadable:
    """That this release is not as the adapter knows it, in a sentence."""
    text = " ".join(str(error).split())
    return Unreadable(
        f"vllm {release} is not as this target knows it, {type(error).__name__}: {text:.300}{where}; "
        f"it was tried with {TRIED}"
    )
