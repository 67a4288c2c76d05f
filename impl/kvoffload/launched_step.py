"""The steps whose output the scheduler waits for, and the blocks that they keep."""

from dataclasses import dataclass

from kvoffload.ids import Block, RequestId
from kvoffload.plain import Plain


@dataclass(slots=True)
class LaunchedShare(Plain):
    """One request's part of a launched step.

    first    leading blocks that were computed before (count)
    blocks   its table at launch
    left     the request has left the step (preempted, aborted, reset): its output changes nothing, and the step has a
             reference of its own on each of `blocks` until the output is handled (vLLM PR 45357: freed blocks still
             written)
    """

    first: int
    blocks: tuple[Block, ...]
    left: bool = False


@dataclass(slots=True)
class LaunchedStep(Plain):
    """A launched compute; shares in the order of the launch, by the request that they were launched for."""

    step: int
    shares: dict[RequestId, LaunchedShare]

    def carries(self, request: RequestId) -> bool:
        """Is the request in the step, and has it not left?"""
        share = self.shares.get(request)
        return share is not None and not share.left
