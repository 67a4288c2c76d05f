"""How one engine is set up: its modes and its sizes."""

from dataclasses import dataclass
from typing import Literal

from kvoffload.plain import Plain

Discipline = Literal["pinning", "fencing"]
StoreMode = Literal["eager", "lazy"]
OutputFrom = Literal["all", "first"]
AdmissionMode = Literal["whole", "partial"]
Reports = Literal["per-job", "marks"]


@dataclass(frozen=True, slots=True)
class Config(Plain):
    """Modes and sizes, fixed for an engine's life. ValueError if a value makes no sense.

    discipline     who keeps a block safe from its copy. `pinning`: the job references both sides until it is reported
                   (vLLM PR 39726). `fencing`: device blocks may be reused at once, and whoever reuses them waits for
                   the copy (vLLM PRs 41956, 48102).
    device_blocks, host_blocks   blocks in each pool (count)
    workers        ranks, named 0, 1, ...; each holds its own shard of every block (count)
    store_mode     `eager`: blocks of running requests are stored when they are computed. `lazy`: cached free blocks
                   are stored before they are evicted.
    output_from    whose compute ends a step: that of `all` workers, or that of the `first`. With `first` the others
                   may lag behind by one step.
    depth          of the pipeline: steps that may await their output at once (count). 1: an output is handled before
                   the next step is launched. 2, asynchronous scheduling: the next step is launched meanwhile, on the
                   assumption that what the one before it computes will be there.
    reports        what workers report. `per-job`: every job that they have copied. `marks`: of each stream, up to which
                   job they have copied all (high-water marks)
    second_blocks  blocks of a second host tier below the host (count; 0: none). What nobody holds on the host goes on
                   to it before it is evicted; who would hit that waits until it is back. Needs reports per job.
    deadline       seconds within which every worker must have reported a launched transfer; a caller with a clock then
                   lets it expire (`kvoffload.deadlines`). None: it is waited for, however long that takes.
    lazy_window    free device blocks, from the eviction end, that a lazy store examines (count; 0: all of them)
    admission      what a request must find to be admitted: room for its `whole` prompt; or, `partial`, for what is
                   loaded for it, or for one block if nothing is cached: it gets the others one by one as it runs.
    repeats        one key may stand at several positions of a request, which are then served by one block if it is
                   cached. False: such a request is refused, since keys stand for whole prefixes.
    events         are events of the caches kept for `Engine.take_events`
    window         blocks before a block that its compute reads (count; 0: all of them). A request that grows gives up
                   what lies further back, stored or not. Needs depth 1: at depth 2 the step before still reads it.
    """

    discipline: Discipline
    device_blocks: int
    host_blocks: int
    workers: int = 1
    store_mode: StoreMode = "eager"
    output_from: OutputFrom = "all"
    depth: int = 1
    lazy_window: int = 0
    admission: AdmissionMode = "whole"
    reports: Reports = "per-job"
    repeats: bool = False
    events: bool = False
    window: int = 0
    deadline: float | None = None
    second_blocks: int = 0

    def __post_init__(self) -> None:
        if self.discipline not in ("pinning", "fencing"):
            raise ValueError(f"discipline {self.discipline!r} does not exist; use pinning or fencing")
        if self.store_mode not in ("eager", "lazy"):
            raise ValueError(f"store mode {self.store_mode!r} does not exist; use eager or lazy")
        if self.output_from not in ("all", "first"):
            raise ValueError(f"output_from {self.output_from!r} does not exist; use all or first")
        if self.depth not in (1, 2):
            raise ValueError(f"depth {self.depth!r} does not exist; use 1 or 2")
        if self.admission not in ("whole", "partial"):
            raise ValueError(f"admission {self.admission!r} does not exist; use whole or partial")
        if self.reports not in ("per-job", "marks"):
            raise ValueError(f"reports {self.reports!r} do not exist; use per-job or marks")
        if self.device_blocks < 1 or self.host_blocks < 1 or self.workers < 1:
            raise ValueError("device_blocks, host_blocks and workers must be at least 1")
        if self.second_blocks < 0:
            raise ValueError("second_blocks must not be negative; 0 is no second tier")
        if self.second_blocks and self.reports == "marks":
            raise ValueError("a second tier needs reports per-job: there are marks of stores and loads alone")
        if self.window < 0:
            raise ValueError("window must not be negative; 0 reads every block")
        if self.window and self.depth > 1:
            raise ValueError(f"window {self.window} needs depth 1: at depth {self.depth} what it leaves is still read")
        if self.deadline is not None and not self.deadline > 0:
            raise ValueError("deadline must be a positive number of seconds, or None")
        if self.lazy_window < 0:
            raise ValueError("lazy_window must not be negative; 0 examines every free block")
