"""The setting of a machine: one contract at one scope, with the keys that its prompts have."""

from collections.abc import Sequence
from typing import NamedTuple

from kvmodel.contract import Contract
from kvmodel.scope import Scope


class Setting(NamedTuple):
    """What every rule may read besides the state.

    prompt_keys, total_keys  the keys of each request: of its prompt; and with its decoded blocks
    key_names                key_names[key - 1] is the prefix that the key stands for; those of a log come one by one
    """

    contract: Contract
    scope: Scope
    prompt_keys: tuple[tuple[int, ...], ...]
    total_keys: tuple[tuple[int, ...], ...]
    key_names: Sequence[str]
