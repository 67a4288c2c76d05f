"""fuzz in this process, on a target class of these tests."""

from unittest.mock import patch

from kvmodel.contract import Contract, Discipline
from kvproof.engines import fuzz
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvproof.verdict import Result


def fuzzed_in_turns(target: type, discipline: Discipline, commands: int) -> Result:
    """The same in batches of two runs in place of six: so few commands go through two of the modes that way, and not
    through one alone."""
    with patch.object(fuzz, "EXAMPLES", 2):
        return fuzzed(target, discipline, commands)


def fuzzed(target: type, discipline: Discipline, commands: int, seed: int = 0, scope: str = "fuzz") -> Result:
    """What fuzz says of a target class that can be imported. scope: its name"""
    job = Job(
        engine="fuzz",
        target=f"{target.__module__}:{target.__name__}",
        discipline=discipline,
        scope_name=scope,
        scope=SCOPES[scope],
        contract=Contract(discipline),
        seed=seed,
        options={"commands": commands},
    )
    return fuzz.run(job, lambda text: None, lambda: False)
