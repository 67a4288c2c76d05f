"""Tiers that a reset names: all of them, or one; and which resets of one tier make sense.

A second host tier has no word of its own: what it holds came from the host, so that a reset of the host empties both.
"""

from typing import Literal

from kvmodel.guards import guard

Tiers = Literal["all", "device", "host"]
TIERS: tuple[Tiers, ...] = ("all", "device", "host")


@guard
def names_device(tiers: Tiers) -> bool:
    """Nothing from before the reset may be hit on the device, and no load from before it may publish there."""
    return tiers != "host"


@guard
def names_host(tiers: Tiers) -> bool:
    """Nothing from before the reset may be hit on the host or below it, and nothing on its way there may publish."""
    return tiers != "device"


def objection(meaning: str, requests: str, tiers: str) -> str:
    """Why no client may ask for this reset; empty: it may.

    Under `invalidate` every content is worthless, wherever it is: a tier that was kept would serve it (vLLM issue
    57727: the device cache is reset, and external hits rise right after). No request holds host blocks but by its
    lookup: a reset of the host has nobody to preempt.
    """
    if tiers != "all" and meaning == "invalidate":
        kept = "host" if tiers == "device" else "device"
        return f"a reset of the {tiers} tier alone cannot mean invalidate: the {kept} would serve the old weights' KV"
    if tiers == "host" and requests == "preempt":
        return "a reset of the host tier alone preempts nobody, since no request holds host blocks: use keep"
    return ""
