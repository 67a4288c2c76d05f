"""The seam of the soak: what its engine drives and asks, without knowing what it is made of. Plain data, no torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.targets.command import Command


class Violation(Exception):
    """The target broke a property.

    property    its stable name
    sentence    what happened, with the blocks, jobs and requests by name
    cause       what makes two violations the same: stable words, without ids
    contract, target   what the contract says where the two differ, and what the target has; may be empty
    """

    def __init__(self, property_name: str, sentence: str, *cause: str, contract: str = "", target: str = "") -> None:
        super().__init__(f"{property_name}: {sentence}")
        self.property = property_name
        self.sentence = sentence
        self.cause = cause
        self.contract = contract
        self.target = target


class Setting(NamedTuple):
    """How one episode is set up: an engine with a device of its own, from its first command to its drain.

    layers       of every block (count)
    block_bytes  of one block in one layer
    delays       seed of random pauses of the streams; None: they run as fast as they can
    device       `host` or `cuda`
    failing      seed of the copies that fail; None: none does
    """

    contract: Contract
    scope: Scope
    layers: int
    block_bytes: int
    delays: int | None
    device: str = "host"
    failing: int | None = None

    def __str__(self) -> str:
        scope, contract = self.scope, self.contract
        return (
            f"{scope.device_blocks} device and {scope.host_blocks} host blocks of {self.layers} layers, "
            f"{f'{scope.second_blocks} blocks below the host, ' if scope.second_blocks else ''}"
            f"{scope.workers} worker{'' if scope.workers == 1 else 's'}, {contract.store_mode} stores, output from "
            f"{'the first worker' if contract.output_from == 'first' else 'all workers'}, depth {contract.depth}, "
            f"{'partial admission, ' if contract.partial else ''}"
            f"{'marks reported, ' if contract.marks else ''}"
            f"{'a deadline, ' if contract.expires else ''}"
            f"{'repeated keys, ' if scope.repeats else ''}"
            f"{f'window {scope.window}, ' if scope.window else ''}"
            f"{'' if self.failing is None else 'copies that fail, '}"
            f"{'no delays' if self.delays is None else 'random delays'}"
        )


class Soaked(Protocol):
    """An engine whose streams run freely. Every method raises Violation as soon as one is seen.

    counts   what was done so far, by name; `copies` is how many blocks were copied, on each worker by itself, and
             reported
    """

    counts: Counter[str]

    def perform(self, command: Command) -> bool:
        """One command of a client, of the scheduler or of a faulty environment. False: refused, or nothing to do."""
        ...

    def report(self, worker: int, jobs: Sequence[int]) -> None:
        """This worker reports these jobs, which are among its `copied` ones, in one batch."""
        ...

    def phases(self) -> Mapping[int, str]:
        """The phase of every request that has not ended."""
        ...

    def copied(self) -> tuple[tuple[int, ...], ...]:
        """For each worker the jobs that have run there and were not reported."""
        ...

    def reported(self) -> Sequence[tuple[int, int]]:
        """(worker, job) of reports that could be repeated: of jobs that others still have to report, if there are any,
        else recent ones, whatever has become of the job."""
        ...

    def expirable(self) -> Sequence[int]:
        """Jobs whose deadline may pass: launched, and neither complete nor expired."""
        ...

    def lost(self) -> Sequence[int]:
        """Those among them of which some report will never come."""
        ...

    def may_schedule(self) -> bool:
        """No worker is too far behind to be given another step."""
        ...

    def output_ready(self) -> bool:
        """The oldest step that awaits its output has run on the workers whose output ends it."""
        ...

    def finishable(self) -> Sequence[int]:
        """Requests that have computed everything."""
        ...

    def wait(self) -> None:
        """Let the streams run, until one begins an operation, or a fraction of a millisecond has passed."""
        ...

    def stall(self, worker: int) -> None:
        """From now on no operation of this worker begins, where the device can be held up so."""
        ...

    def resume(self) -> None:
        """No worker stalls any more."""
        ...

    def drain(self) -> None:
        """A drain point: every operation that was launched runs; then everything is checked, all bytes among it."""
        ...

    def judge_rest(self) -> None:
        """Nothing more will happen: everything has run, nothing is left to be reported or handled, and scheduling does
        nothing. A Violation of liveness unless all is done."""
        ...

    def log(self) -> tuple[tuple[Command, str], ...]:
        """Every command that was not refused, each with a note of what it led to. Operations are listed where they
        began: they wait for what they need before, so that this order is possible, if not the only one."""
        ...

    def close(self) -> None:
        """End all streams and threads. Idempotent. `counts` and `log` stay."""
        ...
