"""The seam between the command line and the engines of checking: one job in, one result out."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kvmodel.contract import Contract, Discipline
from kvmodel.scope import Scope
from kvproof.failure import Failure
from kvproof.verdict import Result, Verdict

Progress = Callable[[str], None]
"""Says in a few words how far the engine is. Cheap: may be called often, and is shown at most once a second."""

Cut = Callable[[], bool]
"""Whether the engine must stop now and return what it has, as UNDETERMINED. Cheap: ask it every few steps."""


@dataclass(frozen=True)
class Job:
    """One run of one engine, as plain data: it is sent to another process.

    engine    a key of `kvproof.engines.ENGINES`, or `module:function`
    target    what `--target` takes; `device` is the device it runs on, or empty
    seed      of everything random in it
    budget_s  seconds after which `cut` answers True; None: never
    options   engine-specific words, such as {"commands": 12000}
    title     what reports call it, where the engine's name and the device would not tell it from others
    patience_s  how long one call of the target may take until it is a hang; None: as the target says, or 10
    """

    engine: str
    target: str
    discipline: Discipline
    scope_name: str
    scope: Scope
    contract: Contract
    seed: int = 0
    budget_s: float | None = None
    device: str = ""
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    title: str = ""
    patience_s: float | None = None

    def result(
        self,
        verdict: Verdict,
        seconds: float,
        *,
        states: int | None = None,
        transitions: int | None = None,
        detail: str = "",
        failure: Failure | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> Result:
        """A result of this job."""
        return Result(
            engine=self.engine,
            target=self.target,
            discipline=self.discipline,
            scope=self.scope_name,
            property=failure.property if failure is not None else None,
            verdict=verdict,
            seconds=seconds,
            states=states,
            transitions=transitions,
            detail=detail,
            failure=failure,
            counts=dict(counts or {}),
        )

    def __str__(self) -> str:
        title = self.title or self.engine
        told = [word for word in (self.device, self.scope_name) if word not in title.split()]
        return " ".join(word for word in (title, *told, self.discipline) if word)


def reading_of(job: Job) -> str:
    """How the job wants a reset read that answered False, by its option `reading`; empty: as its target says."""
    reading = job.options.get("reading", "")
    assert isinstance(reading, str)
    return reading


class Engine(Protocol):
    """An engine of checking."""

    def __call__(self, job: Job, progress: Progress, cut: Cut) -> Result:
        """Run the job. Violations, hangs and exceptions of the target are results, and never raised from here."""
        ...


class UnknownEngine(LookupError):
    """No engine has this name."""


def load_engine(name: str) -> Engine:
    """The engine of this name. `ENGINES` holds each as a callable or, so as not to import all, `module:function`."""
    found: Engine | str
    if ":" in name:
        found = name
    else:
        from kvproof.engines import ENGINES  # only now: engines may be heavy

        if name not in ENGINES:
            raise UnknownEngine(f"engine {name!r} does not exist; there are {', '.join(ENGINES)}")
        found = ENGINES[name]
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        engine: Engine = getattr(importlib.import_module(module), attribute)
        return engine
    return found
