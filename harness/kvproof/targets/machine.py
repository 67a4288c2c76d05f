"""The reference machine as a target: what `explore` refutes is replayed on it, each property judged after each step."""

from kvmodel import Action, Forbidden, Machine
from kvmodel import actions as act
from kvmodel.setting import Setting
from kvmodel.state import State
from kvproof.targets.command import Command
from kvproof.targets.explain import ALWAYS_REFUSED
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.view import View, expected
from kvproof.targets.wording import action_of
from kvspecs.catalogue import JUDGED
from kvspecs.property import Broken, Property


class MachineTarget:
    """Takes commands of single actions. A property that its own step breaks is a crash that names the property."""

    exact = True

    def __init__(self, setting: Setting) -> None:
        self.machine = Machine(setting.contract, setting.scope)
        self.state = self.machine.initial()

    def perform(self, command: Command) -> Outcome:
        machine, before = self.machine, self.state
        action = action_of(machine, before, command)
        if action is None:
            return Refused(f"the machine takes single actions, and {command.verb} is none that it could take now")
        try:
            machine.check(before, action)
            after = machine.step(before, action)
        except Forbidden as forbidden:
            names = {candidate.name for candidate in JUDGED}
            return Crashed(forbidden.rule, forbidden.why) if forbidden.rule in names else Refused(forbidden.why)
        for candidate in JUDGED:
            broken = self._broken(candidate, before, action, after)
            if broken is not None:
                return Crashed(candidate.name, broken)
        self.state = after
        if isinstance(action, ALWAYS_REFUSED):
            return Refused("refused by the contract")
        return Answer(machine.answer(before, action) if isinstance(action, act.Reset) else None)

    def _broken(self, candidate: Property, before: State, action: Action, after: State) -> Broken:
        setting = self.machine.setting
        broken = candidate.on_state(setting, after) if candidate.on_state is not None else None
        applies = not candidate.actions or type(action).__name__ in candidate.actions
        if broken is None and candidate.on_step is not None and applies:
            return candidate.on_step(setting, before, action, after)
        return broken

    def view(self) -> View:
        return expected(self.state)

    def close(self) -> None:
        """Nothing to give back."""
