"""The contract: the modes in which an engine works. Sizes are in `kvmodel.scope`."""

from typing import Literal, NamedTuple

from kvmodel.errors import BadScope

Discipline = Literal["pinning", "fencing"]
StoreMode = Literal["eager", "lazy"]
OutputFrom = Literal["all", "first"]
AdmissionMode = Literal["whole", "partial"]
Reports = Literal["per-job", "marks"]
Deadline = Literal["none", "expire"]

DISCIPLINES: tuple[Discipline, ...] = ("pinning", "fencing")
STORE_MODES: tuple[StoreMode, ...] = ("eager", "lazy")
OUTPUT_FROM: tuple[OutputFrom, ...] = ("all", "first")
DEPTHS: tuple[int, ...] = (1, 2)
ADMISSIONS: tuple[AdmissionMode, ...] = ("whole", "partial")
REPORTS: tuple[Reports, ...] = ("per-job", "marks")
DEADLINES: tuple[Deadline, ...] = ("none", "expire")
FAULTS: tuple[str, ...] = ("duplicate", "loss", "forgery", "double-free", "failure")


class Contract(NamedTuple):
    """The modes of one engine.

    discipline   who owns the blocks of a copy. `pinning`: the job owns its sources and destinations, as
                 SimpleCPUOffloadConnector does (vLLM PR 39726). `fencing`: device blocks may be reused under a
                 running copy, and whoever reuses them waits for it, as OffloadingConnector does (PRs 41956, 48102).
    store_mode   `eager`: computed blocks of running requests are stored. `lazy`: cached free blocks are, before
                 they are evicted.
    output_from  whose compute ends a step: that of `all` workers, or of the `first` alone, as engines do that take
                 the sampled tokens from one rank: the others may lag by one step, and their streams must order it.
    depth        of the pipeline: how many steps may await their output at once. 1: the output of a step is handled
                 before the next one is launched. 2, asynchronous scheduling: step N + 1 is launched before the output
                 of step N is handled, on the assumption that what N computes will be there (vLLM PR 45357).
    reports      what workers say of their copies. `per-job`: that one job is copied. `marks`: of a stream, that all its
                 jobs up to an id are (a high-water mark).
    deadline     what becomes of a job whose report does not come. `none`: it is waited for, for ever, since a hang that
                 everybody sees is better than corruption that nobody sees (vLLM PR 44541). `expire`: after a deadline
                 it is cleaned up as a failure, and its late reports are absorbed (PR 46019); and a dead worker is
                 declared dead, which ends everything.
    environment  the faults that the engine promises to survive (a subset of FAULTS).
    admission    `whole`: a request is admitted with room for all of its prompt. `partial`: with what it hits alone, or
                 one block if it hits nothing; it grows block by block as it runs. Then requests can each hold a part
                 and wait for the rest (vLLM issues 45387 and 45388), unless one of them gives way.
    """

    discipline: Discipline
    store_mode: StoreMode = "eager"
    output_from: OutputFrom = "all"
    depth: int = 1
    deadline: Deadline = "none"
    environment: frozenset[str] = frozenset(FAULTS)
    admission: AdmissionMode = "whole"
    reports: Reports = "per-job"

    @property
    def pins(self) -> bool:
        return self.discipline == "pinning"

    @property
    def lazy(self) -> bool:
        return self.store_mode == "lazy"

    @property
    def partial(self) -> bool:
        return self.admission == "partial"

    @property
    def marks(self) -> bool:
        return self.reports == "marks"

    @property
    def expires(self) -> bool:
        return self.deadline == "expire"


def validated(contract: Contract) -> Contract:
    """The same contract, or BadScope when a mode has a value that does not exist."""
    if contract.discipline not in DISCIPLINES:
        raise BadScope(f"discipline {contract.discipline!r} does not exist; use pinning or fencing")
    if contract.store_mode not in STORE_MODES:
        raise BadScope(f"store mode {contract.store_mode!r} does not exist; use eager or lazy")
    if contract.output_from not in OUTPUT_FROM:
        raise BadScope(f"output_from {contract.output_from!r} does not exist; use all or first")
    if contract.depth not in DEPTHS:
        raise BadScope(f"depth {contract.depth!r} does not exist; use 1 or 2")
    if contract.admission not in ADMISSIONS:
        raise BadScope(f"admission {contract.admission!r} does not exist; use whole or partial")
    if contract.reports not in REPORTS:
        raise BadScope(f"reports {contract.reports!r} do not exist; use per-job or marks")
    if contract.deadline not in DEADLINES:
        raise BadScope(f"deadline {contract.deadline!r} does not exist; use none or expire")
    unknown = contract.environment - set(FAULTS)
    if unknown:
        raise BadScope(f"fault {sorted(unknown)[0]!r} does not exist; use {', '.join(FAULTS)}")
    return contract
