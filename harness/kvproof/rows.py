"""The rows of the plan: which engine runs at which scopes, in `check`, at night, and on targets from elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kvmodel.contract import DISCIPLINES, Deadline, Discipline, OutputFrom, Reports, StoreMode

Group = Literal["contract", "target"]
CONTRACT: Group = "contract"
TARGET: Group = "target"


class Instance(NamedTuple):
    """What one job works on: a scope as `--scope` takes it, and the modes that differ from a contract's defaults."""

    scope: str
    store_mode: StoreMode = "eager"
    output_from: OutputFrom = "all"
    depth: int = 1
    reports: Reports = "per-job"
    deadline: Deadline = "none"


Instances = Mapping[Discipline, tuple[Instance, ...]]


@dataclass(frozen=True)
class Row:
    """One row of the plan, and of the screen.

    group    whether it is about the contract alone, or about a target
    devices  one job each; empty: the engine needs none
    check    what `check` runs; nightly: what `check --all` runs in addition
    foreign  what it runs for a target from elsewhere; None: it cannot, and its row says `foreign_reason`, or there
             is no row if that is empty: it is about devices, and a foreign target has none to choose from
    watched  the same for one that is held to its obligations and not to the machine
    foreign_options  in place of those of its options, for a target from elsewhere
    own_scopes  whether it is about just these scopes, or their modes: another scope, given by hand, leaves it out
    label    of the cells, in place of the names of the scopes
    exhaustive  whether it takes every step of its scopes, rather than samples
    sizeless  whether it is about all sizes at once: its jobs have no scope of their own
    seconds  expected, of jobs that take longer than a second, by "scope discipline": the longest start first
    """

    title: str
    group: Group
    engine: str
    devices: tuple[str, ...]
    check: Instances
    nightly: Instances = field(default_factory=dict[Discipline, tuple[Instance, ...]])
    foreign: Instances | None = None
    foreign_reason: str = "foreign target"
    watched: Instances | None = None
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    foreign_options: Mapping[str, object] = field(default_factory=dict[str, object])
    label: str = ""
    own_scopes: bool = False
    sizeless: bool = False
    exhaustive: bool = True
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])


def at(*scopes: str) -> tuple[Instance, ...]:
    """Instances of these scopes with the default modes."""
    return tuple(Instance(scope) for scope in scopes)


def both(*scopes: str) -> Instances:
    """The same scopes in both disciplines."""
    return {discipline: at(*scopes) for discipline in DISCIPLINES}


FUZZED = "fuzz,tiers=all+device+host"
"""The fuzz scope with what not every target has."""

_FAULTS = "duplicates=2,forgeries=1,double_frees=1,failures=1,partial_failures=1,expiries=1,deaths=1"
DYING = (
    "cascades,forgeries=1,double_frees=1,deaths=1",
    f"repeats,tiers=all+device+host,second=3,{_FAULTS}",
    f"windows,tiers=all+device+host,second=3,{_FAULTS}",
)
"""Scopes with a worker that dies: then little is left to do, so that they come beside those where none does, with which
they have every two modes that are neither searched together nor refused (`kvproof.pairs`)."""

LAGGING = Instance("s2", output_from="first")
"""Where the second worker lags behind the first."""

SEARCHED = "serving,device=4,host=2,workers=1,prompts=ab,resets=2,meanings=evict"
"""Where a target that cannot follow the machine is given every sequence of commands: one request, every reset."""

BELOW = "s1,second=1,resets=1,tiers=device,meanings=evict,aborts=no,preempts=no"
"""What the device loses comes back from the second tier alone."""

CORNERS: Instances = {
    "pinning": (
        Instance("s2", "lazy", "first"),
        Instance("s2,device=3,resets=0,aborts=no", output_from="first"),
        Instance("s2,device=3,prompts=a,decode=2,resets=0,aborts=no,preempts=no", "eager", "first", 2),
        Instance("s1,meanings=evict,survivors=yes"),
        Instance("s1,prompts=a+a,host=2,resets=0,aborts=no"),
        Instance("s1,device=1,prompts=a+a,lookups=yes,resets=0,aborts=no"),
        Instance("s1,prompts=a+a,resets=0,aborts=no,preempts=no,failures=1"),
        Instance("s1,prompts=a,host=2,meanings=evict,tiers=device,aborts=no"),
        Instance("s2,prompts=a,host=2,aborts=no,preempts=no,forgeries=1,failures=1", reports="marks"),
        Instance("s1,prompts=aa,resets=0,aborts=no,lookups=yes,repeats=yes"),
        Instance("s2,resets=0,aborts=no,deaths=1"),
        Instance("s2,aborts=no,preempts=no,deaths=1", deadline="expire"),
        Instance("s1,device=1,prompts=a+a,lookups=yes,meanings=evict,tiers=device,aborts=no,preempts=no,failures=1"),
        Instance(f"{BELOW},failures=1"),
        Instance("s1,host=2,second=1,resets=0,aborts=no,preempts=no"),
    ),
    "fencing": (
        Instance("s1,prompts=a,host=2"),
        Instance("s2,resets=0,aborts=no,deaths=1"),
        Instance("s1,decode=2,window=1,resets=0,aborts=no,preempts=no"),
        Instance("s1,prompts=a,host=2", "lazy"),
        Instance("s1,device=1,host=2,prompts=a+b,resets=0,aborts=no"),
        Instance("s1,prompts=ab+c,host=2,resets=0,aborts=no,preempts=no"),
        Instance(f"{BELOW},losses=1", deadline="expire"),
    ),
}
"""Small scopes that each bring about what the named ones do not, found with the bank of bugs (`tests/bugs/in_check`): a
load that overtakes a lagging reader, a worker that lags behind a pipeline of two steps, a lookup that has found what
another request's load fails to read, two requests that wait for one store, a promotion that fails or is overdue, a
second tier that is smaller than the host."""

ALL_SIZES = "all sizes"
"""In place of the name of a scope, where there is none."""

ROWS: tuple[Row, ...] = (
    Row(
        "prove",
        CONTRACT,
        "prove",
        (),
        check=both("s1"),
        foreign_reason="",
        options={"certified": True},
        label=ALL_SIZES,
        own_scopes=True,
        sizeless=True,
    ),
    Row(
        "prove afresh",
        CONTRACT,
        "prove",
        (),
        check={},
        nightly=both("s1"),
        foreign_reason="",
        label=ALL_SIZES,
        own_scopes=True,
        sizeless=True,
        seconds={f"{ALL_SIZES} pinning": 30.0, f"{ALL_SIZES} fencing": 30.0},
    ),
    Row(
        "explore",
        CONTRACT,
        "explore",
        (),
        check={"pinning": at("s1", "s2", "s3"), "fencing": (*at("s1", "s2"), LAGGING)},
        nightly={"pinning": at("s4")},
        options={"coverage": "one prompt"},
        seconds={"s4 pinning": 25.0, "s3 pinning": 5.0},
    ),
    Row(
        "explore modes",
        CONTRACT,
        "explore",
        (),
        check=both("s1"),
        foreign_reason="",
        options={"modes": "alone", "coverage": True},
        own_scopes=True,
        seconds={"s1 fencing": 4.0},
    ),
    Row(
        "explore pairs",
        CONTRACT,
        "explore",
        (),
        check={},
        nightly=both("s1", "s2"),
        foreign_reason="",
        options={"modes": "pairs", "coverage": True},
        own_scopes=True,
        seconds={"s1 pinning": 11.0, "s2 pinning": 75.0, "s1 fencing": 90.0, "s2 fencing": 450.0},
    ),
    Row(
        "conform ledger",
        TARGET,
        "conform",
        ("ledger",),
        check={"pinning": at("s1", "s2", "s3"), "fencing": at("s1", "s2")},
        foreign=both("s1", "s2"),
        seconds={"s3 pinning": 22.0, "s2 fencing": 4.0},
    ),
    Row(
        "conform reduced",
        TARGET,
        "conform",
        ("ledger",),
        check={},
        nightly={"pinning": at("s4"), "fencing": at("s3")},
        foreign_reason="",
        options={"late": True},
        own_scopes=True,
        seconds={"s4 pinning": 190.0, "s3 fencing": 75.0},
    ),
    Row(
        "conform corners",
        TARGET,
        "conform",
        ("ledger",),
        check=CORNERS,
        nightly={
            "pinning": (Instance("s2,duplicates=1"), Instance(f"{BELOW},losses=1,expiries=1", deadline="expire")),
            "fencing": (
                LAGGING,
                Instance("s2,aborts=no,preempts=no,deaths=1", deadline="expire"),
                Instance("s1,prompts=a+a,meanings=evict,aborts=no,preempts=no,survivors=yes"),
                Instance(f"{BELOW},losses=1,expiries=1", deadline="expire"),
            ),
        },
        foreign_reason="",
        options={"late": True},
        label="small scopes",
        own_scopes=True,
        seconds={"s2,device=3,resets=0,aborts=no pinning": 2.0},
    ),
    Row(
        "conform modes",
        TARGET,
        "conform",
        ("ledger",),
        check=both("s1"),
        foreign=both("s1"),
        options={"modes": "alone", "late": True},
        own_scopes=True,
        seconds={"s1 fencing": 8.0, "s1 pinning": 5.0},
    ),
    Row(
        "conform whole",
        TARGET,
        "conform",
        ("ledger",),
        check={},
        nightly=both("s1"),
        foreign_reason="",
        options={"modes": "alone"},
        own_scopes=True,
        seconds={"s1 fencing": 14.0, "s1 pinning": 5.0},
    ),
    Row(
        "conform larger",
        TARGET,
        "conform",
        ("ledger",),
        check=both("s2"),
        foreign_reason="",
        options={"modes": "larger", "late": True},
        own_scopes=True,
        seconds={"s2 fencing": 2.0, "s2 pinning": 2.0},
    ),
    Row(
        "conform listed",
        TARGET,
        "conform",
        ("ledger",),
        check=both("s1", "s2"),
        foreign_reason="",
        options={"modes": "listed", "late": True},
        own_scopes=True,
        seconds={"s1 fencing": 5.0, "s1 pinning": 4.0, "s2 fencing": 13.0, "s2 pinning": 9.0},
    ),
    Row(
        "conform pairs",
        TARGET,
        "conform",
        ("ledger",),
        check={},
        nightly=both("s1", "s2"),
        foreign_reason="",
        options={"modes": "pairs", "late": True},
        own_scopes=True,
        seconds={"s1 pinning": 50.0, "s2 pinning": 230.0, "s1 fencing": 110.0, "s2 fencing": 660.0},
    ),
    Row(
        "conform host",
        TARGET,
        "conform",
        ("host",),
        check=both("s2"),
        nightly=both(BELOW),
        foreign_reason="",
        options={"cover": "transitions"},
        seconds={"s2 pinning": 2.0, "s2 fencing": 20.0},
    ),
    Row(
        "conform phases",
        TARGET,
        "conform",
        ("host",),
        check=both("s3"),
        foreign_reason="",
        options={"cover": "pairs"},
        own_scopes=True,
        seconds={"s3 pinning": 3.0, "s3 fencing": 3.0},
    ),
    Row(
        "fuzz",
        TARGET,
        "fuzz",
        ("ledger", "host", "cuda"),
        check=both(FUZZED),
        nightly=both("repeats", "windows", "cascades", *DYING),
        foreign=both("fuzz"),
        watched=both("serving"),
        options={"commands": 2000},
        foreign_options={"commands": 3000},  # which no search may ever see
        exhaustive=False,
        seconds={f"{FUZZED} pinning": 3.0, f"{FUZZED} fencing": 3.0},
    ),
    *(
        Row(
            title,
            TARGET,
            "robustness",
            (),
            check={},
            foreign_reason="",
            watched=both("serving"),
            options={"fault": fault},
            exhaustive=False,
            seconds={f"serving {discipline}": 5.0 for discipline in DISCIPLINES},
        )
        for title, fault in (("lost reports", "lose_report"), ("doubled reports", "duplicate_report"))
    ),
    Row(
        "search",
        TARGET,
        "search",
        (),
        check={},
        foreign_reason="",
        watched=both(SEARCHED),
        seconds={f"{SEARCHED} {discipline}": 60.0 for discipline in DISCIPLINES},
    ),
    Row(
        "soak host",
        TARGET,
        "soak",
        ("host",),
        check=both("s7"),
        foreign_reason="drives kvoffload's devices",
        options={"copies": 1_500},
        label="free-running",
        exhaustive=False,
        seconds={"s7 pinning": 5.0, "s7 fencing": 4.0},
    ),
    Row(
        "conform cuda",
        TARGET,
        "conform",
        ("cuda",),
        check={"pinning": at("s2"), "fencing": at("s1")},
        nightly={"pinning": at(BELOW), "fencing": at("s2", BELOW)},
        foreign_reason="",
        options={"cover": "transitions"},
        seconds={"s2 pinning": 10.0, "s1 fencing": 10.0, "s2 fencing": 60.0},
    ),
    Row(
        "soak cuda",
        TARGET,
        "soak",
        ("cuda",),
        check=both("s7"),
        foreign_reason="",
        options={"copies": 1_500},
        label="free-running",
        exhaustive=False,
        seconds={"s7 pinning": 5.0, "s7 fencing": 5.0},
    ),
)
