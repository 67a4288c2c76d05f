"""Commands: what a client or an environment may do to an engine, as plain data.

An engine turns one command into a sequence of actions of the machine (`schedule` is preempt, grow, lookup, admit and
launch), and `explain` says which. Commands are what traces record: they carry no block ids and no choices.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvmodel.scope import Scope
from kvmodel.tiers import TIERS, objection

Argument = int | str

LARGEST_NUMBER = 2**31 - 1
"""The largest request, worker or job number that a command may carry."""


class BadCommand(ValueError):
    """No engine could be given this command; the message says what is wrong with it and what would do."""


class Command(NamedTuple):
    """One command: its verb, and its arguments in the order of `VERBS[verb]`."""

    verb: str
    args: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{self.verb}({', '.join(str(arg) for arg in self.args)})"


class Parameter(NamedTuple):
    """One parameter of a verb. `values` lists the allowed words; without them it is a number from 0.

    default  what it is when it is left out, as only the last ones of a verb may be; empty: it must be given
    """

    name: str
    values: tuple[str, ...] = ()
    default: str = ""


_REQUEST = Parameter("request")
_WORKER = Parameter("worker")
_JOB = Parameter("job")

STREAMS = ("compute", "store", "load", "cascade", "promotion")
_COPIES = Parameter("stream", STREAMS[1:])
MEANINGS = ("invalidate", "evict")
SURVIVORS = ("preempt", "keep")
FREEABLE = ("device", "host", "second", "request")
COPYING = ("store", "load")
"""Streams of which marks are reported."""


RESETS = tuple(
    [
        (meaning, requests) if tiers == "all" else (meaning, requests, tiers)
        for meaning in MEANINGS
        for requests in SURVIVORS
        for tiers in TIERS
        if not objection(meaning, requests, tiers)
    ]
)
"""Arguments of every reset that makes sense, in their shortest form."""

VERBS: Mapping[str, tuple[Parameter, ...]] = {
    # the client
    "submit": (_REQUEST,),
    "preempt": (_REQUEST,),
    "abort": (_REQUEST,),
    "stop": (_REQUEST,),
    "reset": (Parameter("meaning", MEANINGS), Parameter("requests", SURVIVORS), Parameter("tiers", TIERS, "all")),
    # the scheduler, one decision at a time
    "lookup": (_REQUEST,),
    "release_lookup": (_REQUEST,),
    "promote": (_REQUEST,),
    "admit": (_REQUEST,),
    "grow": (_REQUEST,),
    "preempt_pressure": (),
    "launch": (),
    "finish": (_REQUEST,),
    # the scheduler, as an engine calls it: preempt under pressure, grow, lookup, admit, launch
    "schedule": (),
    # the workers
    "run": (_WORKER, Parameter("stream", STREAMS)),
    "report": (_WORKER, _JOB),
    "report_all": (_WORKER,),
    "report_mark": (_WORKER, Parameter("stream", COPYING), Parameter("mark")),
    "wake": (_REQUEST,),
    "handle_output": (),
    # all of that which needs nobody to ask for it, until nothing is left to do
    "drain": (),
    "expire": (_JOB,),
    "declare_dead": (_WORKER,),
    # the environment's faults
    "die": (_WORKER,),
    "fail_copy": (_WORKER, _COPIES),
    "fail_block": (_WORKER, _COPIES, Parameter("position")),
    "duplicate_report": (_WORKER, _JOB),
    "lose_report": (_WORKER, _JOB),
    "repeat_mark": (_WORKER, Parameter("stream", COPYING), Parameter("which", ("last", "first"))),
    "lose_mark": (_WORKER, Parameter("stream", COPYING)),
    "forge_report": (_WORKER,),
    "free_twice": (Parameter("what", FREEABLE),),
}
"""Every verb with its parameters, in order. A verb is never renamed: traces outlive versions."""


def validated(command: Command, scope: Scope | None = None) -> Command:
    """The same command; BadCommand unless its verb exists and its arguments are of the right number, kind and range.

    With a scope, requests and workers must exist in it. Job numbers are not looked up: an unknown one is a fault that
    an engine has to answer.
    """
    parameters = VERBS.get(command.verb)
    if parameters is None:
        raise BadCommand(f"action {command.verb!r} does not exist; use one of {', '.join(VERBS)}")
    least = len([parameter for parameter in parameters if not parameter.default])
    if not least <= len(command.args) <= len(parameters):
        takes = ", ".join(parameter.name for parameter in parameters) or "nothing"
        raise BadCommand(f"{command.verb} takes {takes}, and got {len(command.args)} argument(s)")
    for parameter, value in zip(parameters, command.args, strict=False):
        _check(command.verb, parameter, value, scope)
    if command.verb == "reset" and (why := objection(str(command.args[0]), str(command.args[1]), tiers_of(command))):
        raise BadCommand(f"this reset makes no sense: {why}")
    return command


def command(verb: str, *args: Argument, scope: Scope | None = None) -> Command:
    """A validated command: `command("run", 0, "store")`. Raises BadCommand."""
    return validated(Command(verb, args), scope)


def named_arguments(command: Command) -> dict[str, Argument]:
    """The arguments of a valid command by parameter name, those that it leaves out excepted."""
    return {p.name: value for p, value in zip(VERBS[command.verb], command.args, strict=False)}


def from_names(verb: str, arguments: Mapping[str, object], scope: Scope | None = None) -> Command:
    """The command with these named arguments, the inverse of `named_arguments`; BadCommand when they do not fit."""
    parameters = VERBS.get(verb)
    if parameters is None:
        raise BadCommand(f"action {verb!r} does not exist; use one of {', '.join(VERBS)}")
    names = [parameter.name for parameter in parameters]
    for parameter in parameters:
        if parameter.name not in arguments and not parameter.default:
            raise BadCommand(f"{verb} lacks its {parameter.name}")
    for name in arguments:
        if name not in names:
            raise BadCommand(f"{verb} has no {name!r:.60}; it takes {', '.join(names) or 'nothing'}")
    args: list[Argument] = []
    for parameter in parameters:
        value = arguments.get(parameter.name, parameter.default)
        if parameter.default and value == parameter.default:
            continue  # left out: the shortest form is the one that others compare with
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise BadCommand(f"{parameter.name} of {verb} must be {_kind(parameter)}, not {value!r:.60}")
        args.append(value)
    return validated(Command(verb, tuple(args)), scope)


def tiers_of(reset: Command) -> str:
    """The tiers that a reset names: all, if it says no more."""
    return str(reset.args[2]) if len(reset.args) > 2 else "all"


def _kind(parameter: Parameter) -> str:
    return " or ".join(parameter.values) if parameter.values else "a number from 0"


def _check(verb: str, parameter: Parameter, value: Argument, scope: Scope | None) -> None:
    where = f"{parameter.name} of {verb}"
    if parameter.values:
        if value not in parameter.values:
            raise BadCommand(f"{where} must be {_kind(parameter)}, not {value!r:.60}")
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise BadCommand(f"{where} must be {_kind(parameter)} to {LARGEST_NUMBER}, not {value!r:.60}")
    if scope is None:
        return
    if parameter == _REQUEST and value >= len(scope.prompts):
        raise BadCommand(f"{where} is {value}, and the scope has requests 0 to {len(scope.prompts) - 1}")
    if parameter == _WORKER and value >= scope.workers:
        raise BadCommand(f"{where} is {value}, and the scope has workers 0 to {scope.workers - 1}")


def request_name(request: int) -> str:
    """How reports call a request: x, y, z, then r3, r4 and so on."""
    return "xyz"[request] if request < 3 else f"r{request}"


def describe(command: Command, scope: Scope) -> str:
    """A valid command in the words of a report: `submit x "ab"`, `run w0 compute`, `reset invalidate`."""
    verb, args = command
    match verb:
        case "submit":
            request = _number(args[0])
            prompt = scope.prompts[request] if request < len(scope.prompts) else "?"
            return f'submit {request_name(request)} "{prompt}"'
        case "lookup" | "admit" | "grow" | "preempt" | "finish" | "stop" | "abort" | "wake":
            return f"{verb} {request_name(_number(args[0]))}"
        case "promote":
            return f"promote what {request_name(_number(args[0]))} would hit"
        case "release_lookup":
            return f"release the lookup of {request_name(_number(args[0]))}"
        case "preempt_pressure":
            return "preempt under pressure"
        case "run":
            return f"run w{args[0]} {args[1]}"
        case "report":
            return f"report w{args[0]} job {args[1]}"
        case "declare_dead":
            return f"declare w{args[0]} dead"
        case "die":
            return f"w{args[0]} dies"
        case "expire":
            return f"let job {args[0]} expire"
        case "report_all":
            return f"report w{args[0]} all"
        case "fail_copy":
            return f"run w{args[0]} {args[1]}, which fails"
        case "fail_block":
            return f"run w{args[0]} {args[1]}, of which pair {args[2]} fails"
        case "duplicate_report":
            return f"report w{args[0]} job {args[1]} again"
        case "lose_report":
            return f"lose the report of w{args[0]} for job {args[1]}"
        case "report_mark":
            return f"report w{args[0]} {args[1]}s up to job {args[2]}"
        case "repeat_mark":
            return f"report w{args[0]} the {args[2]} mark of its {args[1]}s again"
        case "lose_mark":
            return f"lose the mark of w{args[0]}'s {args[1]}s"
        case "forge_report":
            return f"forge a report of w{args[0]} for a job that never was"
        case "free_twice":
            return f"free a {args[0]}{'' if args[0] == 'request' else ' block'} twice"
        case "reset":
            tiers = tiers_of(command)
            words = f"reset {args[0]}" if tiers == "all" else f"reset {args[0]} of the {tiers} tier"
            return f"{words}, survivors kept" if args[1] == "keep" and tiers != "host" else words
        case _:
            return verb.replace("_", " ")


def _number(value: Argument) -> int:
    if isinstance(value, str):
        raise BadCommand(f"{value!r} stands where a number belongs")
    return value


def describe_all(commands: Sequence[Command], scope: Scope) -> tuple[str, ...]:
    """Every command in the words of a report, in order."""
    return tuple(describe(command, scope) for command in commands)
