"""What a target class declares of its engine: the disciplines and modes it has, and the resets it takes.

All of it is optional. What is not declared is taken to be there, and is asked for; but for a second tier, resets of
one tier and workers that die, which few have.
"""

from typing import Any

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvmodel.scope import MEANINGS, Meaning, Scope
from kvproof.scopes import parse_scope


def declared_disciplines(target: type[Any]) -> tuple[Discipline, ...]:
    """The disciplines that a target class says it follows, in `disciplines` or in its `contract`; else both."""
    disciplines = getattr(target, "disciplines", None)
    if isinstance(disciplines, tuple | list | set | frozenset):
        return tuple(d for d in DISCIPLINES if d in disciplines)
    contract = declared_contract(target)
    return DISCIPLINES if contract is None else (contract.discipline,)


def declared_contract(target: type[Any]) -> Contract | None:
    """The only modes that a target class has, from its `contract`; None: it says nothing of them."""
    contract = getattr(target, "contract", None)
    return contract if isinstance(contract, Contract) else None


def declared_meanings(target: type[Any]) -> tuple[Meaning, ...]:
    """What the resets of a target class may mean, from its `meanings`; else every meaning."""
    meanings = getattr(target, "meanings", MEANINGS)
    return tuple(meaning for meaning in MEANINGS if meaning in meanings)


def keeps_survivors(target: type[Any]) -> bool:
    """Whether a reset can leave running requests their blocks, from `survivors`; else yes."""
    return bool(getattr(target, "survivors", True))


def narrowed(target: type[Any], scope: str) -> str:
    """The text of a scope without the resets that a target class does not take, such as `fuzz,survivors=no`."""
    _, sizes = parse_scope(scope)
    text = scope
    meanings = tuple(meaning for meaning in sizes.meanings if meaning in declared_meanings(target))
    if sizes.resets and not meanings:
        text += ",resets=0"
    elif sizes.resets and meanings != sizes.meanings:
        text += f",meanings={'+'.join(meanings)}"
    if sizes.survivors and not keeps_survivors(target):
        text += ",survivors=no"
    return text


def undeclared(target: type[Any], scope: Scope, contract: Contract) -> str:
    """Why a target class cannot be held against a scope in these modes, in a few words; empty: it can."""
    own = declared_contract(target)
    if own is not None and own._replace(environment=contract.environment) != contract:
        return "declares other modes"
    if scope.second_blocks and not getattr(target, "second_tier", False):
        return "declares no second tier"
    if scope.deaths and not getattr(target, "deaths", False):
        return "declares no dying workers"
    if not scope.resets:
        return ""
    tiers = [tiers for tiers in scope.tiers if tiers not in getattr(target, "tiers", ("all",))]
    if tiers:
        return f"declares no reset of the {tiers[0]} tier alone"
    meanings = [meaning for meaning in scope.meanings if meaning not in declared_meanings(target)]
    if meanings:
        return f"declares no reset that means {meanings[0]}"
    return "declares no reset that keeps survivors" if scope.survivors and not keeps_survivors(target) else ""
