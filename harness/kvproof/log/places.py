"""Places: the machine knows requests and keys by small numbers; a log names them, and has any number of them in time.

A place is free again once its request has ended and no job and no step has anything to do with it.
"""

from collections.abc import Iterable, Sequence

from kvmodel import Machine, State
from kvmodel.contract import Contract
from kvmodel.request import ABSENT, DONE, Request
from kvmodel.scope import Scope
from kvmodel.setting import Setting


class Places:
    """Which request is where, and the machine for those that are there.

    machine  its setting changes with every request that comes
    keys     numbers of the keys that requests have had so far
    ended    requests whose place has gone to another since
    """

    def __init__(self, contract: Contract, scope: Scope) -> None:
        nothing = ((),) * len(scope.prompts)
        self.keys: dict[str, int] = {}
        self._key_names: list[str] = []
        self.machine = Machine.of(Setting(contract, scope, nothing, nothing, self._key_names))
        self.of: dict[str, int] = {}
        self.ended: set[str] = set()
        self._names: list[str | None] = [None] * len(scope.prompts)

    def name(self, place: int) -> str:
        """What the log calls the request in a place."""
        return self._names[place] or f"place {place}"

    def learned(self, keys: Iterable[str]) -> list[str]:
        """Know these keys from now on. Those that are new."""
        new = [key for key in dict.fromkeys(keys) if key not in self.keys]
        for key in new:
            self._key_names.append(key)
            self.keys[key] = len(self._key_names)
        return new

    def taken(self, name: str, keys: Sequence[str], decoded: Sequence[str], state: State) -> State | None:
        """The state with a place for a new request, whose keys are known; None if all are taken."""
        place = next((place for place in range(len(self._names)) if self._is_free(place, state)), None)
        if place is None:
            return None
        before = self._names[place]
        if before is not None:
            self.ended.add(before)
            if self.of.get(before) == place:
                del self.of[before]
        self.ended.discard(name)
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
