"""The plan of a run: every verb that checks is a selection from the table of rows (`kvproof.rows`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kvmodel.contract import DISCIPLINES, AdmissionMode, Contract, Deadline, Discipline, OutputFrom, Reports, StoreMode
from kvmodel.errors import BadScope
from kvmodel.machine import Machine
from kvmodel.scope import Scope
from kvproof.job import Job
from kvproof.obligations.runs import is_watched
from kvproof.rows import ALL_SIZES, CONTRACT, ROWS, Instance, Row
from kvproof.scopes import parse_scope
from kvproof.targets.declared import declared_contract, narrowed
from kvproof.targets.hardware import no_cuda
from kvproof.targets.registry import OURS, is_ours, load

MODE_FIELDS = ("store_mode", "output_from", "depth", "admission", "reports", "deadline")
"""Fields of a Contract that an instance or a command line may set."""


@dataclass(frozen=True)
class Selection:
    """What the command line asks for.

    engines      the engines to run; empty: all, and then what is left out has a row that says so
    device       "auto" or the one device to use; auto: every one that is there, which a GPU need not be
    scope        a scope in place of those of the plan, as (name, scope)
    disciplines  the disciplines to run, of those that the target declares
    nightly      also what is too large for every change
    patience_s   how long one call of the target may take; None: as the target says, or 10
    require      a device whose absence is an error; empty: none
    beyond_contract  also the faults that the target's contract with its environment excludes
    reading      of a reset that answered False; empty: as the target declares
    """

    target: str = OURS
    engines: tuple[str, ...] = ()
    disciplines: tuple[Discipline, ...] = DISCIPLINES
    device: str = "auto"
    scope: tuple[str, Scope] | None = None
    store_mode: StoreMode | None = None
    output_from: OutputFrom | None = None
    depth: int | None = None
    admission: AdmissionMode | None = None
    reports: Reports | None = None
    deadline: Deadline | None = None
    seed: int = 0
    patience_s: float | None = None
    nightly: bool = False
    require: str = ""
    known: tuple[str, ...] = ()
    beyond_contract: bool = False
    reading: str = ""

    @property
    def whole(self) -> bool:
        """Whether this is the whole plan for our own target: only then must everything be covered."""
        modes = self.store_mode or self.output_from or self.depth or self.admission or self.reports or self.deadline
        partial = self.engines or self.scope or modes or self.device != "auto"
        return not partial and is_ours(self.target) and self.disciplines == DISCIPLINES


@dataclass(frozen=True)
class Cell:
    """One row in one discipline: its jobs with the seconds that each is expected to take, or why there are none, and
    whether that is an error."""

    jobs: tuple[Job, ...]
    seconds: tuple[float, ...] = ()
    skipped: str = ""
    required: bool = False


@dataclass(frozen=True)
class PlannedRow:
    row: Row
    title: str
    cells: Mapping[Discipline, Cell]


@dataclass(frozen=True)
class Plan:
    """The rows of a run, and which disciplines have a column."""

    selection: Selection
    rows: tuple[PlannedRow, ...]

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, row by row and in each by discipline."""
        return tuple(chain.from_iterable(cell.jobs for row in self.rows for cell in row.cells.values()))

    @property
    def seconds(self) -> tuple[float, ...]:
        """What each of `jobs` is expected to take; only the order that it makes matters."""
        return tuple(chain.from_iterable(cell.seconds for row in self.rows for cell in row.cells.values()))


def build(selection: Selection) -> Plan:
    """The plan for a selection. Raises BadScope for a scope of the table that makes no sense."""
    return Plan(selection, tuple(_planned(selection, ROWS)))


def _planned(selection: Selection, rows: Sequence[Row]) -> Iterator[PlannedRow]:
    ours = is_ours(selection.target)
    watched = not ours and is_watched(load(selection.target))
    for row in rows:
        if selection.engines and row.engine not in selection.engines:
            continue
        if row.engine == "robustness" and not _declared(row, selection):
            continue
        if selection.scope is not None and _left_out(row, selection):
            continue
        if ours and not selection.engines and not (row.check or row.nightly):
            continue  # for targets that choose in their own way alone
        wanted, reason = _devices(row, selection)
        if reason and selection.engines and reason.startswith(_NOT_ON):
            continue  # somebody who asks for one engine on one device knows that others were not asked for
        if not ours and (row.watched if watched else row.foreign) is None:
            if not row.foreign_reason:
                continue
            reason = row.foreign_reason if row.foreign is None else "held to its obligations instead"
        required = ours and bool(selection.require) and selection.require in row.devices
        if reason and required:
            reason = f"--require {selection.require}: {reason}"
        skipped = Cell((), skipped=reason, required=required)
        cells: dict[Discipline, Cell] = {
            discipline: skipped if reason else _cell(row, selection, discipline, wanted)
            for discipline in selection.disciplines
        }
        if all(not cell.jobs and not cell.skipped for cell in cells.values()):
            continue
        yield PlannedRow(row, _title(row, selection), cells)


def _declared(row: Row, selection: Selection) -> bool:
    """Whether faults beyond the contract were asked for, and the target declares that there is this one."""
    return selection.beyond_contract and row.options["fault"] in load(selection.target).beyond


def _left_out(row: Row, selection: Selection) -> bool:
    """With a scope of somebody's choice: rows about scopes of their own; and all transitions on real threads, which can
    be very many, only if `--device host` (or `cuda`) asks for them."""
    return row.own_scopes or (row.options.get("cover") == "transitions" and selection.device not in ("host", "cuda"))


def _title(row: Row, selection: Selection) -> str:
    """A foreign target has no devices to name, and `conform ledger` is all of its conform."""
    whole = is_ours(selection.target) or row.group == CONTRACT or row.title not in ("conform ledger", "soak host")
    return row.title if whole else row.engine


def _cell(row: Row, selection: Selection, discipline: Discipline, devices: tuple[str, ...]) -> Cell:
    jobs = tuple(_jobs(row, selection, discipline, devices))
    return Cell(jobs, tuple(row.seconds.get(f"{job.scope_name} {discipline}", 1.0) for job in jobs))


_NOT_ON = "not on --device"


def _devices(row: Row, selection: Selection) -> tuple[tuple[str, ...], str]:
    """The devices of a row that are wanted, and why none is."""
    if not is_ours(selection.target) or not row.devices:
        return ("",), ""
    wanted = tuple(device for device in row.devices if selection.device in ("auto", device))
    if not wanted:
        return (), f"{_NOT_ON} {selection.device}"
    if "cuda" in wanted and (reason := no_cuda(gated=row.engine != "soak")):
        rest = tuple(device for device in wanted if device != "cuda")
        return rest, "" if rest else reason
    return wanted, ""


def _jobs(row: Row, selection: Selection, discipline: Discipline, devices: tuple[str, ...]) -> Iterator[Job]:
    foreign = None if is_ours(selection.target) else load(selection.target)
    declared = None if foreign is None else declared_contract(foreign)
    for instance in _instances(row, selection, discipline):
        text = instance.scope if foreign is None else narrowed(foreign, instance.scope)
        name, scope = selection.scope or parse_scope(text)
        own = declared or Contract(discipline, **_modes(instance))
        contract = own._replace(discipline=discipline, **_modes(selection))
        if not row.sizeless and not _go_together(contract, scope, asked_for=selection.scope is not None):
            continue
        for device in devices:
            yield Job(
                engine=row.engine,
                target=selection.target,
                discipline=discipline,
                scope_name=ALL_SIZES if row.sizeless else name,
                scope=scope,
                contract=contract,
                seed=selection.seed,
                patience_s=selection.patience_s,
                device=device,
                options={
                    **row.options,
                    **(row.foreign_options if foreign is not None else {}),
                    "known": selection.known,
                    "reading": selection.reading,
                },
                title=_title(row, selection),
            )


def _go_together(contract: Contract, scope: Scope, asked_for: bool) -> bool:
    """Whether a scope goes with these modes. BadScope if not, and somebody asked for that scope: a scope of the plan is
    left out where the modes that were asked for rule it out."""
    try:
        Machine(contract, scope)
    except BadScope:
        if asked_for:
            raise
        return False
    return True


def _modes(chosen: Instance | Selection) -> dict[str, Any]:
    """The modes that an instance or a command line names."""
    modes = {name: getattr(chosen, name, None) for name in MODE_FIELDS}
    return {name: value for name, value in modes.items() if value is not None}


def _instances(row: Row, selection: Selection, discipline: Discipline) -> tuple[Instance, ...]:
    if selection.scope is not None:
        return (Instance(selection.scope[0]),)
    if not is_ours(selection.target):
        instances = row.watched if is_watched(load(selection.target)) else row.foreign
        return (instances or {}).get(discipline, ())
    return row.check.get(discipline, ()) + (row.nightly.get(discipline, ()) if selection.nightly else ())
