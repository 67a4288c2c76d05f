"""A request: a sequence of keys to be computed, and what it holds meanwhile."""

from typing import NamedTuple

from kvmodel.block_pool import HOLE

ABSENT, WAITING, LOADING, RUNNING, DRAINING, DONE = range(6)
PHASES = ("ABSENT", "WAITING", "LOADING", "RUNNING", "DRAINING", "DONE")


class Pins(NamedTuple):
    """The blocks that a lookup found and keeps until admission, release, abort or reset (vLLM PR 42289)."""

    device: tuple[int, ...]
    host: tuple[int, ...]


class Request(NamedTuple):
    """One request.

    phase     ABSENT before it is submitted; DRAINING: aborted or preempted while its load still writes its blocks
    table     its device blocks, in the order of its keys; it owns one reference on each. HOLE where its window has left
              one behind
    computed  leading blocks of the table whose KV exists (count)
    stored    leading blocks of the table already offered to the host by eager stores (count)
    pins      what its lookup keeps, or None when it has not looked up
    jobs      ids of the transfer jobs that it waits for: its load, a promotion for it; under fencing its stores too
    outdated  it survived a reset that meant `invalidate`: its KV is of the old weights and must not be published
    returns   DRAINING only: it was preempted, and will wait again; otherwise it was aborted, and will be done
    promoted  blocks were promoted for it since it began to wait: that is done once, and then it is admitted with what
              it finds. Two whose blocks do not fit on the host together would else promote in turn for ever.
    """

    phase: int = ABSENT
    table: tuple[int, ...] = ()
    computed: int = 0
    stored: int = 0
    pins: Pins | None = None
    jobs: tuple[int, ...] = ()
    outdated: bool = False
    returns: bool = False
    promoted: bool = False


def held(table: tuple[int, ...]) -> tuple[int, ...]:
    """The blocks of a table, without its holes."""
    return table if HOLE not in table else tuple([block for block in table if block != HOLE])


WAITING_AFRESH = Request(WAITING)
ENDED = Request(DONE)


def after_draining(request: Request) -> Request:
    """What a draining request becomes when its load is done."""
    return WAITING_AFRESH if request.returns else ENDED
