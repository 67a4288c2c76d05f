"""The device of a soaked engine."""

from collections.abc import Callable
from typing import Final, TypedDict

from kvoffload.devices.cuda import Cuda
from kvoffload.devices.host import Host
from kvoffload.operations import Copy, Operation
from kvproof.targets.kvoffload_soak_faults import FailingCopies
from kvproof.targets.soaked import Setting

WATCHDOG_S: Final = 20.0
"""Seconds after which a stream that neither rests nor ends is taken for hung."""


class _Options(TypedDict):
    """What both devices are made with."""

    layers: int
    block_bytes: int
    delays: int | None
    watchdog: float
    on_run: Callable[[int, Operation], None]
    faults: Callable[[int, Copy], tuple[int, ...]]
    second_blocks: int


def open_device(setting: Setting, began: Callable[[int, Operation], None], failing: FailingCopies) -> Host | Cuda:
    """Raises RuntimeError for `cuda` where there is none."""
    scope = setting.scope
    sizes = (scope.workers, scope.device_blocks, scope.host_blocks)
    options = _Options(
        layers=setting.layers,
        block_bytes=setting.block_bytes,
        delays=setting.delays,
        watchdog=WATCHDOG_S,
        on_run=began,
        faults=failing.faults,
        second_blocks=scope.second_blocks,
    )
    if setting.device == "cuda":
        from kvoffload.devices.cuda_torch import driver

        return Cuda(driver(), *sizes, **options)
    return Host(*sizes, **options)
