"""Places: the machine knows requests and keys by small numbers; a log names them, and has any number of them in time.

A place is free again once its request has ended and no job and no step has anything to do with it.
"""

from collections.abc import Sequence

from kvmodel import Machine, State
from kvmodel.contract import Contract
from kvmodel.request import ABSENT, DONE, Request
from kvmodel.scope import Scope
from kvmodel.setting import Setting


class Places:
    """Which request is where, and the machine for those that are there.

    machine  its setting changes with every request that comes
    ended    requests whose place has gone to another since
    """

    def __init__(self, contract: Contract, scope: Scope, key_names: Sequence[str]) -> None:
        nothing = ((),) * len(scope.prompts)
        self.keys = {name: number for number, name in enumerate(key_names, start=1)}
        self.machine = Machine.of(Setting(contract, scope, nothing, nothing, tuple(key_names)))
        self.of: dict[str, int] = {}
        self.ended: set[str] = set()
        self._names: list[str | None] = [None] * len(scope.prompts)

    def name(self, place: int) -> str:
        """What the log calls the request in a place."""
        return self._names[place] or f"place {place}"

    def taken(self, name: str, keys: Sequence[str], decoded: Sequence[str], state: State) -> State | None:
        """The state with a place for a new request; None if all are taken."""
        place = next((place for place in range(len(self._names)) if self._is_free(place, state)), None)
        if place is None:
            return None
        before = self._names[place]
        if before is not None:
            del self.of[before]
            self.ended.add(before)
        self._names[place] = name
        self.of[name] = place
        prompt = tuple([self.keys[key] for key in keys])
        total = prompt + tuple([self.keys[key] for key in decoded])
        setting = self.machine.setting
        self.machine = Machine.of(
            setting._replace(
                prompt_keys=_with(setting.prompt_keys, place, prompt),
                total_keys=_with(setting.total_keys, place, total),
            )
        )
        requests = (*state.requests[:place], Request(), *state.requests[place + 1 :])
        return state._replace(requests=requests)

    def _is_free(self, place: int, state: State) -> bool:
        phase = state.requests[place].phase
        if phase == ABSENT:
            return self._names[place] is None
        if phase != DONE:
            return False
        in_steps = any(share.request == place for step in state.steps for share in step.shares)
        return not in_steps and not any(job.request == place for job in state.jobs)


def _with(keys: tuple[tuple[int, ...], ...], place: int, those: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (*keys[:place], those, *keys[place + 1 :])
