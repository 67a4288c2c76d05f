"""A reset at every point of a request's life: 19 points, from its submission to the last report after its end.

z finds its first block on the host alone, loads it, computes the second, stores it, decodes a third and stores that.
At each point the reset's answer and what is still held are written down; then everything that can happen does, z gets
to its end, nothing stays held, nothing from before the reset was published, and a further reset answers True.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.seeds.driving import CASES, SUBJECTS, Case, OnMachine, Step, given, play, vocabulary

from kvmodel import Machine
from kvmodel.actions import UNFAIR
from kvmodel.contract import Contract, Discipline
from kvmodel.scope import Scope
from kvproof.targets.command import describe
from kvproof.targets.wording import command_of

SCOPE = Scope(
    device_blocks=3,
    host_blocks=7,
    workers=1,
    prompts=("a", "cd", "ab"),
    decode=1,
    resets=2,
    meanings=("invalidate", "evict"),
    survivors=True,
)

BEFORE = given(
    *('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
    *("grow x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 1", "finish x"),
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 2"),
    *("grow y", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 3", "finish y"),
)
"""x has left `a` on the host, y has evicted it from the device; both have ended and their stores are reported."""

LIFE = (
    ("submitted", 'submit z "ab"'),
    ("looked up", "lookup z"),
    ("load queued", "admit z"),
    ("load launched", "launch"),
    ("load copied", "run w0 load"),
    ("load reported", "report w0 job 4"),
    ("woken", "wake z"),
    ("prompt launched", "launch"),
    ("prompt computed", "run w0 compute"),
    ("prompt output handled", "handle output"),
    ("prompt store copied", "run w0 store"),
    ("prompt store reported", "report w0 job 5"),
    ("grown", "grow z"),
    ("decode launched", "launch"),
    ("decode computed", "run w0 compute"),
    ("decode output handled", "handle output"),
    ("finished", "finish z"),
    ("decode store copied", "run w0 store"),
    ("decode store reported", "report w0 job 6"),
)
"""Each point, and the command that leads to it from the one before."""


class Reset(NamedTuple):
    """The answer, the references on each device block and on the host block most held, the job that is left; and what
    will be on the host when all has got to its end."""

    answer: bool
    device: str
    host: str = "0"
    jobs: str = ""
    stored: str = "a ab ab+1"


IDLE = Reset(True, "0 0 0")
LOAD_DRAINS = Reset(False, "1 0 0", "1", "4 load ABANDONED w0")
PROMPT_STORE_DRAINS = Reset(False, "1 0 0", "1", "5 store ABANDONED w0")
DECODE_STORE_DRAINS = Reset(False, "1 0 0", "1", "6 store ABANDONED w0")
ENDED = IDLE._replace(stored="")
ENDED_STORE_DRAINS = DECODE_STORE_DRAINS._replace(stored="")

PREEMPTED: dict[Discipline, dict[str, Reset]] = {
    "pinning": {
        "submitted": IDLE,
        "looked up": IDLE,
        "load queued": IDLE,
        "load launched": LOAD_DRAINS,
        "load copied": LOAD_DRAINS,
        "load reported": IDLE,
        "woken": IDLE,
        "prompt launched": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt computed": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt output handled": PROMPT_STORE_DRAINS,
        "prompt store copied": PROMPT_STORE_DRAINS,
        "prompt store reported": IDLE,
        "grown": IDLE,
        "decode launched": Reset(False, "2 1 1", "1", "6 store ABANDONED w0"),
        "decode computed": Reset(False, "2 1 1", "1", "6 store ABANDONED w0"),
        "decode output handled": DECODE_STORE_DRAINS,
        "finished": ENDED_STORE_DRAINS,
        "decode store copied": ENDED_STORE_DRAINS,
        "decode store reported": ENDED,
    },
    "fencing": {
        **{point: IDLE for point, _ in LIFE},
        "prompt launched": Reset(True, "1 1 0"),
        "prompt computed": Reset(True, "1 1 0"),
        "decode launched": Reset(True, "1 1 1"),
        "decode computed": Reset(True, "1 1 1"),
        "finished": ENDED,
        "decode store copied": ENDED,
        "decode store reported": ENDED,
    },
}
"""`reset invalidate`: requests are preempted. A launched step keeps what it computes in until its output is handled."""

SURVIVING: dict[Discipline, dict[str, Reset]] = {
    "pinning": {
        "woken": Reset(False, "1 1 0"),
        "prompt launched": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt computed": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt output handled": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt store copied": Reset(False, "2 1 0", "1", "5 store ABANDONED w0"),
        "prompt store reported": Reset(False, "1 1 0"),
        "grown": Reset(False, "1 1 1"),
        "decode launched": Reset(False, "2 1 1", "1", "6 store ABANDONED w0", ""),
        "decode computed": Reset(False, "2 1 1", "1", "6 store ABANDONED w0", ""),
        "decode output handled": Reset(False, "2 1 1", "1", "6 store ABANDONED w0", ""),
    },
    "fencing": {
        "woken": Reset(True, "1 1 0"),
        "prompt launched": Reset(True, "1 1 0"),
        "prompt computed": Reset(True, "1 1 0"),
        "prompt output handled": Reset(True, "1 1 0"),
        "prompt store copied": Reset(True, "1 1 0"),
        "prompt store reported": Reset(True, "1 1 0"),
        "grown": Reset(True, "1 1 1"),
        "decode launched": Reset(True, "1 1 1", stored=""),
        "decode computed": Reset(True, "1 1 1", stored=""),
        "decode output handled": Reset(True, "1 1 1", stored=""),
    },
}
"""`reset evict, survivors kept`, at the points at which z runs. From its last launch on nothing more is launched: z
finishes before anything could be stored again."""


def to_the_end(contract: Contract, commands: list[str]) -> Iterator[str]:
    """What the machine does from there on: everything that can happen does, until nothing can."""
    words, played = vocabulary(SCOPE), OnMachine(Machine(contract, SCOPE).setting)
    for text in commands:
        played.do(words[text])
    while fair := [action for action in played.machine.actions(played.state) if type(action) not in UNFAIR]:
        command = command_of(fair[0])
        played.do(command)
        yield describe(command, SCOPE)


def interrupted(discipline: Discipline, point: str, reset: str, expected: Reset) -> Case:
    """z lives up to a point, the reset comes, and then all gets to its end."""
    contract = Contract(discipline)
    position = [name for name, _ in LIFE].index(point)
    lived = given(*[command for _, command in LIFE[: position + 1]])
    host = " ".join([expected.host, *"000000"])
    step = Step(
        reset,
        answer=expected.answer,
        device=expected.device,
        host=host,
        jobs=expected.jobs,
        on_device="",
        on_host="",
        waits_for="",
        found="",
    )
    so_far = (*BEFORE, *lived, step)
    rest = given(*to_the_end(contract, [step.command for step in so_far]))
    held = "0 0 0 0 0 0 0"
    end = Step("reset invalidate", answer=True, device="0 0 0", host=held, on_device="", on_host="", jobs="")
    last = (*rest[:-1], rest[-1]._replace(requests="DONE DONE DONE", on_host=expected.stored)) if rest else ()
    name = f"reset_when_{point.replace(' ', '_')}-{discipline}"
    about = f"A reset when z is at the point `{point}` of its life, then everything gets to its end."
    return Case(name, about, contract, SCOPE, (*so_far, *last, end))


BY_POINT = {
    case.name: case
    for discipline, points in PREEMPTED.items()
    for point, expected in points.items()
    for case in [interrupted(discipline, point, "reset invalidate", expected)]
}
CASES.update(BY_POINT)

KEPT = {
    case.name: case
    for discipline, points in SURVIVING.items()
    for point, expected in points.items()
    for case in [interrupted(discipline, point, "reset evict, survivors kept", expected)]
}


def test_every_point_is_in_the_tables() -> None:
    names = [point for point, _ in LIFE]
    assert len(names) == 19
    assert list(PREEMPTED["pinning"]) == names
    assert set(PREEMPTED["fencing"]) == set(names)
    assert set(SURVIVING["pinning"]) == set(SURVIVING["fencing"]) < set(names)


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("name", BY_POINT)
def test_reset_at_every_point_of_a_requests_life(name: str, subject: str) -> None:
    play(BY_POINT[name], subject)


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("name", KEPT)
def test_reset_at_every_point_at_which_a_request_survives_it(name: str, subject: str) -> None:
    play(KEPT[name], subject)


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("discipline", SURVIVING)
@pytest.mark.parametrize("point", SURVIVING["pinning"])
def test_an_invalidating_reset_is_false_wherever_a_request_survives_it(
    discipline: Discipline, point: str, subject: str
) -> None:
    """The survivor goes on with the old weights' blocks, and publishes none of them."""
    expected = SURVIVING[discipline][point]._replace(answer=False, stored="")
    play(interrupted(discipline, point, "reset invalidate, survivors kept", expected), subject)
