"""What a store policy chooses."""

from typing import NamedTuple

from kvoffload.ids import Pair
from kvoffload.request import Request


class Choice(NamedTuple):
    """One store to be made: pairs of device and host blocks, the host blocks in the order in which they are taken.

    request  whose blocks they are; None: free blocks
    cursor   what `request.stored` becomes
    Without pairs, only the cursor moves.
    """

    request: Request | None
    pairs: tuple[Pair, ...]
    cursor: int
