"""The rates of loads and stores, printed at the end of the run. Nothing is demanded of them but right bytes."""

from functools import partial

from tests.gpu.devices import cuda
from tests.gpu.throughput import table

from kvoffload.devices.cuda import Cuda


def test_rates(rates: list[str]) -> None:
    device = cuda(1, 1, 1)
    assert isinstance(device, Cuda)
    rates.append(device.description)
    device.close()
    rates += table(partial(cuda, staging_blocks=1))  # each compute writes one block
