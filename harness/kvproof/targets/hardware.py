"""What this machine has that a target could run on."""

from pathlib import Path

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version")
"""Present wherever a CUDA driver is loaded (`/dev/dxg` under WSL)."""


NO_CUDA = "no CUDA device"


def no_cuda(*, gated: bool = False) -> str:
    """Why nothing can run on CUDA here, or nothing gated; empty: it can. Without a driver torch is not imported, which
    takes a second."""
    if not any(Path(driver).exists() for driver in _DRIVERS):
        return NO_CUDA
    from kvoffload.devices import cuda_torch  # only when there is a driver to ask

    return cuda_torch.missing() or (cuda_torch.capabilities().no_gating if gated else "")


def cuda_devices() -> str:
    """What CUDA devices there are, how kvoffload copies on them and how it gates their streams. Not without `no_cuda`
    being empty."""
    from kvoffload.devices import cuda_torch

    names, can = cuda_torch.device_names(), cuda_torch.capabilities()
    return f"{', '.join(names)}; copies: {can.copying}; gates: {can.gating or 'none'}"
