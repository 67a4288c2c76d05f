"""kvmodel: the reference state machine of KV-cache offloading. It is the contract; it reads like a specification.

Start with `machine` (the four words), then `rules/` (one module an action), `block_pool` (the double free is refused
there), `owners` (who holds each reference) and `streams` (which operation may run).
"""

from kvmodel.actions import ACTIONS, Action
from kvmodel.contract import Contract
from kvmodel.errors import BadScope
from kvmodel.forbidden import Forbidden
from kvmodel.machine import Machine
from kvmodel.scope import Scope
from kvmodel.state import State

__all__ = ["ACTIONS", "Action", "BadScope", "Contract", "Forbidden", "Machine", "Scope", "State"]
