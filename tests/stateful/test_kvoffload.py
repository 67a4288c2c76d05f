"""The state machine of `kvproof.lockstep` over kvoffload: both devices, both disciplines, every mode."""

import unittest
from itertools import product

from hypothesis import settings

import kvproof
from kvmodel.contract import DISCIPLINES, Contract
from kvproof.lockstep import DEFAULT_SCOPE
from kvproof.scopes import SCOPES
from kvproof.search.modes import turns
from kvproof.targets.kvoffload import Host, KVOffload, Ledger

RUNS: dict[type[KVOffload], int] = {Ledger: 5, Host: 3}
"""Runs of each case. The host device moves bytes on threads, and is slower. Of 14 planted bugs that ten runs of a case
on the ledger find, each is found by the first four in one case or another."""

STEPS = 120
"""Commands of a run at most."""


def case(target: type[KVOffload], contract: Contract, scope: str = DEFAULT_SCOPE) -> type[unittest.TestCase]:
    """The same commands in every run of the suite."""
    found = kvproof.conformance(target, contract, SCOPES[scope], RUNS[target], STEPS)
    found.settings = settings(found.settings, derandomize=True, database=None)
    return found


for target, discipline in product(RUNS, DISCIPLINES):
    for contract in turns(Contract(discipline)):
        modes = contract.store_mode, contract.output_from, contract.depth, contract.admission, contract.reports
        name = "".join(str(word).capitalize() for word in (target.__name__, discipline, *modes)).replace("-", "")
        globals()[f"Test{name}"] = case(target, contract)

for scope_name, discipline in product(("repeats", "windows"), DISCIPLINES):
    name = f"Test{scope_name.capitalize()}{discipline.capitalize()}"
    globals()[name] = case(Ledger, Contract(discipline), scope_name)
