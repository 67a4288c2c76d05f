"""What fails becomes a test that needs no kvproof, in the words of the adapter: the calls, and what should hold."""

import ast
import inspect

import pytest

from kvmodel import Contract, Machine
from kvmodel.actions import Submit
from kvmodel.scope import Scope
from kvproof.obligations import accounts, books, workers
from kvproof.targets.alone import Alone, Unsaid, direct_test, sources
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence

SCOPE = Scope(3, 2, 1, ("ab", "a"))
CONTRACT = Contract("pinning", "lazy")
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
    return direct_test(ALONE, SCOPE, CONTRACT, commands, notes, divergence, "it").splitlines()


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
    with pytest.raises(Unsaid, match=r"^the adapter has no words in which 'view reset' could be seen without kvproof$"):
        written(wrong._replace(target_state=only_keys))


def test_what_is_seen_of_requests_and_of_work_is_compared_without_names_of_ours() -> None:
    machine = Machine(Contract("pinning"), SCOPE)
    before = machine.initial()
    after = machine.step(before, Submit(1))
    alone = Alone(ALONE.begin, ALONE.calls, {"requests": "engine.requests", "has_work": "engine.busy"})
    wrong = diverged("view", "submit")._replace(contract_state=after, target_state=before)
    *_, requests, work = direct_test(alone, SCOPE, CONTRACT, COMMANDS[:1], (), wrong, "it").splitlines()
    compared = ast.literal_eval(requests.removeprefix("    assert tuple(engine.requests) == "))
    assert compared == after.requests
    assert work == "    assert (engine.busy) is True"


@pytest.mark.parametrize(
    ("cause", "commands", "why"),
    [
        (("choice", "schedule"), COMMANDS, "the adapter has no words in which 'choice schedule' could be seen"),
        (("crash", "start", "OSError"), (), "it fails before the first command"),
        (
            ("crash", "schedule", "KeyError"),
            (Command("schedule"),),
            "does not say how the engine is asked for 'schedule'",
        ),
    ],
)
def test_what_the_adapter_has_no_words_for_is_no_test(
    cause: tuple[str, ...], commands: tuple[Command, ...], why: str
) -> None:
    with pytest.raises(Unsaid, match=why):
        written(diverged(*cause), commands=commands)


class TestOfAnEngineThatIsHeldToItsObligations:
    OWING = Alone(
        begin="engine = Engine({store_mode}, {depth})",
        calls={
            "submit": "submit({symbols}, {decoded})",
            "reset": "reset({requests}, {tiers}{strict})",
            "drain": "drain({always})",
        },
        owed={"rest": "not held()", "rest unfinished": "not unfinished()"},
        always={"published": "serves_what_it_has()"},
        driver="class Engine: ...\n",
    )

    def test_the_obligation_is_asserted_that_its_cause_names_most_closely(self) -> None:
        def ending(*cause: str) -> str:
            commands = (Command("submit", (0,)), Command("drain"))
            scope = SCOPE._replace(decode=1)
            return direct_test(self.OWING, scope, CONTRACT, commands, (), diverged(*cause), "it")

        assert ending("rest", "unfinished").splitlines() == [
            "def test_it() -> None:",
            "    engine = Engine('lazy', 1)",
            "    submit('ab', 1)  # 1 submit x \"ab\"",
            "    drain()  # 2 drain",
            "    assert not unfinished()",
            "",
            "",
            "class Engine: ...",
        ]
        assert "    assert not held()\n" in ending("rest", "device", "leaked")

    def test_what_must_always_hold_ends_a_drain_where_it_does_not_and_is_asserted_then(self) -> None:
        commands = (Command("drain"), Command("drain"))
        text = direct_test(self.OWING, SCOPE, CONTRACT, commands, (), diverged("published", "other"), "it")
        assert text.splitlines()[2:5] == [
            "    drain()  # 1 drain",
            "    drain(lambda: serves_what_it_has())  # 2 drain",
            "    assert serves_what_it_has()",
        ]

    def test_a_reset_that_answered_false_is_read_as_strictly_as_it_was(self) -> None:
        commands = (Command("reset", ("invalidate", "keep")), Command("drain"))
        wrong = diverged("published", "old")._replace(property="false-reset-serves-nothing-old")
        text = direct_test(self.OWING, SCOPE, CONTRACT, commands, (), wrong, "it")
        assert "    reset('keep', 'all', strict=True)  # 1 reset invalidate, survivors kept\n" in text
        text = direct_test(self.OWING, SCOPE, CONTRACT, commands, (), diverged("published", "old"), "it")
        assert "    reset('keep', 'all')  # 1 reset invalidate, survivors kept\n" in text

    def test_a_reset_that_answers_false_without_a_cause(self) -> None:
        commands = (Command("reset", ("evict", "keep")),)
        wrong = diverged("reset", "False without a cause")
        text = direct_test(self.OWING, SCOPE, CONTRACT, commands, (), wrong, "it")
        assert "    assert (reset('keep', 'all')) is not False  # 1 reset evict, survivors kept\n" in text


def test_the_text_of_modules_does_without_what_they_import_of_each_other() -> None:
    text = sources(workers, books, accounts)
    assert text.index("class Workers") < text.index("class Books") < text.index("def mispublished")
    assert "from kvproof" in inspect.getsource(accounts)
    assert "from kv" not in text


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
