"""States and transitions made wrong by hand: reachable ones, with a change that no sound rule makes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.seeds.driving import state_after

from kvmodel import Contract, Scope, State
from kvmodel.actions import Action, Reset
from kvspecs.property import Broken, Property

PINNING, FENCING = Contract("pinning"), Contract("fencing")
AB = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("ab", "ab"), resets=3, duplicates=3, losses=1)
TWO_WORKERS = AB._replace(workers=2)
SLIDING = Scope(device_blocks=2, host_blocks=2, workers=1, prompts=("ab",), decode=2, window=1)
RELOAD = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=3)

LAUNCHED = ('submit x "ab"', "admit x", "launch")
COMPUTED = (*LAUNCHED, "run w0 compute")
HANDLED = (*COMPUTED, "handle output")
STORED = (*HANDLED, "run w0 store", "report w0 job 0")
Y_SERVED = (
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store"),
    *("report w0 job 1", "finish y"),
)
LOADING = (*STORED, "finish x", *Y_SERVED, 'submit z "ab"', "admit z", "launch")

RESET = Reset("invalidate", "preempt")

Change = Callable[[State], State]


class Wrong(NamedTuple):
    """After these commands, with that change: the property says this sentence (None: nothing, it holds)."""

    of: Property
    contract: Contract
    scope: Scope
    commands: tuple[str, ...]
    change: Change
    says: str | None

    def judged(self) -> tuple[Broken, Broken]:
        """What the property says of the state that the commands lead to, and of the changed one."""
        machine, state = state_after(self.contract, self.scope, *self.commands)
        judge = self.of.on_state
        assert judge is not None
        return judge(machine.setting, state), judge(machine.setting, self.change(state))


class WrongStep(NamedTuple):
    """After these commands an action is taken, and its effect is changed so: the property says this sentence."""

    of: Property
    contract: Contract
    scope: Scope
    commands: tuple[str, ...]
    action: Action
    change: Change
    says: str | None

    def judged(self) -> tuple[Broken, Broken]:
        """What the property says of the action, which is legal, as it is and with the changed effect."""
        machine, before = state_after(self.contract, self.scope, *self.commands)
        machine.check(before, self.action)
        after = machine.step(before, self.action)
        judge = self.of.on_step
        assert judge is not None
        assert not self.of.actions or type(self.action).__name__ in self.of.actions
        setting = machine.setting
        return judge(setting, before, self.action, after), judge(setting, before, self.action, self.change(after))


def job_is(**fields: Any) -> Change:
    """The oldest job is otherwise."""
    return lambda state: state._replace(jobs=(state.jobs[0]._replace(**fields), *state.jobs[1:]))


def request_is(number: int = 0, **fields: Any) -> Change:
    def changed(state: State) -> State:
        requests = list(state.requests)
        requests[number] = requests[number]._replace(**fields)
        return state._replace(requests=tuple(requests))

    return changed


def share_is(**fields: Any) -> Change:
    def changed(state: State) -> State:
        (step,) = state.steps
        (share,) = step.shares
        return state._replace(steps=(step._replace(shares=(share._replace(**fields),)),))

    return changed


def device_is(**fields: Any) -> Change:
    return lambda state: state._replace(device=state.device._replace(**fields))


def host_is(**fields: Any) -> Change:
    return lambda state: state._replace(host=state.host._replace(**fields))


def second_is(**fields: Any) -> Change:
    return lambda state: state._replace(second=state.second._replace(**fields))


def is_so(**fields: Any) -> Change:
    return lambda state: state._replace(**fields)


def all_of(*changes: Change) -> Change:
    def changed(state: State) -> State:
        for change in changes:
            state = change(state)
        return state

    return changed
