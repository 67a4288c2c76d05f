"""Where the suite's devices come from. The suite is written for any device with memory: here it runs on CUDA, and
`tests/impl` runs it on the host device and on simulated CUDA, so that it is known to work."""

from collections.abc import Callable

from kvoffload.devices.cuda import Cuda
from kvoffload.devices.cuda_torch import driver, missing
from kvoffload.devices.host import Host

Opened = Cuda | Host
Open = Callable[..., Opened]
"""Opens a device: workers, device blocks, host blocks; and the options that `Cuda` and `Host` have in common."""


def cuda(workers: int, device_blocks: int, host_blocks: int, **options: object) -> Opened:
    """On every GPU that there is. Raises RuntimeError where there is none."""
    return Cuda(driver(), workers, device_blocks, host_blocks, **options)  # type: ignore[arg-type]


def why_not() -> str:
    """Why nothing can run on CUDA here; empty: it can."""
    return missing()
