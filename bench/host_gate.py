"""What one gated operation costs on the host device: the figure that bounds the length of gated walks.

    python bench/host_gate.py [steps, default 1000]

Two workers, three streams each, 2 layers of 64 bytes. A step is a compute (one block read, two filled), a store of two
blocks that waits for it, and a load of one block that waits for the store.
"""

import statistics
import sys
import time

from kvoffload.devices.host import Host
from kvoffload.operations import Compute, Content, Copy, Operation, Share, Stream

WORKERS = 2
KEYS = 5


def operations(step: int) -> tuple[Operation, ...]:
    reads = ((1, Content((step - 1) % KEYS, 0)),) if step else ()
    writes = ((0, Content(-1, 0)), (1, Content(step % KEYS, 0)))
    store = Copy(2 * step, Stream.STORE, ((0, 0), (1, 1)), step, ())
    load = Copy(2 * step + 1, Stream.LOAD, ((0, 2),), step - 1, (store.job,))
    return Compute(step, (Share(reads, writes),), ()), store, load


def main(steps: int) -> None:
    runs: list[float] = []
    with Host(WORKERS, 4, 4, gated=True) as device:
        start = time.perf_counter()
        for step in range(steps):
            for worker in range(WORKERS):
                for operation in operations(step):
                    device.enqueue(worker, operation)
            while runnable := device.runnable():
                began = time.perf_counter()
                device.run(*runnable[-1])
                runs.append(time.perf_counter() - began)
        whole = time.perf_counter() - start
        assert not device.misreads
    microseconds = sorted(took * 1e6 for took in runs)
    print(
        f"{len(runs)} gated operations. run(): median {statistics.median(microseconds):.0f} us, "
        f"mean {statistics.mean(microseconds):.0f} us, 99 of 100 below {microseconds[len(runs) * 99 // 100]:.0f} us. "
        f"With enqueue and runnable: {whole / len(runs) * 1e6:.0f} us an operation."
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
