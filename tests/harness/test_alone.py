"""What fails becomes a test that needs no kvproof, in the words of the adapter: the calls, and what should hold."""

import ast

import pytest

from kvmodel import Contract, Machine
from kvmodel.actions import Submit
from kvmodel.scope import Scope
from kvproof.targets.alone import Alone, direct_test
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence

SCOPE = Scope(3, 2, 1, ("ab", "a"))
ALONE = Alone(
    begin="from engine import Engine\nengine = Engine({device_blocks})",
    calls={
        "submit": "engine.submit({request}, {keys}, {prompt})",
        "run": "engine.run({stream})",
        "reset": "engine.reset()",
    },
    seen={"device_refs": "engine.refs", "device_free": "engine.free"},
)
COMMANDS = (Command("submit", (1,)), Command("run", (0, "store")), Command("reset", ("invalidate", "preempt")))


def written(divergence: Divergence, commands: tuple[Command, ...] = COMMANDS, notes: tuple[str, ...] = ()) -> list[str]:
    return direct_test(ALONE, SCOPE, commands, notes, divergence, "it").splitlines()


def diverged(*cause: str, says: str = "") -> Divergence:
    return Divergence("everything-drains", "It went wrong.", ("",), (says,), None, cause)


BEGINNING = [
    "def test_it() -> None:",
    "    from engine import Engine",
    "    engine = Engine(3)",
    '    engine.submit(1, (1,), 1)  # 1 submit y "a"',
]


def test_of_a_crash_the_last_call_raises() -> None:
    assert written(diverged("crash", "reset", "KeyError")) == [
        *BEGINNING,
        "    engine.run('store')  # 2 run w0 store",
        "    engine.reset()  # 3 reset invalidate",
    ]


def test_a_call_that_was_refused_on_the_way_may_be_refused() -> None:
    assert written(diverged("refused", "reset", "NotNow"), notes=("", "refused: NotNow")) == [
        "from contextlib import suppress",
        "",
        "",
        *BEGINNING,
        "    with suppress(Exception):",
        "        engine.run('store')  # 2 run w0 store",
        "    engine.reset()  # 3 reset invalidate",
    ]


def test_of_a_reset_that_may_not_answer_so_its_answer_is_asserted() -> None:
    wrong = diverged("forbidden", "reset", "true-reset", says="reset invalidate preempt True")
    assert written(wrong)[-1] == "    assert (engine.reset()) is not True  # 3 reset invalidate"


def test_of_what_is_seen_each_field_that_differs_and_can_be_shown_is_asserted() -> None:
    machine = Machine(Contract("pinning"), SCOPE)
    right = machine.initial()
    pool = right.device._replace(refs=(1, 0, 0), free=(2, 1), keys=(0, 7, 0))
    wrong = diverged("view", "reset")._replace(contract_state=right, target_state=right._replace(device=pool))
    assert written(wrong)[-3:] == [
        "    engine.reset()  # 3 reset invalidate",
        "    assert tuple(engine.refs) == (0, 0, 0)",
        "    assert sorted(engine.free) == [0, 1, 2]",
    ]
    only_keys = right._replace(device=right.device._replace(keys=(0, 7, 0)))
    assert written(wrong._replace(target_state=only_keys)) == []


def test_what_is_seen_of_requests_and_of_work_is_compared_without_names_of_ours() -> None:
    machine = Machine(Contract("pinning"), SCOPE)
    before = machine.initial()
    after = machine.step(before, Submit(1))
    alone = Alone(ALONE.begin, ALONE.calls, {"requests": "engine.requests", "has_work": "engine.busy"})
    wrong = diverged("view", "submit")._replace(contract_state=after, target_state=before)
    *_, requests, work = direct_test(alone, SCOPE, COMMANDS[:1], (), wrong, "it").splitlines()
    compared = ast.literal_eval(requests.removeprefix("    assert tuple(engine.requests) == "))
    assert compared == after.requests
    assert work == "    assert (engine.busy) is True"


def test_what_the_adapter_has_no_words_for_is_no_test() -> None:
    assert written(diverged("choice", "schedule")) == []
    assert written(diverged("crash", "start", "OSError"), commands=()) == []
    assert written(diverged("crash", "schedule", "KeyError"), commands=(Command("schedule"),)) == []


@pytest.mark.parametrize(
    ("begin", "calls", "seen", "says"),
    [
        ("Engine({blocks})", {}, {}, "alone says what there is not: 'blocks'"),
        ("", {"submit": "{keys} {worker}"}, {}, "alone says what there is not: 'worker'"),
        ("", {"abort": "{keys}"}, {}, "alone says what there is not: 'keys'"),
        ("", {"forget": "x()"}, {}, "alone says what there is not: 'forget'"),
        ("", {"schedule": "{"}, {}, "alone says what there is not: "),
        ("", {"run": "run({worker:d})"}, {}, "alone says what there is not: Unknown format code 'd'"),
        ("", {"submit": "{request.number}"}, {}, "alone says what there is not: 'str' object has no attribute"),
        ("", {"submit": "{prompt[0]}"}, {}, "alone says what there is not: 'int' object is not subscriptable"),
        ("", {}, {"blocks": "x"}, "alone shows 'blocks', which is no field of the view"),
    ],
)
def test_words_that_stand_for_nothing_are_refused_where_they_are_written(
    begin: str, calls: dict[str, str], seen: dict[str, str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        Alone(begin, calls, seen)
