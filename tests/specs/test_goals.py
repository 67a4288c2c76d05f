"""The goals of the liveness properties: in which states there is nothing more to wait for. And the catalogue itself."""

import pytest
from tests.seeds.below_host import AB as BELOW_HOST
from tests.seeds.below_host import CASCADED, CASCADING
from tests.seeds.driving import state_after
from tests.specs.wrong import LOADING, RELOAD, Change, device_is, host_is, second_is

from kvmodel import Contract, Scope
from kvmodel import actions as act
from kvspecs.catalogue import AGREEMENT, JUDGED, LIVENESS, NAMES, SAFETY, STEPPING, sentence_of
from kvspecs.liveness import (
    every_full_block_is_stored_or_refused,
    every_request_can_finish,
    everything_drains,
    reset_converges,
)
from kvspecs.property import LivenessProperty

PINNING, FENCING = Contract("pinning"), Contract("fencing")
AB = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("ab",), resets=3, losses=1)
FULL = AB._replace(host_blocks=1)
TWICE = AB._replace(prompts=("ab", "ab"))
DYING = AB._replace(deaths=1)

LAUNCHED = ('submit x "ab"', "admit x", "launch")
HANDLED = (*LAUNCHED, "run w0 compute", "handle output")
LOST = (*HANDLED, "run w0 store", "lose the report of w0 for job 0")

PARTIAL = Contract("pinning", admission="partial")
AB_CD = Scope(device_blocks=2, host_blocks=1, workers=1, prompts=("ab", "cd"), losses=1)
WEDGED = (
    *('submit x "ab"', "admit x", 'submit y "cd"', "admit y", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "lose the report of w0 for job 0", "preempt x"),
)
"""Each got one block; x's is held by a store whose report is lost; y cannot grow, and x comes after whoever runs."""

A_LOST = (
    *('submit x "a"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "lose the report of w0 for job 0", "finish x"),
)
"""One device block is held by a store whose report is lost, and by nobody else."""
COMPUTED = ("launch", "run w0 compute", "handle output")
FEW = Scope(device_blocks=3, host_blocks=1, workers=1, prompts=("a", "bcd", "ef"), losses=1)

HALF_LOADED = (
    *[said for text in LOADING for said in dict.fromkeys((text, text.replace("w0", "w1")))],
    *("run w0 load", "report w0 job 2", "w0 dies"),
)
"""Of two workers one has reported its part of a load, and died; the other has yet to copy its own."""
MORE_TO_COMPUTE = tuple(text.replace('"cd"', '"cde"') for text in HALF_LOADED)
TWO_DYING = RELOAD._replace(workers=2, deaths=1)

FINISH, DRAIN = every_request_can_finish.PROPERTY, everything_drains.PROPERTY
CONVERGE, STORED = reset_converges.PROPERTY, every_full_block_is_stored_or_refused.PROPERTY


@pytest.mark.parametrize(
    ("goal", "contract", "scope", "commands", "reached"),
    [
        pytest.param(FINISH, PINNING, AB, (), True, id="nobody was submitted"),
        pytest.param(FINISH, PINNING, AB, ('submit x "ab"',), False, id="somebody waits"),
        pytest.param(FINISH, PINNING, AB, (*HANDLED, "finish x"), True, id="finished, its store still runs"),
        pytest.param(FINISH, PINNING, AB, LOST, False, id="it runs in blocks that a lost job holds too"),
        pytest.param(FINISH, PINNING, AB, (*LOST, "preempt x"), False, id="it can hit the blocks of a lost job"),
        pytest.param(FINISH, FENCING, AB, (*LOST, "preempt x"), True, id="it waits for a report that is lost"),
        pytest.param(FINISH, PINNING, AB, (*LOST, "reset invalidate"), True, id="lost jobs leave it too few blocks"),
        pytest.param(
            FINISH, PINNING, AB._replace(device_blocks=4), (*LOST, "reset invalidate"), False, id="they leave it enough"
        ),
        pytest.param(FINISH, PARTIAL, AB_CD, WEDGED, True, id="it waits for one that waits for a lost job"),
        pytest.param(FINISH, PARTIAL, AB_CD, WEDGED[:-1], False, id="that one would be preempted for it"),
        pytest.param(FINISH, PINNING, DYING, ('submit x "ab"', "w0 dies"), True, id="its worker died"),
        pytest.param(FINISH, PINNING, DYING, (*LAUNCHED, "w0 dies"), True, id="its step never ends"),
        pytest.param(
            FINISH, PINNING, DYING, (*LAUNCHED, "run w0 compute", "w0 dies"), False, id="its step had been computed"
        ),
        pytest.param(FINISH, PINNING, DYING, (*HANDLED, "w0 dies"), False, id="it had been computed"),
        pytest.param(FINISH, PINNING, DYING, (*HANDLED, "preempt x", "w0 dies"), False, id="the device has all of it"),
        pytest.param(
            *(FINISH, PINNING, DYING, (*HANDLED, "preempt x", "reset invalidate", "w0 dies"), True),
            id="the device has nothing of it",
        ),
        pytest.param(
            *(FINISH, PINNING, DYING._replace(prompts=("a",))),
            *(('submit x "a"', "admit x", "launch", "w0 dies"), True),
            id="its step, of one block, never ends",
        ),
        pytest.param(
            *(FINISH, PINNING, TWO_DYING, HALF_LOADED, False),
            id="who died has loaded its part of all that there is",
        ),
        pytest.param(
            *(FINISH, PINNING, TWO_DYING._replace(device_blocks=3, prompts=("ab", "cde", "ab"), decoded=("", "", "c"))),
            *(MORE_TO_COMPUTE, True),
            id="it loads, and will have more to compute",
        ),
        pytest.param(
            *(FINISH, PARTIAL, FEW._replace(device_blocks=4, prompts=("a", "bcde", "f"))),
            *((*A_LOST, 'submit y "bcde"', "admit y", *COMPUTED, 'submit z "f"'), True),
            id="there is room for it, and nobody is admitted while one wants to grow in vain",
        ),
        pytest.param(
            *(FINISH, PARTIAL, FEW),
            *((*A_LOST, 'submit y "bcd"', "admit y", 'submit z "ef"', "admit z", *COMPUTED), True),
            id="it runs, and an earlier one that waits in vain keeps what it lacks",
        ),
        pytest.param(
            *(FINISH, PINNING, FEW._replace(device_blocks=2, prompts=("a", "aa"), repeats=True)),
            *((*A_LOST, 'submit y "aa"'), False),
            id="both its blocks are one, which it can hit",
        ),
        pytest.param(DRAIN, PINNING, AB, (), True, id="nothing ever happened"),
        pytest.param(
            *(DRAIN, PINNING._replace(deadline="expire", store_mode="lazy"), DYING),
            *((*LAUNCHED, "w0 dies", "abort x"), False),
            id="who died can be declared dead, which ends its step",
        ),
        pytest.param(DRAIN, PINNING, DYING, (*LAUNCHED, "w0 dies"), True, id="only a dead worker is missing"),
        pytest.param(
            DRAIN, PINNING, DYING, (*LAUNCHED, "run w0 compute", "w0 dies"), False, id="its step is to be handled"
        ),
        pytest.param(CONVERGE, PINNING, DYING, (*HANDLED, "w0 dies"), True, id="pinning: excused, its worker died"),
        pytest.param(
            *(CONVERGE, PINNING, DYING, ('submit x "ab"', "admit x", "w0 dies"), True), id="pinning: it holds no job"
        ),
        pytest.param(
            *(STORED, PINNING, FULL._replace(deaths=1)),
            *((*HANDLED, "run w0 store", "report w0 job 0", "w0 dies"), False),
            id="dead: it can still be launched, in vain",
        ),
        pytest.param(DRAIN, PINNING, AB, (*HANDLED, "finish x"), False, id="a store still runs"),
        pytest.param(
            DRAIN, PINNING, AB, (*HANDLED, "finish x", "run w0 store", "report w0 job 0"), True, id="all is drained"
        ),
        pytest.param(DRAIN, PINNING, AB, (*LOST, "finish x"), True, id="only a lost report is missing"),
        pytest.param(DRAIN, PINNING, AB, (*LAUNCHED, "abort x"), False, id="a step still runs"),
        pytest.param(DRAIN, PINNING, AB, LOST, False, id="a request still runs, although no report will come"),
        pytest.param(CONVERGE, PINNING, AB, HANDLED, False, id="pinning: a store is in flight"),
        pytest.param(CONVERGE, PINNING, AB, (*HANDLED, "run w0 store"), False, id="pinning: it is not reported"),
        pytest.param(
            CONVERGE, PINNING, AB, (*HANDLED, "run w0 store", "report w0 job 0"), True, id="pinning: it is reported"
        ),
        pytest.param(CONVERGE, PINNING, AB, LOST, True, id="pinning: excused, its report is lost"),
        pytest.param(CONVERGE, FENCING, AB, HANDLED, True, id="fencing: at any time"),
        pytest.param(
            CONVERGE,
            PINNING._replace(deadline="expire"),
            AB._replace(expiries=1),
            (*HANDLED, "let job 0 expire"),
            True,
            id="pinning: what is on its way has expired",
        ),
        pytest.param(CONVERGE, PINNING, RELOAD, LOADING[:-1], True, id="pinning: the load is not launched"),
        pytest.param(CONVERGE, PINNING, RELOAD, LOADING, False, id="pinning: the load is launched"),
        pytest.param(
            CONVERGE,
            PINNING,
            BELOW_HOST._replace(meanings=("evict",), tiers=("device",)),
            CASCADING,
            True,
            id="pinning: what is on its way is below the host, and the device alone is reset",
        ),
        pytest.param(STORED, PINNING, AB, HANDLED, True, id="both blocks are on their way"),
        pytest.param(STORED, PINNING, FULL, HANDLED, True, id="one is on its way and the host is full"),
        pytest.param(
            STORED, PINNING, FULL, (*HANDLED, "run w0 store", "report w0 job 0"), False, id="the host has room again"
        ),
        pytest.param(
            STORED, PINNING, FULL, (*HANDLED, "run w0 store", "report w0 job 0", "finish x"), True, id="it has ended"
        ),
        pytest.param(
            *(STORED, PINNING, FULL._replace(device_blocks=4, prompts=("ab", "cd"))),
            *((*HANDLED, 'submit y "cd"', "admit y", "launch", "run w0 store", "report w0 job 0"), False),
            id="the host has room again while a step awaits its output, which will come",
        ),
        pytest.param(
            STORED, PINNING, TWICE, (*HANDLED, 'submit y "ab"', "admit y"), True, id="another request stores its blocks"
        ),
        pytest.param(
            STORED,
            PINNING,
            TWICE,
            (*HANDLED, "run w0 store", "report w0 job 0", "finish x", 'submit y "ab"', "admit y"),
            True,
            id="the host has its blocks from another request",
        ),
        pytest.param(
            STORED,
            PINNING._replace(store_mode="lazy"),
            FULL,
            HANDLED,
            True,
            id="lazy stores promise nothing to running requests",
        ),
    ],
)
def test_a_goal_is_reached(
    goal: LivenessProperty, contract: Contract, scope: Scope, commands: tuple[str, ...], reached: bool
) -> None:
    machine, state = state_after(contract, scope, *commands)
    assert goal.goal(machine.setting, state) is reached


@pytest.mark.parametrize(
    "leaks", [device_is(refs=(1, 0)), host_is(refs=(1,)), second_is(refs=(1,))], ids=["device", "host", "second"]
)
def test_a_reference_that_is_left_on_any_tier_is_not_drained(leaks: Change) -> None:
    machine, state = state_after(PINNING, BELOW_HOST, *CASCADED, "finish x")
    assert DRAIN.goal(machine.setting, state) is True
    assert DRAIN.goal(machine.setting, leaks(state)) is False


def test_a_cursor_that_passes_over_what_is_stored_nowhere() -> None:
    """The step that breaks the last of these goals for good."""
    machine, before = state_after(PINNING, FULL, 'submit x "ab"', "admit x")
    after = machine.step(before, act.Launch())
    judge = every_full_block_is_stored_or_refused.PASSED_OVER.on_step
    assert judge is not None
    assert judge(machine.setting, before, act.Launch(), after) is None
    passed = after._replace(requests=(after.requests[0]._replace(stored=2),))
    sentence = "request 0 passes over 'ab', which is neither on the host nor on its way"
    assert judge(machine.setting, before, act.Launch(), passed) == sentence


def test_the_catalogue() -> None:
    """Names are unique, stable, and each has a sentence; every property says when it is judged."""
    assert len(SAFETY) == 20
    assert [live.name for live in LIVENESS] == [
        "every-request-can-finish",
        "everything-drains",
        "reset-converges",
        "every-full-block-is-stored-or-refused",
    ]
    assert len(set(NAMES)) == len(NAMES) == 27
    assert NAMES[-2:] == (STEPPING.name, AGREEMENT)
    for name in NAMES:
        assert sentence_of(name).endswith(".")
    for judged in JUDGED:
        assert judged.on_state is not None or judged.on_step is not None
        assert not judged.actions or judged.on_step is not None
        assert judged.actions <= {kind.__name__ for kind in act.ACTIONS}
    assert [p.name for p in SAFETY if p.holds_for != "all targets"] == [
        "one-copy-per-key",
        "false-reset-serves-nothing-old",
    ]
    with pytest.raises(KeyError):
        sentence_of("no-such-property")
