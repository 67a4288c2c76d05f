"""Record a target: what it is asked and what it does become the lines of a log, while somebody else drives it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

from kvmodel import Action
from kvmodel import actions as act
from kvmodel.request import ABSENT, PHASES
from kvmodel.setting import Setting
from kvmodel.transfer_job import DIRECTIONS, NONE, VIEWS, Pair
from kvproof.log.entry import JSON, RECORDED, SCHEMA, UNRECORDED
from kvproof.log.reading import KEYS, NUMBERS
from kvproof.targets.command import Command, named_arguments
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.target import Target
from kvproof.targets.view import View


class Recorder:
    """Writes one log. `close` it, or use it as a context; each line is written when its command is done.

    setting  of the requests that there are; may be replaced when others come
    name  what the log calls a request
    runs  whether commands `run` are written; without them a log is as a live engine's is, which cannot see its copies
    """

    def __init__(
        self, path: Path, setting: Setting, engine: str, *, runs: bool = True, name: Callable[[int], str] = "r{}".format
    ) -> None:
        """Begins the file. Raises OSError, and FileExistsError if it is there."""
        self.setting = setting
        self.runs = runs
        self._name = name
        self._file: IO[str] = path.open("x", encoding="utf-8")
        contract = {name: value for name, value in setting.contract._asdict().items() if name != "environment"}
        scope = setting.scope
        sizes = {"device_blocks": scope.device_blocks, "host_blocks": scope.host_blocks, "workers": scope.workers}
        if scope.second_blocks:
            sizes["second_blocks"] = scope.second_blocks
        self._write(
            {
                "kvproof_log": SCHEMA,
                "engine": engine,
                "contract": contract,
                "sizes": sizes,
                "runs": RECORDED if runs else UNRECORDED,
            }
        )

    def close(self) -> None:
        """Idempotent."""
        self._file.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def performed(self, target: Target, command: Command) -> Outcome:
        """Have the target carry out a command, and write what came of it. Raises what the target raises."""
        outcome = target.perform(command)
        if command.verb != "run" or self.runs:
            self.wrote(command, outcome, target.view())
        return outcome

    def wrote(self, command: Command, outcome: Outcome, view: View) -> None:
        """One line for a command that was carried out elsewhere."""
        arguments: JSON = dict(named_arguments(command))
        line: JSON = {"do": {"verb": command.verb, **arguments}}
        if "request" in arguments:
            number = int(command.args[0])
            line["do"] = {"verb": command.verb, **arguments, "request": self._name(number)}
            if command.verb == "submit":
                keys = self.setting.prompt_keys[number]
                line["keys"] = self._keys(keys)
                line["decoded"] = self._keys(self.setting.total_keys[number][len(keys) :])
        match outcome:
            case Refused(reason):
                line["refused"] = reason
            case Answer(value, observed):
                if isinstance(value, bool):
                    line["answered"] = value
                line["did"] = [self._action(action) for action in observed if not _says_command(action, command)]
            case Crashed(error, message):
                self._crashed(error, message)
        line["seen"] = self._seen(view)
        self._write(line)

    def _crashed(self, error: str, message: str) -> NoReturn:
        raise RuntimeError(f"the engine failed with {error}: {message}; the log ends before that")

    def _seen(self, view: View) -> JSON:
        seen: JSON = {name: list(value) for name in NUMBERS if (value := getattr(view, name)) is not None}
        seen |= {name: self._keys(value) for name in KEYS if (value := getattr(view, name)) is not None}
        if view.requests is not None:
            seen["requests"] = {
                self._name(number): {
                    "phase": PHASES[request.phase],
                    "table": list(request.table),
                    "computed": request.computed,
                    "jobs": list(request.jobs),
                }
                for number, request in enumerate(view.requests)
                if request.phase != ABSENT
            }
        if view.jobs is not None:
            seen["jobs"] = {
                str(job.id): {
                    "direction": DIRECTIONS[job.direction],
                    "state": VIEWS[job.view],
                    "awaiting": list(job.awaiting),
                }
                for job in view.jobs
            }
        return seen

    def _action(self, action: Action) -> JSON:
        kind = type(action).__name__
        match action:
            case act.Launch(choice) if choice is not None:
                return {
                    "action": kind,
                    "computes": [[self._name(request), start, end] for request, start, end in choice.computes],
                    "stores": [
                        [None if request == NONE else self._name(request), self._pairs(pairs)]
                        for request, pairs in choice.stores
                    ],
                    "flush": list(choice.flush),
                    "cascade": self._pairs(choice.cascade),
                }
            case act.Admit(request, choice) if choice is not None:
                return {
                    "action": kind,
                    "request": self._name(request),
                    "device": list(choice.device),
                    "host": list(choice.host),
                    "fresh": list(choice.fresh),
                }
            case act.Lookup(request, hits) if hits is not None:
                return {"action": kind, "request": self._name(request), "device": list(hits[0]), "host": list(hits[1])}
            case act.Grow(request, blocks) if blocks is not None:
                return {"action": kind, "request": self._name(request), "blocks": list(blocks)}
            case act.Promote(request, pairs) if pairs is not None:
                return {"action": kind, "request": self._name(request), "pairs": self._pairs(pairs)}
            case (
                act.Wake(request) | act.Finish(request) | act.ReleaseLookup(request) | act.PreemptUnderPressure(request)
            ):
                return {"action": kind, "request": self._name(request)}
            case _:
                raise TypeError(f"{action!r:.80} is no decision of a scheduler with its choice")

    def _pairs(self, pairs: tuple[Pair, ...]) -> list[list[object]]:
        return [[pair.source, pair.destination, self._key(pair.key)] for pair in pairs]

    def _keys(self, keys: tuple[int, ...]) -> list[str | None]:
        return [self._key(key) for key in keys]

    def _key(self, key: int) -> str | None:
        return self.setting.key_names[key - 1] if key else None

    def _write(self, line: JSON) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _says_command(action: Action, command: Command) -> bool:
    """What a command's verb says already: reports, and the answer of a reset."""
    return isinstance(action, act.Report | act.ReportMark | act.Reset) and command.verb != "schedule"
