"""The actions, each written once: guard and update, for every size."""

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action
from kvspecs.proof.actions import admission, completions, launching, requests, resets, workers

ALL: tuple[Action, ...] = (
    *requests.ACTIONS,
    *admission.ACTIONS,
    *launching.ACTIONS,
    *workers.ACTIONS,
    *completions.ACTIONS,
    *resets.ACTIONS,
)


def actions_of(discipline: Discipline) -> tuple[Action, ...]:
    """The actions that a discipline has."""
    return tuple(action for action in ALL if action.only in ("", discipline))


def action_names(discipline: Discipline) -> tuple[str, ...]:
    return tuple(action.name for action in actions_of(discipline))
