"""Whether `make gpu` can run here. Says what it will run on, or in one sentence why it cannot, with exit status 2."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator

LEAST_PYTHON = (3, 11)


def obstacles() -> Iterator[str]:
    """What stands in the way, the most basic first. Nothing is imported before it is known to be there."""
    if sys.version_info < LEAST_PYTHON:
        yield f"Python {sys.version.split()[0]} is older than {'.'.join(map(str, LEAST_PYTHON))}"
    for name in ("torch", "pytest", "hypothesis"):
        if importlib.util.find_spec(name) is None:
            yield f"{sys.executable} has no {name}"
    cuda_torch = importlib.import_module("kvoffload.devices.cuda_torch")
    if missing := cuda_torch.missing():
        yield str(missing)
    if no_gating := cuda_torch.capabilities().no_gating:
        yield f"streams cannot be gated: {no_gating}"


def main() -> int:
    obstacle = next(obstacles(), "")
    if obstacle:
        print(f"make gpu cannot run: {obstacle} (docs/how-to/run-on-a-gpu.md)", file=sys.stderr)
        return 2
    cuda_torch = importlib.import_module("kvoffload.devices.cuda_torch")
    can = cuda_torch.capabilities()
    names = ", ".join(cuda_torch.device_names())
    torch = importlib.import_module("torch")
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, {names}")
    print(f"copies: {can.copying}; gates: {can.gating}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
