"""What may be left out of a plan, or made smaller in it, so that what is left is a plan too."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from kvmodel import Contract
from kvmodel.scope import Scope
from kvproof.shrinking.attempt import Made, Plan
from kvproof.targets.command import VERBS, Command, tiers_of

DECISIONS = frozenset({"lookup", "release_lookup", "admit", "grow", "launch", "preempt_pressure", "wake", "finish"})
"""Decisions of a scheduler, each of which one `schedule` may take by itself."""

COMPLETIONS = frozenset({"run", "report", "report_all", "report_mark", "handle_output"})
"""What completes work that was launched. Their order among each other seldom matters, and then they have one."""

Change = Callable[[Plan], Generator[Plan, Plan | None, None]]
"""Plans that are smaller than this one, each by one change. It is sent what became of one that was taken, or None."""


def pieces(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """Without a stretch of commands: halves, then quarters, down to single ones; from the end, since what comes late
    seldom causes what comes early. The last command stays: it is the violation."""
    size = max(len(plan.commands) // 2, 1)
    while size:
        end = len(plan.commands) - 1
        while end > 0:
            start = max(end - size, 0)
            taken = yield _only(plan, [*range(start), *range(end, len(plan.commands))])
            plan = taken or plan
            end = min(start, len(plan.commands) - 1)
        size //= 2


def requests(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """Without a request, and whatever was done with it."""
    for number in reversed(range(len(plan.scope.prompts))):
        if len(plan.scope.prompts) > 1:
            left = {name: those[:number] + those[number + 1 :] for name, those in _sequences(plan.scope).items()}
            taken = yield _without("request", number, replace_scope(plan, **left))
            plan = taken or plan


def workers(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """Without a worker, and whatever it did."""
    for number in reversed(range(plan.scope.workers)):
        if plan.scope.workers > 1:
            taken = yield _without("worker", number, replace_scope(plan, workers=plan.scope.workers - 1))
            plan = taken or plan


def sizes(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """With fewer blocks, fewer decoded ones, no window; as few as there can be first."""
    for field, least in (
        ("device_blocks", 1),
        ("host_blocks", 1),
        ("second_blocks", 0),
        ("decode", 0),
        ("window", 0),
        ("lazy_window", 0),
    ):
        value: int = getattr(plan.scope, field)
        tried = least
        while tried < value:
            taken = yield replace_scope(plan, **{field: tried})
            if taken is not None:
                plan = taken
                break
            tried += max((value - tried) // 2, 1)


def symbols(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """With a prompt, or with what it decodes, that is a symbol shorter; with nothing decoded by anybody first."""
    if any(plan.scope.decoded) and (yield replace_scope(plan, decoded=())) is not None:
        return
    for field, texts in _sequences(plan.scope).items():
        for number, text in enumerate(texts):
            for position in reversed(range(len(text))):
                if len(text) > 1 or field == "decoded":
                    shorter = (*texts[:number], text[:position] + text[position + 1 :], *texts[number + 1 :])
                    if (yield replace_scope(plan, **{field: shorter})) is not None:
                        return


def _sequences(scope: Scope) -> dict[str, tuple[str, ...]]:
    """What a scope has for each of its requests."""
    return {"prompts": scope.prompts} | ({"decoded": scope.decoded} if scope.decoded else {})


def modes(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """Without a mode that is not the default: all of them at once, then one by one."""
    plain = plainest(plan.contract)
    found = [field for field in Contract._fields if getattr(plan.contract, field) != getattr(plain, field)]
    if len(found) > 1 and (yield replace(plan, contract=plain)) is not None:
        return
    for field in found:
        contract = plan.contract._replace(**{field: getattr(plain, field)})
        taken = yield replace(plan, contract=contract)
        plan = taken or plan


def plainest(contract: Contract) -> Contract:
    """The same discipline, and what the engine promises to survive, in the default modes."""
    return Contract(contract.discipline, environment=contract.environment)


def allowances(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """With no more resets and faults allowed than there are, and nothing allowed that does not occur: all of that at
    once, then one by one."""
    least = needed(plan.scope, plan.commands)
    found = {field: value for field, value in least.items() if value != getattr(plan.scope, field)}
    if len(found) > 1 and (yield replace_scope(plan, **found)) is not None:
        return
    for field, value in found.items():
        taken = yield replace_scope(plan, **{field: value})
        plan = taken or plan


def single_calls(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """With one scheduling call, or one batch of a worker, in place of the decisions or reports that it stands for."""
    commands = plan.commands
    for end in range(len(commands), 1, -1):
        for start in range(end - 2, -1, -1):
            together = {command.verb for command in commands[start:end]}
            if together <= DECISIONS:
                whole = Command("schedule")
            elif together <= {"report", "report_mark"} and len({c.args[0] for c in commands[start:end]}) == 1:
                whole = Command("report_all", commands[start].args[:1])
            else:
                break
            made = tuple(job for jobs in plan.made[start:end] for job in jobs)
            shorter = (*commands[:start], whole, *commands[end:])
            whole_made = (*plan.made[:start], made, *plan.made[end:])
            if (yield replace(plan, commands=shorter, made=whole_made)) is not None:
                return


def completions(plan: Plan) -> Generator[Plan, Plan | None, None]:
    """With two neighbours exchanged, so that completions come as soon as they can, and in one order."""
    for position, (first, second) in enumerate(pairwise(plan.commands)):
        if second.verb in COMPLETIONS and rank(second) < rank(first):
            order = list(range(len(plan.commands)))
            order[position : position + 2] = position + 1, position
            if (yield _only(plan, order)) is not None:
                return


def rank(command: Command) -> tuple[int, str, tuple[str, ...]]:
    """Where a command would rather stand: completions before all else, and these by worker and stream."""
    return (command.verb not in COMPLETIONS, command.verb, tuple(map(str, command.args)))


CHANGES: tuple[Change, ...] = (
    requests, workers, pieces, modes, allowances, symbols, sizes, single_calls, completions,
)  # fmt: skip


def replace_scope(plan: Plan, **fields: Any) -> Plan:
    """The plan at a scope with other sizes, which may make no sense."""
    scope: Scope = plan.scope._replace(**fields)
    return replace(plan, scope=scope if any(scope.decoded) else scope._replace(decoded=()))


def _only(plan: Plan, positions: list[int]) -> Plan:
    return replace(
        plan,
        commands=tuple(plan.commands[p] for p in positions),
        made=tuple(plan.made[p] for p in positions),
    )


def _without(parameter: str, number: int, plan: Plan) -> Plan:
    """Without the commands about one request, or worker; those after it move up."""
    commands: list[Command] = []
    made: list[tuple[Made, ...]] = []
    for command, jobs in zip(plan.commands, plan.made, strict=True):
        args = list(command.args)
        names = [known.name for known in VERBS[command.verb]]
        if parameter in names:
            position = names.index(parameter)
            value = int(args[position])
            if value == number:
                continue
            args[position] = value - (value > number)
        commands.append(Command(command.verb, tuple(args)))
        if parameter == "request":
            jobs = tuple(job._replace(request=job.request - (job.request > number)) for job in jobs)
        made.append(jobs)
    return replace(plan, commands=tuple(commands), made=tuple(made))


_COUNTED = {
    "resets": ("reset",),
    "duplicates": ("duplicate_report", "repeat_mark"),
    "losses": ("lose_report", "lose_mark"),
    "forgeries": ("forge_report",),
    "double_frees": ("free_twice",),
    "deaths": ("die",),
    "failures": ("fail_copy",),
    "partial_failures": ("fail_block",),
    "expiries": ("expire",),
}
"""Field of the scope -> the verbs of which it allows so many."""

_ALLOWED = {"aborts": "abort", "preempts": "preempt", "stops": "stop"}


def needed(scope: Scope, commands: Sequence[Command]) -> dict[str, Any]:
    """The least that the commands need of everything that a scope allows."""
    verbs = [command.verb for command in commands]
    resets = [command for command in commands if command.verb == "reset"]
    least: dict[str, Any] = {
        field: min(sum(map(verbs.count, counted)), getattr(scope, field)) for field, counted in _COUNTED.items()
    }
    least |= {field: verb in verbs and getattr(scope, field) for field, verb in _ALLOWED.items()}
    least |= {"lookups": False, "repeats": False}
    least["survivors"] = scope.survivors and any(reset.args[1] == "keep" for reset in resets)
    if resets:
        least["meanings"] = tuple(m for m in scope.meanings if m in {reset.args[0] for reset in resets})
        least["tiers"] = tuple(t for t in scope.tiers if t in set(map(tiers_of, resets)))
    else:
        least |= {"meanings": ("invalidate",), "tiers": ("all",)}
    return least
