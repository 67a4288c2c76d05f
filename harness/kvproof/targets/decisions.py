"""Naming a decision that the target's scheduler would take and must not, or would not take and must."""

from collections.abc import Callable
from typing import Any

from kvmodel import Action, Forbidden, Machine, State, policy
from kvmodel import actions as act
from kvmodel.rules import launch
from kvmodel.transfer_job import QUEUED
from kvproof.targets.command import request_name
from kvproof.targets.divergence import Divergence
from kvproof.targets.naming import BY_RULE
from kvspecs.catalogue import AGREEMENT, NAMES


def offers(
    machine: Machine, state: State, expected: frozenset[tuple[object, ...]], seen: frozenset[tuple[object, ...]]
) -> Divergence:
    """The target's scheduler would take other decisions than the machine's."""
    missing, extra = expected - seen, seen - expected
    offer = min(missing or extra, key=_offer_words)
    odd = _offer_words(offer)
    if missing:
        name = _left(machine, state, str(offer[0]))
        sentence = f"The target's scheduler would not {odd}, and can."
    else:
        name, why = _overeager(machine, state, offer)
        sentence = f"The target's scheduler would {odd}, and must not{why}."
    verb = odd.partition(" ")[0]
    return Divergence(
        name,
        sentence,
        (_offers_words(expected),),
        (_offers_words(seen),),
        None,
        ("offers", verb, "missing" if missing else "extra"),
    )


def _left(machine: Machine, state: State, kind: str) -> str:
    """The property that suffers when an action of this kind is not taken."""
    if kind == "Launch":
        choice = policy.launching(machine.setting, state)
        if choice.stores and not choice.computes and not any(job.progress[0] == QUEUED for job in state.jobs):
            return "every-full-block-is-stored-or-refused"
    if kind == "PreemptUnderPressure":
        return "every-request-can-finish"
    return "work-remaining-keeps-the-engine-stepping"


def _overeager(machine: Machine, state: State, offer: tuple[object, ...]) -> tuple[str, str]:
    """The property that an action would break which the target would take, and why: the contract's reason, or the
    policy's. Whoever would launch nothing never comes to rest; whom the policy puts last waits for the others."""
    action = _ASKED[str(offer[0])](offer)
    try:
        machine.check(state, action)
    except Forbidden as forbidden:
        why = f": {forbidden.why}"
        setting = machine.setting
        waits = launch.is_awaiting_output(setting, state) or launch.is_lagging(state)
        if isinstance(action, act.Launch) and not waits:
            return "everything-drains", why
        if isinstance(action, act.Admit) and not state.requests[action.request].jobs:
            return "pinned-is-not-evicted", why
        return forbidden.rule if forbidden.rule in NAMES else BY_RULE.get(forbidden.rule, AGREEMENT), why
    if isinstance(action, act.Lookup | act.Promote | act.Admit | act.Grow | act.PreemptUnderPressure):
        return "every-request-can-finish", ": another request comes first"
    return AGREEMENT, ""


_ASKED: dict[str, Callable[[tuple[Any, ...]], Action]] = {
    "Lookup": lambda offer: act.Lookup(offer[1]),
    "Promote": lambda offer: act.Promote(offer[1]),
    "Admit": lambda offer: act.Admit(offer[1]),
    "Grow": lambda offer: act.Grow(offer[1]),
    "Launch": lambda _: act.Launch(),
    "Wake": lambda offer: act.Wake(offer[1]),
    "Finish": lambda offer: act.Finish(offer[1]),
    "HandleOutput": lambda _: act.HandleOutput(),
    "PreemptUnderPressure": lambda offer: act.PreemptUnderPressure(offer[1]),
}
"""The action that a key in `offers` stands for, its choice left open."""


def left_undone(machine: Machine, before: State, after: State, taken: list[Action]) -> Divergence | None:
    """After one whole scheduling call nothing of what it is for may be left: except that nobody is admitted in a
    call that preempted, that who was admitted in this call grows in the next one, and that a call launches once however
    deep the pipeline is, and whatever its stores have evicted from the host that kept a cascade back.

    before: as the call's launch found it. A launch may evict a host hit, and who needed a block to load that into can
    then be admitted without it: that is for the next call. So it is after a promotion, which may evict one too.
    """
    preempted = any(isinstance(action, act.PreemptUnderPressure) for action in taken)
    skipped = (act.Launch,) if preempted else (act.Launch, act.Wake, act.Grow, act.Promote, act.Admit)
    admitted = [action.request for action in taken if isinstance(action, act.Admit)]
    launches_again = machine.setting.contract.depth > 1 or machine.setting.scope.second_blocks
    promoted = any(isinstance(action, act.Promote) for action in taken)
    launched = any(isinstance(action, act.Launch) for action in taken)
    decided = [action for action in machine.actions(before) if not isinstance(action, act.Launch)]
    launches = [action for action in machine.actions(after) if isinstance(action, act.Launch)]
    for action in (*decided, *launches):
        if isinstance(action, act.Grow) and action.request in admitted:
            continue
        if promoted and isinstance(action, act.Admit):
            continue
        if launched and isinstance(action, act.Launch) and launches_again:
            continue
        if isinstance(action, skipped) and not (isinstance(action, act.Admit) and machine.setting.scope.lookups):
            words = _offer_words(act.key(action))
            return Divergence(
                _left(machine, after, type(action).__name__),
                f"The target's scheduling call is over, and it could still {words}.",
                (f"would still {words}",),
                ("nothing more to do",),
                type(action),
                ("left undone", words.partition(" ")[0]),
            )
    return None


def _offer_words(offer: tuple[object, ...]) -> str:
    kind, *rest = offer
    words = {"HandleOutput": "handle output", "PreemptUnderPressure": "preempt under pressure"}.get(
        str(kind), str(kind).lower()
    )
    who = [request_name(number) for number in rest if isinstance(number, int)]
    return " ".join([words, *who])


def _offers_words(found: frozenset[tuple[object, ...]]) -> str:
    return "would: " + (", ".join(sorted(map(_offer_words, found))) or "nothing")
