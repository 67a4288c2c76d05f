"""refused-changes-nothing."""

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if after._replace(faults_left=before.faults_left) != before:
        return f"{type(action).__name__} was refused and changed the state"
    return None


PROPERTY = Property(
    "refused-changes-nothing",
    "What is refused changes nothing.",
    on_step=on_step,
    actions=frozenset({"ForgeReport", "FreeTwice"}),
)
