"""What this machine has that a target could run on."""

from pathlib import Path

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version")
"""Present wherever a CUDA driver is loaded (`/dev/dxg` under WSL)."""


def cuda_device() -> str | None:
    """The name of the first CUDA device, or None. Without a driver torch is not imported, which takes a second."""
    if not any(Path(driver).exists() for driver in _DRIVERS):
        return None
    import torch  # only when there is a driver to ask

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
