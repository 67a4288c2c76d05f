"""`check`: what the contract forbids is refused by Forbidden, with the rule that it breaks and one sentence why.

Choices of any engine are judged, not only the policy's: so this is where a foreign engine learns what it may not do.
"""

from typing import NamedTuple

import pytest
from tests.seeds.below_host import BELOW, CASCADED, ON_HOST
from tests.seeds.driving import state_after

from kvmodel import Contract, Forbidden, Scope
from kvmodel import actions as act
from kvmodel.actions import Action, Admission, Launching
from kvmodel.transfer_job import LOAD, NONE, STORE, Pair

PINNING, FENCING = Contract("pinning"), Contract("fencing")
MARKS = Contract("pinning", reports="marks")

SCOPE = Scope(device_blocks=4, host_blocks=2, workers=2, prompts=("ab", "ac", "ab"), resets=2)
DECODING = SCOPE._replace(prompts=("ab", "cd"), decode=1)
FAULTLESS = SCOPE
RELOAD = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=2)

X_WAITS = ('submit x "ab"',)
X_RUNS = (*X_WAITS, "admit x")
X_LAUNCHED = (*X_RUNS, "launch")
X_HANDLED = (*X_LAUNCHED, "run w0 compute", "run w1 compute", "handle output")
X_STORED = (*X_HANDLED, "run w0 store", "run w1 store", "report w0 job 0", "report w1 job 0")
X_PREEMPTED = (*X_HANDLED, "preempt x")
Y_WAITS = (*X_STORED, 'submit y "ac"')
ONE_WORKER_LOADS = (
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
    *("finish x", 'submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store"),
    *("report w0 job 1", "finish y", 'submit z "ab"', "admit z", "launch"),
)

SECOND = Scope(2, 1, 1, ("ab", "ab"), resets=2, meanings=("evict",), tiers=("device", "host"), second_blocks=2)

NOTHING = Launching((), (), (), ())


class Refusal(NamedTuple):
    contract: Contract
    scope: Scope
    commands: tuple[str, ...]
    action: Action
    rule: str
    why: str


REFUSALS = [
    Refusal(PINNING, SCOPE, X_WAITS, act.Submit(0), "submit", "request 0 was submitted before"),
    Refusal(PINNING, SCOPE, X_RUNS, act.Lookup(0), "lookup", "request 0 does not wait"),
    Refusal(
        FENCING, SCOPE, X_PREEMPTED, act.Lookup(0), "lookup", "request 0 has jobs outstanding and must be deferred"
    ),
    Refusal(
        PINNING,
        SCOPE,
        Y_WAITS,
        act.Lookup(1, ((1,), ())),
        "hits-are-prefix-closed",
        "device block 1 is hit as 'a' but is not cached as that",
    ),
    Refusal(
        PINNING,
        SCOPE,
        Y_WAITS,
        act.Lookup(1, ((0,), (1,))),
        "hits-are-prefix-closed",
        "host block 1 is hit as 'ac' but is not cached as that",
    ),
    Refusal(
        PINNING,
        SCOPE,
        Y_WAITS,
        act.Lookup(1, ((0, 1), (0,))),
        "hits-are-prefix-closed",
        "request 1 hits more blocks than its prompt has",
    ),
    Refusal(PINNING, SCOPE, X_WAITS, act.ReleaseLookup(0), "release-lookup", "request 0 pins nothing"),
    Refusal(PINNING, SCOPE, X_RUNS, act.Admit(0), "admit", "request 0 does not wait"),
    Refusal(FENCING, SCOPE, X_PREEMPTED, act.Admit(0), "admit", "request 0 has jobs outstanding and must be deferred"),
    Refusal(
        PINNING,
        SCOPE._replace(device_blocks=2),
        (*X_RUNS, 'submit y "ac"'),
        act.Admit(1),
        "admit",
        "request 1 does not fit into the free device blocks",
    ),
    Refusal(PINNING, SCOPE, Y_WAITS, act.Admit(1, Admission((), (0,), ())), "admit", "request 1 loads 1 blocks into 0"),
    Refusal(
        PINNING,
        SCOPE,
        X_WAITS,
        act.Admit(0, Admission((), (), (0, 1, 2))),
        "admit",
        "request 0 gets more blocks than it has keys",
    ),
    Refusal(
        PINNING,
        SCOPE,
        Y_WAITS,
        act.Admit(1, Admission((), (), (0, 3))),
        "pinned-is-not-evicted",
        "device block 0 is given to request 1 while it is held",
    ),
    Refusal(
        PINNING,
        SCOPE,
        (*Y_WAITS, "finish x"),
        act.Admit(1, Admission((0,), (), (0,))),
        "pinned-is-not-evicted",
        "device block 0 is given to request 1 while it is held",
    ),
    Refusal(PINNING, DECODING, X_WAITS, act.Grow(0), "grow", "request 0 does not run"),
    Refusal(
        PINNING,
        DECODING._replace(device_blocks=3),
        (*X_HANDLED, "grow x"),
        act.Grow(0),
        "grow",
        "request 0 grows although no device block is free",
    ),
    Refusal(PINNING, DECODING, (*X_HANDLED, "grow x"), act.Grow(0), "grow", "request 0 grows beyond its last block"),
    Refusal(
        PINNING,
        DECODING,
        X_HANDLED,
        act.Grow(0, (1,)),
        "pinned-is-not-evicted",
        "device block 1 is given to request 0 while it is held",
    ),
    Refusal(PINNING, SCOPE, X_LAUNCHED, act.Launch(), "launch", "a step is launched before the one before it is done"),
    Refusal(PINNING, SCOPE, X_HANDLED, act.Launch(), "launch", "a launch would carry neither compute nor copies"),
    Refusal(
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 1, 2),))),
        "launch",
        "request 0 computes blocks 1 to 2, which are not its next ones",
    ),
    Refusal(
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 0, 3),))),
        "launch",
        "request 0 computes blocks 0 to 3, which are not its next ones",
    ),
    Refusal(
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 0, 1),), stores=((NONE, (Pair(1, 0, 2),)),))),
        "reads-what-was-written",
        "'ab' is stored from device block 1, which does not hold it",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(host_blocks=4),
        X_HANDLED,
        act.Launch(NOTHING._replace(stores=((NONE, (Pair(0, 2, 1),)),))),
        "no-block-stored-twice-at-once",
        "'a' is stored again while a store of it is on its way",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(host_blocks=4),
        X_STORED,
        act.Launch(NOTHING._replace(stores=((NONE, (Pair(0, 2, 1),)), (NONE, (Pair(0, 3, 1),))))),
        "no-block-stored-twice-at-once",
        "'a' is stored again while a store of it is on its way",
    ),
    Refusal(
        PINNING,
        SCOPE,
        (*X_HANDLED, 'submit y "ac"', "admit y"),
        act.Launch(NOTHING._replace(computes=((1, 1, 2),), stores=((NONE, (Pair(2, 0, 3),)),))),
        "pinned-is-not-evicted",
        "host block 0 is stored into while it is held",
    ),
    Refusal(
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 0, 2),), stores=((NONE, (Pair(0, 0, 1), Pair(1, 0, 2))),))),
        "pinned-is-not-evicted",
        "host block 0 is stored into while it is held",
    ),
    Refusal(
        FENCING,
        RELOAD,
        (*ONE_WORKER_LOADS, "reset invalidate", "admit z"),
        act.Launch(NOTHING._replace(computes=((2, 0, 2),))),
        "fence-before-reuse",
        "job 2 is not flushed although the launch touches its blocks",
    ),
    Refusal(PINNING, SCOPE, X_RUNS, act.Run(0, 0), "run", "worker 0 has nothing on its compute stream that may run"),
    Refusal(PINNING, SCOPE, X_LAUNCHED, act.Run(0, 1), "run", "worker 0 has nothing on its store stream that may run"),
    Refusal(PINNING, SCOPE, X_LAUNCHED, act.Run(1, 2), "run", "worker 1 has nothing on its load stream that may run"),
    Refusal(
        PINNING, SCOPE, X_HANDLED, act.Report(1, 0), "report", "worker 1 reports job 0, which it has not just copied"
    ),
    Refusal(
        PINNING, SCOPE, X_STORED, act.Report(1, 0), "report", "worker 1 reports job 0, which it has not just copied"
    ),
    Refusal(PINNING, RELOAD, ONE_WORKER_LOADS, act.Wake(2), "wake", "request 2 wakes before its load is complete"),
    Refusal(
        PINNING, SCOPE, X_LAUNCHED, act.HandleOutput(), "handle-output", "no step is awaited whose compute has run"
    ),
    Refusal(PINNING, SCOPE, X_WAITS, act.Preempt(0), "preempt", "request 0 neither runs nor loads"),
    Refusal(PINNING, SCOPE, X_WAITS, act.PreemptUnderPressure(0), "preempt", "request 0 does not run"),
    Refusal(PINNING, SCOPE, X_LAUNCHED, act.Finish(0), "finish", "request 0 finishes before it is wholly computed"),
    Refusal(
        PINNING, SCOPE, X_LAUNCHED, act.Stop(0), "stop", "request 0 stops before an output of it, or after its last one"
    ),
    Refusal(PINNING, SCOPE, (*X_RUNS, "abort x"), act.Abort(0), "abort", "request 0 is not there to be aborted"),
    Refusal(PINNING, SCOPE, (), act.Abort(0), "abort", "request 0 is not there to be aborted"),
    Refusal(
        FENCING,
        RELOAD,
        (*ONE_WORKER_LOADS, "abort z"),
        act.Abort(2),
        "abort",
        "request 2 is not there to be aborted",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(resets=0),
        X_WAITS,
        act.Reset("invalidate", "preempt"),
        "reset",
        "no more resets in this scope",
    ),
    Refusal(
        PINNING,
        SCOPE,
        X_HANDLED,
        act.Reset("invalidate", "preempt", "host"),
        "reset",
        "a reset of the host tier alone cannot mean invalidate: the device would serve the old weights' KV",
    ),
    Refusal(
        FENCING,
        SCOPE,
        X_HANDLED,
        act.Reset("evict", "preempt", "host"),
        "reset",
        "a reset of the host tier alone preempts nobody, since no request holds host blocks: use keep",
    ),
    Refusal(
        PINNING,
        SCOPE,
        X_HANDLED,
        act.Reset("invalidate", "preempt", answer=True),
        "true-reset-serves-nothing-old",
        "the reset answers True while something from before it is left",
    ),
    Refusal(
        FENCING,
        SCOPE,
        X_HANDLED,
        act.Reset("invalidate", "preempt", answer=False),
        "false-reset-has-a-cause",
        "the reset answers False although nothing from before it is left",
    ),
    Refusal(
        PINNING,
        FAULTLESS,
        X_STORED,
        act.DuplicateReport(0, 0),
        "faults",
        "no more reports may be repeated in this scope",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(duplicates=1),
        X_HANDLED,
        act.DuplicateReport(0, 0),
        "duplicate-report",
        "worker 0 never reported job 0",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(duplicates=1),
        X_STORED,
        act.DuplicateReport(0, 1),
        "duplicate-report",
        "worker 0 never reported job 1",
    ),
    Refusal(
        PINNING,
        FAULTLESS,
        (*X_HANDLED, "run w0 store"),
        act.LoseReport(0, 0),
        "faults",
        "no more reports may be lost in this scope",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(losses=1),
        X_HANDLED,
        act.LoseReport(0, 0),
        "report",
        "worker 0 reports job 0, which it has not just copied",
    ),
    Refusal(
        PINNING,
        FAULTLESS,
        X_HANDLED,
        act.FailCopy(0, STORE),
        "faults",
        "no more copies may fail in this scope",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(failures=1),
        X_HANDLED,
        act.FailCopy(0, STORE, 0),
        "faults",
        "no more copies may fail in this scope",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(failures=1),
        X_HANDLED,
        act.FailCopy(0, LOAD),
        "run",
        "worker 0 has nothing on its load stream that may run",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(failures=1),
        X_LAUNCHED,
        act.FailCopy(0, 0),
        "fail-copy",
        "worker 0 has no copy on that stream of which this part could fail",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(partial_failures=1),
        X_HANDLED,
        act.FailCopy(0, STORE, 2),
        "fail-copy",
        "worker 0 has no copy on that stream of which this part could fail",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(deaths=1),
        (*X_HANDLED, "w0 dies"),
        act.DeclareDead(0),
        "declare-dead",
        "workers have no deadline in this contract: who is dead is waited for",
    ),
    Refusal(
        PINNING._replace(deadline="expire"),
        SCOPE._replace(deaths=1),
        X_HANDLED,
        act.DeclareDead(0),
        "declare-dead",
        "worker 0 is not dead",
    ),
    Refusal(PINNING, FAULTLESS, X_HANDLED, act.Die(0), "faults", "no more workers may die in this scope"),
    Refusal(
        PINNING,
        SCOPE._replace(workers=2, deaths=2),
        ("w1 dies",),
        act.Die(1),
        "die",
        "worker 1 is dead already",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(deaths=1),
        (*X_LAUNCHED, "w0 dies"),
        act.Run(0, 0),
        "run",
        "worker 0 is dead: nothing runs there",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(expiries=1),
        X_HANDLED,
        act.Expire(0),
        "expire",
        "jobs have no deadline in this contract: what does not come is waited for",
    ),
    Refusal(
        PINNING._replace(deadline="expire"),
        SCOPE._replace(expiries=1),
        X_STORED,
        act.Expire(0),
        "expire",
        "job 0 is not outstanding",
    ),
    Refusal(
        FENCING._replace(deadline="expire"),
        SCOPE,
        X_HANDLED,
        act.Expire(0),
        "faults",
        "no more jobs may expire early in this scope",
    ),
    Refusal(PINNING, FAULTLESS, (), act.ForgeReport(0), "faults", "no more reports may be forged in this scope"),
    Refusal(PINNING, FAULTLESS, (), act.FreeTwice("host"), "faults", "nothing more may be freed twice in this scope"),
    Refusal(
        PINNING,
        SCOPE._replace(double_frees=1),
        X_WAITS,
        act.FreeTwice("request"),
        "free-twice",
        "there is no request that was freed before",
    ),
    Refusal(
        PINNING,
        SCOPE._replace(double_frees=1),
        X_HANDLED,
        act.FreeTwice("host"),
        "free-twice",
        "there is no host that was freed before",
    ),
    Refusal(
        MARKS,
        SCOPE,
        X_HANDLED,
        act.ReportMark(1, 1, 0),
        "report",
        "worker 1 reports mark 0 and has not copied all jobs up to it",
    ),
    Refusal(
        MARKS,
        SCOPE._replace(losses=1),
        X_HANDLED,
        act.LoseMark(1, 1),
        "report",
        "worker 1 has no mark to report that could be lost",
    ),
    Refusal(
        MARKS,
        SCOPE._replace(duplicates=1),
        X_HANDLED,
        act.RepeatMark(1, 1, "last"),
        "duplicate-report",
        "worker 1 has reported no mark that could be repeated",
    ),
    Refusal(PINNING, SECOND, CASCADED, act.Promote(0), "promote", "request 0 does not wait"),
    Refusal(
        PINNING,
        SECOND,
        (*BELOW, "promote what x would hit"),
        act.Promote(0),
        "promote",
        "request 0 has jobs outstanding and must be deferred",
    ),
    Refusal(
        PINNING,
        SECOND,
        ('submit x "ab"',),
        act.Promote(0),
        "promote",
        "the second tier has nothing that request 0 would hit on the host",
    ),
    Refusal(
        PINNING,
        SECOND,
        BELOW,
        act.Promote(0, (Pair(1, 0, 1),)),
        "reads-what-was-written",
        "'a' is promoted from second block 1, which does not hold it",
    ),
    Refusal(
        PINNING,
        SECOND._replace(host_blocks=2),
        (*CASCADED, "reset evict of the device tier"),
        act.Promote(0, (Pair(1, 1, 1),)),
        "no-block-stored-twice-at-once",
        "'a' is promoted although the host has it, or will have",
    ),
    Refusal(
        PINNING,
        SECOND,
        (*CASCADED, "launch", "run w0 store", "reset evict of the device tier"),
        act.Promote(0, (Pair(0, 0, 1),)),
        "pinned-is-not-evicted",
        "host block 0 is promoted into while it is held",
    ),
    Refusal(
        PINNING,
        SECOND,
        BELOW,
        act.Promote(0, (Pair(0, 0, 1), Pair(0, 0, 1))),
        "no-block-stored-twice-at-once",
        "a promotion for request 0 has one block twice",
    ),
    Refusal(
        PINNING,
        SECOND,
        ON_HOST,
        act.Launch(NOTHING._replace(cascade=(Pair(0, 0, 2),))),
        "reads-what-was-written",
        "'ab' is cascaded from host block 0, which does not hold it",
    ),
    Refusal(
        PINNING,
        SECOND,
        CASCADED,
        act.Launch(NOTHING._replace(cascade=(Pair(0, 1, 1),))),
        "no-block-stored-twice-at-once",
        "'a' is cascaded although the second tier has it, or will have",
    ),
    Refusal(
        PINNING,
        SECOND._replace(host_blocks=2, second_blocks=1),
        (*ON_HOST, "launch"),
        act.Launch(NOTHING._replace(cascade=(Pair(0, 0, 1),))),
        "pinned-is-not-evicted",
        "second block 0 is cascaded into while it is held",
    ),
    Refusal(
        PINNING,
        SECOND,
        ON_HOST,
        act.Launch(NOTHING._replace(stores=((NONE, (Pair(1, 0, 2),)),), cascade=(Pair(0, 0, 1),))),
        "pinned-is-not-evicted",
        "host block 0 is stored into while it is held",
    ),
]


@pytest.mark.parametrize("row", REFUSALS, ids=[f"{row.rule}: {row.why}" for row in REFUSALS])
def test_what_the_contract_forbids(row: Refusal) -> None:
    machine, state = state_after(row.contract, row.scope, *row.commands)
    with pytest.raises(Forbidden) as refused:
        machine.check(state, row.action)
    assert (refused.value.rule, refused.value.why) == (row.rule, row.why)
    assert act.key(row.action) not in map(act.key, machine.actions(state))


def test_every_action_can_be_refused() -> None:
    assert {type(row.action) for row in REFUSALS} == set(act.ACTIONS)


LEGAL = [
    (PINNING, SCOPE, X_WAITS, act.Admit(0, Admission((), (), (3,))), "part of the prompt, and any free block"),
    (PINNING, SCOPE, Y_WAITS, act.Admit(1, Admission((), (0,), (2,))), "a host hit although the device has it too"),
    (PINNING, SCOPE, Y_WAITS, act.Lookup(1, ((), ())), "a hit is not used"),
    (
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 0, 1),))),
        "a chunk of the prompt, and no store",
    ),
    (
        PINNING,
        SCOPE,
        X_RUNS,
        act.Launch(NOTHING._replace(computes=((0, 0, 2),), stores=((NONE, (Pair(1, 1, 2),)),))),
        "a store of the last block alone, into any free host block",
    ),
    (
        FENCING,
        RELOAD,
        (*ONE_WORKER_LOADS, "reset invalidate", "admit z"),
        act.Launch(NOTHING._replace(computes=((2, 0, 2),), flush=(2,))),
        "the fence and no store",
    ),
    (PINNING, DECODING, (*X_RUNS, 'submit y "cd"'), act.Grow(0, (3,)), "growing before anything is computed"),
    (PINNING, DECODING, X_RUNS, act.PreemptUnderPressure(0), "another victim than the policy's"),
    (PINNING, SCOPE, X_HANDLED, act.Reset("invalidate", "preempt", answer=False), "False, since a store is in flight"),
]
"""What the contract allows although the policy would choose otherwise."""


@pytest.mark.parametrize(
    ("contract", "scope", "commands", "action"), [row[:4] for row in LEGAL], ids=[row[4] for row in LEGAL]
)
def test_what_the_contract_allows(contract: Contract, scope: Scope, commands: tuple[str, ...], action: Action) -> None:
    machine, state = state_after(contract, scope, *commands)
    machine.check(state, action)
    assert machine.step(state, action) != state
