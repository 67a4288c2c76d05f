"""explain: every kind of divergence, the property that it is named by, and what is said of it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from kvmodel import Action, Contract, Machine, State
from kvmodel import actions as act
from kvmodel.actions import Admission, Launching, Reset
from kvmodel.contract import Discipline
from kvmodel.transfer_job import ABANDONED, NONE, Pair
from kvproof.scopes import SCOPES
from kvproof.targets import naming
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import Explained, explain
from kvproof.targets.judging import between
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.side_by_side import sides
from kvproof.targets.view import JobView, View, expected

SCOPE = SCOPES["s1"]._replace(duplicates=1, forgeries=1, double_frees=1)

SUBMITTED = (act.Submit(0),)
ADMITTED = (*SUBMITTED, act.Admit(0))
LAUNCHED = (*ADMITTED, act.Launch())
RAN = (*LAUNCHED, act.Run(0, 0))
HANDLED = (*RAN, act.HandleOutput())
COPIED = (*HANDLED, act.Run(0, 1))
REPORTED = (*COPIED, act.Report(0, 0))
RESET_AND_ADMITTED = (*HANDLED, Reset("invalidate", "preempt"), act.Admit(0))
"""Under fencing the store of `a` is forgotten then, and still runs; the request got its blocks again."""

ADMIT, LAUNCH, SCHEDULE = Command("admit", (0,)), Command("launch"), Command("schedule")
SUBMIT, HANDLE, REPORT = Command("submit", (0,)), Command("handle_output"), Command("report", (0, 0))
RESET = Command("reset", ("invalidate", "preempt"))
COMPUTE, STORE, LOAD = (Command("run", (0, stream)) for stream in ("compute", "store", "load"))

STORE_A = ((NONE, (Pair(0, 0, 1),)),)

Lie = Callable[[View], Mapping[str, object]]


def at(path: tuple[Action, ...], discipline: Discipline) -> tuple[Machine, State]:
    machine = Machine(Contract(discipline), SCOPE)
    state = machine.initial()
    for action in path:
        machine.check(state, action)
        state = machine.step(state, action)
    return machine, state


class Case(NamedTuple):
    """What a target did after a path of the machine.

    outcome  of the command; view: what is seen then, as the machine has it after `does`, with lies in place
    """

    path: tuple[Action, ...]
    command: Command
    outcome: Outcome
    property: str
    sentence: str
    contract: str
    target: str
    does: tuple[Action, ...] = ()
    lie: Lie = lambda view: {}
    discipline: Discipline = "pinning"
    exact: bool = True


def took(*actions: Action) -> Answer:
    return Answer(None, actions)


def explained(case: Case) -> Explained | Divergence:
    machine, state = at(case.path, case.discipline)
    after = state
    for action in case.does:
        after = machine.step(after, action)
    seen = expected(after)
    return explain(machine, state, case.command, case.outcome, seen._replace(**case.lie(seen)), case.exact)


STEPPING = "work-remaining-keeps-the-engine-stepping"
OWNERS = "owners-account-for-references"
READS = "reads-what-was-written"
FENCE = "fence-before-reuse"
AGREES = "agrees-with-the-reference"

CASES = {
    "an exception": Case(
        (), SUBMIT, Crashed("OSError", "disk full (engine.py:7)"), STEPPING,
        "The target failed with OSError on submit(0): disk full (engine.py:7).",
        "the command is legal here", "OSError: disk full (engine.py:7)",
    ),
    "a double free": Case(
        (), SUBMIT, Crashed("DoubleFree", "block 1"), "no-double-free",
        "The target failed with DoubleFree on submit(0): block 1.",
        "the command is legal here", "DoubleFree: block 1",
    ),
    "a misread": Case(
        (), SUBMIT, Crashed("Misread", "block 1"), READS, "The target failed with Misread on submit(0): block 1.",
        "the command is legal here", "Misread: block 1",
    ),
    "a hang": Case(
        (), SUBMIT, Crashed("Hang", "10 s"), "everything-drains", "The target failed with Hang on submit(0): 10 s.",
        "the command is legal here", "Hang: 10 s",
    ),
    "refused, and possible": Case(
        SUBMITTED, ADMIT, Refused("OutOfBlocks: 2 needed"), STEPPING,
        "The target refused admit(0) although the contract allows it: OutOfBlocks: 2 needed.",
        "it can be done here", "refused: OutOfBlocks: 2 needed",
    ),
    "refused, and done": Case(
        ADMITTED, ADMIT, Refused("WrongPhase: RUNNING"), "refused-changes-nothing",
        "Device block 1 counts 0 references and has 1 owners (request 0).",
        "d1 references 1: x", "d1 references 0: x", lie=lambda view: {"device_refs": (1, 0)},
    ),
    "a double free accepted": Case(
        (), Command("free_twice", ("device",)), Answer(), "no-double-free",
        "The target accepted free_twice(device), which must be refused.", "refused by a typed error", "accepted",
    ),
    "a forged report accepted": Case(
        (), Command("forge_report", (0,)), Answer(), "refused-changes-nothing",
        "The target accepted forge_report(0), which must be refused.", "refused by a typed error", "accepted",
    ),
    "a hit that is not cached": Case(
        SUBMITTED, ADMIT, took(act.Admit(0, Admission((1,), (), (0,)))), "hits-are-prefix-closed",
        "On admit(0) the target did what the contract forbids: device block 1 is hit as 'a' but is not cached as that.",
        "forbidden: device block 1 is hit as 'a' but is not cached as that",
        "admit x: device hits d1, host hits none, fresh d0",
    ),
    "a store of what is not computed": Case(
        ADMITTED, LAUNCH, took(act.Launch(Launching((), STORE_A, (), ()))), READS,
        "On launch() the target did what the contract forbids: "
        "'a' is stored from device block 0, which does not hold it.",
        "forbidden: 'a' is stored from device block 0, which does not hold it",
        "launch: compute nothing; store d0->h0; flush nothing", exact=False,
    ),
    "a store on its way already": Case(
        HANDLED, LAUNCH, took(act.Launch(Launching((), STORE_A, (), ()))), "no-block-stored-twice-at-once",
        "On launch() the target did what the contract forbids: "
        "'a' is stored again while a store of it is on its way.",
        "forbidden: 'a' is stored again while a store of it is on its way",
        "launch: compute nothing; store d0->h0; flush nothing",
    ),
    "no fence": Case(
        RESET_AND_ADMITTED, LAUNCH, took(act.Launch(Launching(((0, 0, 2),), (), (), ()))), FENCE,
        "On launch() the target did what the contract forbids: "
        "job 0 is not flushed although the launch touches its blocks.",
        "forbidden: job 0 is not flushed although the launch touches its blocks",
        "launch: compute x[0:2]; store nothing; flush nothing", discipline="fencing",
    ),
    "a fence that nothing waits for": Case(
        RESET_AND_ADMITTED, LAUNCH, Answer(), FENCE,
        "The oldest operation of worker 0's compute stream does not wait for the copies that use its blocks.",
        "may run: w0 store", "may run: w0 compute, w0 store",
        (act.Launch(),), lambda view: {"runnable": ((0, 0), (0, 1))}, "fencing",
    ),
    "a compute that ran before the fence": Case(
        (*RESET_AND_ADMITTED, act.Launch()), COMPUTE, Answer(), FENCE,
        "The oldest operation of worker 0's compute stream does not wait for the copies that use its blocks.",
        "may run: w0 store", "may run: w0 compute, w0 store", discipline="fencing",
    ),
    "a store that ran before the compute": Case(
        LAUNCHED, STORE, Answer(), READS,
        "The oldest operation of worker 0's store stream does not wait for the compute that writes what it reads.",
        "may run: w0 compute", "may run: w0 compute, w0 store",
    ),
    "an operation that is not there": Case(
        ADMITTED, LOAD, Answer(), AGREES,
        "The oldest operation of worker 0's load stream could run, and there should be none.",
        "may run: nothing", "may run: w0 load",
    ),
    "nothing may run": Case(
        ADMITTED, LAUNCH, Answer(), "everything-drains",
        "The oldest operation of worker 0's compute stream should be able to run, and is not.",
        "may run: w0 compute", "may run: nothing", (act.Launch(),), lambda view: {"runnable": ()}, exact=False,
    ),
    "True too early": Case(
        LAUNCHED, RESET, Answer(True), "true-reset-serves-nothing-old",
        "On reset(invalidate, preempt) the target did what the contract forbids: "
        "the reset answers True while something from before it is left.",
        "forbidden: the reset answers True while something from before it is left", "reset invalidate preempt True",
    ),
    "False without a cause": Case(
        (), RESET, Answer(False), "false-reset-has-a-cause",
        "On reset(invalidate, preempt) the target did what the contract forbids: "
        "the reset answers False although nothing from before it is left.",
        "forbidden: the reset answers False although nothing from before it is left", "reset invalidate preempt False",
    ),
    "another choice": Case(
        SUBMITTED, ADMIT, took(act.Admit(0, Admission((), (), (1, 0)))), AGREES,
        "On admit(0) the target made another choice than the reference.",
        "admit x: device hits none, host hits none, fresh d0 d1",
        "admit x: device hits none, host hits none, fresh d1 d0",
    ),
    "a store left out": Case(
        ADMITTED, LAUNCH, took(act.Launch(Launching(((0, 0, 2),), (), (), ()))),
        "every-full-block-is-stored-or-refused",
        "On launch() the target made another choice than the reference: 'a' is not stored, though the host has room.",
        "launch: compute x[0:2]; store d0->h0; flush nothing", "launch: compute x[0:2]; store nothing; flush nothing",
    ),
    "work left undone": Case(
        ADMITTED, SCHEDULE, took(), STEPPING, "The target's scheduling call is over, and it could still launch.",
        "would still launch", "nothing more to do",
    ),
    "a reference too few": Case(
        SUBMITTED, ADMIT, Answer(), OWNERS, "Device block 1 counts 0 references and has 1 owners (request 0).",
        "d1 references 1: x", "d1 references 0: x", (act.Admit(0),), lambda view: {"device_refs": (1, 0)}, exact=False,
    ),
    "a host reference too many": Case(
        COPIED, REPORT, Answer(), OWNERS, "Host block 0 counts 1 references and has 0 owners (none).",
        "h0 references 0: nobody, in the free queue", "h0 references 1: nobody, in the free queue",
        (act.Report(0, 0),), lambda view: {"host_refs": (1,)},
    ),
    "a free block that is owned": Case(
        SUBMITTED, ADMIT, Answer(), "free-means-unowned",
        "Device block 1 counts 1 references and stands 1 times in the free queue.",
        "free device blocks: none", "free device blocks: d1", (act.Admit(0),), lambda view: {"device_free": (1,)},
        exact=False,
    ),
    "published before it is computed": Case(
        LAUNCHED, COMPUTE, Answer(), "no-use-after-free",
        "Device block 0 can be hit while launched step 0 writes it.", "d0 cannot be hit", "d0 can be hit as 'a'",
        (act.Run(0, 0),), lambda view: {"device_keys": (1, 0)},
    ),
    "not what was written": Case(
        LAUNCHED, COMPUTE, Answer(), READS, "Block d1 of worker 0 holds UNWRITTEN, and should hold CONTENT(ab).",
        "d1 on w0 CONTENT(ab)", "d1 on w0 UNWRITTEN",
        (act.Run(0, 0),), lambda view: {"contents": (((1, 0),), ((0,),))},
    ),
    "a job that was reported": Case(
        COPIED, REPORT, Answer(), OWNERS,
        "Device block 0 counts 1 references and has 2 owners (request 0, job 0 (LIVE)).",
        "no job 0", "job 0 store d0->h0 LIVE, awaiting w0",
        (act.Report(0, 0),), lambda view: {"jobs": expected(at(COPIED, "pinning")[1]).jobs},
    ),
    "a stale id": Case(
        SUBMITTED, ADMIT, Answer(), "every-request-can-finish",
        "Request x still waits for job 7, which it must not wait for.",
        "x RUNNING, holds d0 d1, 0 computed, 0 offered",
        "x RUNNING, holds d0 d1, 0 computed, 0 offered, waits for job 7",
        (act.Admit(0),), lambda view: {"requests": (view.requests[0]._replace(jobs=(7,)),)}, exact=False,
    ),
    "a cursor that ran ahead": Case(
        ADMITTED, LAUNCH, Answer(), "every-full-block-is-stored-or-refused",
        "Request 0 passes over 'ab', which is neither on the host nor on its way.",
        "x RUNNING, holds d0 d1, 0 computed, 1 offered", "x RUNNING, holds d0 d1, 0 computed, 2 offered",
        (act.Launch(),), lambda view: {"requests": (view.requests[0]._replace(stored=2),)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_divergence(name: str) -> None:
    case = CASES[name]
    found = explained(case)
    assert isinstance(found, Divergence)
    assert (found.property, found.sentence) == (case.property, case.sentence)
    assert (found.contract_lines, found.target_lines) == ((case.contract,), (case.target,))


BOOKS_THAT_AGREE = {
    "a transfer that went with its references": Case(
        LAUNCHED, Command("abort", (0,)), Answer(), "no-use-after-free",
        "Host block 0 is free while job 0 still uses it.", "", "", (act.Abort(0),),
        lambda view: {"host_refs": (0,), "host_free": (0,), "jobs": ()}, "fencing",
    ),
    "a step that was struck off": Case(
        LAUNCHED, Command("preempt", (0,)), Answer(), "no-use-after-free",
        "Device block 1 is free while launched step 0 still uses it.",
        "", "", (act.Preempt(0),), lambda view: {"device_refs": (1, 0), "device_free": (1,), "launched": ()},
    ),
    "a lookup that keeps nothing": Case(
        (*REPORTED, act.Preempt(0)), Command("lookup", (0,)), Answer(), "pinned-is-not-evicted",
        "Request x has looked up blocks that nothing keeps from eviction.",
        "", "", (act.Lookup(0),),
        lambda view: {
            "device_refs": (0, 0), "device_free": (1, 0), "requests": (view.requests[0]._replace(pins=None),),
        },
    ),
    "a block that was given up too early": Case(
        HANDLED, STORE, Answer(), READS, "Request x has given up device block 0, which it is still to read.",
        "", "", (act.Run(0, 1),),
        lambda view: {"device_refs": (1, 1), "requests": (view.requests[0]._replace(table=(-1, 1)),)},
    ),
    "nothing of all that": Case(
        SUBMITTED, ADMIT, Answer(), OWNERS, "Device block 1 has 0 references, and should have 1.",
        "", "", (act.Admit(0),),
        lambda view: {
            "device_refs": (1, 0), "device_free": (1,), "requests": (view.requests[0]._replace(table=(0,)),),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOKS_THAT_AGREE)
def test_where_books_agree_it_is_named_by_what_it_endangers(name: str) -> None:
    case = BOOKS_THAT_AGREE[name]
    found = explained(case)
    assert isinstance(found, Divergence)
    assert (found.property, found.sentence) == (case.property, case.sentence)


LEGAL_IN_ITS_OWN_WAY = {
    "other blocks": Case(
        SUBMITTED, ADMIT, took(act.Admit(0, Admission((), (), (1, 0)))), "", "", "", "",
        (act.Admit(0, Admission((), (), (1, 0))),),
    ),
    "free blocks in another order": Case((), SUBMIT, Answer(), "", "", "", "", SUBMITTED, lambda view: {
        "device_free": (1, 0),
    }),
    "a store left out": Case(
        ADMITTED, LAUNCH, took(act.Launch(Launching(((0, 0, 2),), (), (), ()))), "", "", "", "",
        (act.Launch(Launching(((0, 0, 2),), (), (), ())),),
    ),
    "a cursor of its own": Case(
        ADMITTED, LAUNCH, Answer(), "", "", "", "",
        (act.Launch(),), lambda view: {"requests": (view.requests[0]._replace(stored=0),)},
    ),
    "an admission put off": Case(SUBMITTED, ADMIT, Refused("Later"), "", "", "", ""),
    "work left for the next call": Case(ADMITTED, SCHEDULE, took(), "", "", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL_IN_ITS_OWN_WAY)
def test_what_another_engine_may_do_otherwise(name: str) -> None:
    case = LEGAL_IN_ITS_OWN_WAY[name]
    assert isinstance(explained(case._replace(exact=False)), Explained)
    assert isinstance(explained(case), Divergence)


def test_another_engine_may_order_its_streams_more_strictly() -> None:
    """It may leave out what could run, and refuse to run it; but not everything."""
    machine = Machine(Contract("pinning"), SCOPE._replace(workers=2))
    state = machine.initial()
    for action in ADMITTED:
        state = machine.step(state, action)
    after = machine.step(state, act.Launch())
    seen = expected(after)
    assert seen.runnable == ((0, 0), (1, 0))
    one = seen._replace(runnable=((0, 0),))
    for exact in (True, False):
        found = explain(machine, state, LAUNCH, Answer(), one, exact)
        assert isinstance(found, Divergence if exact else Explained)
        found = explain(machine, after, Command("run", (1, "compute")), Refused("NotRunnable"), one, exact)
        assert isinstance(found, Divergence if exact else Explained)
        refused = explain(machine, after, COMPUTE, Refused("NotRunnable"), one, exact)
        assert isinstance(refused, Divergence)
        assert isinstance(explain(machine, state, LAUNCH, Answer(), seen._replace(runnable=()), exact), Divergence)


def judged_store(source: int, exact: bool) -> Explained | Divergence:
    """`a` is in block 0, and its store is put off; then `b` is computed in block 1, with a store of the source."""
    machine = Machine(Contract("pinning"), SCOPE._replace(prompts=("a", "b")))
    state = machine.initial()
    alone = Launching(((0, 0, 1),), (), (), ())
    for action in (*ADMITTED, act.Launch(alone), act.Run(0, 0), act.HandleOutput(), act.Submit(1), act.Admit(1)):
        state = machine.step(state, action)
    launch = act.Launch(Launching(((1, 0, 1),), ((NONE, (Pair(source, 0, source + 1),)),), (), ()))
    machine.check(state, launch)
    return explain(machine, machine.step(state, launch), STORE, Answer(), View(), exact)


def test_a_store_of_another_engine_waits_for_the_compute_that_writes_its_source_and_for_no_other() -> None:
    assert isinstance(judged_store(0, exact=False), Explained)
    for source, exact in ((0, True), (1, True), (1, False)):
        found = judged_store(source, exact)
        assert isinstance(found, Divergence)
        assert found.property == READS


def judged_load(device_blocks: int) -> Explained | Divergence:
    """Worker 1 has yet to compute `b`, whose request has ended, when the load of `a` runs there: with one device block
    into the same, with two into the other."""
    scope = SCOPE._replace(
        device_blocks=device_blocks, host_blocks=1, workers=2, prompts=("a", "b", "a"),
        meanings=("evict",), tiers=("device",),
    )  # fmt: skip
    machine = Machine(Contract("pinning", output_from="first"), scope)
    state = machine.initial()
    for action in (
        *ADMITTED, act.Launch(), act.Run(0, 0), act.Run(1, 0), act.HandleOutput(), act.Run(0, 1), act.Run(1, 1),
        act.Report(0, 0), act.Report(1, 0), act.Finish(0), Reset("evict", "preempt", "device"),
        act.Submit(1), act.Admit(1), act.Launch(Launching(((1, 0, 1),), (), (), ())), act.Run(0, 0),
        act.HandleOutput(), act.Finish(1), act.Submit(2), act.Admit(2), act.Launch(),
    ):  # fmt: skip
        machine.check(state, action)
        state = machine.step(state, action)
    return explain(machine, state, Command("run", (1, "load")), Answer(), View(), exact=False)


def test_a_load_of_another_engine_waits_for_the_computes_that_use_what_it_overwrites_and_for_no_other() -> None:
    assert isinstance(judged_load(2), Explained)
    found = judged_load(1)
    assert isinstance(found, Divergence)
    assert found.contract_lines == ("may run: w0 load, w1 compute",)


def test_what_another_engine_shows_may_run_has_the_copies_that_need_not_wait() -> None:
    machine = Machine(Contract("pinning"), SCOPE._replace(prompts=("a", "b")))
    state = machine.initial()
    alone = Launching(((0, 0, 1),), (), (), ())
    for action in (*ADMITTED, act.Launch(alone), act.Run(0, 0), act.HandleOutput(), act.Submit(1), act.Admit(1)):
        state = machine.step(state, action)
    launch = act.Launch(Launching(((1, 0, 1),), ((NONE, (Pair(0, 0, 1),)),), (), ()))
    view = expected(machine.step(state, launch))
    assert view.runnable == ((0, 0),)
    both, wrong = view._replace(runnable=((0, 0), (0, 1))), view._replace(runnable=((0, 0), (0, 2)))
    assert isinstance(explain(machine, state, LAUNCH, took(launch), both, exact=False), Explained)
    assert isinstance(explain(machine, state, LAUNCH, took(launch), both, exact=True), Divergence)
    assert isinstance(explain(machine, state, LAUNCH, took(launch), wrong, exact=False), Divergence)


def test_another_engine_may_say_once_what_is_flushed() -> None:
    """A launch of `b` waits for the store of `a`; so does that of `c`, on the worker that lags, and need not say so."""
    scope = SCOPE._replace(device_blocks=1, workers=2, prompts=("a", "b", "c"))
    machine = Machine(Contract("fencing", output_from="first"), scope)
    state = machine.initial()
    for action in (*ADMITTED, act.Launch(), act.Run(0, 0), act.Run(1, 0), act.HandleOutput(), act.Finish(0)):
        state = machine.step(state, action)
    state = machine.step(machine.step(state, act.Submit(1)), act.Admit(1))

    def launched(number: int, flush: tuple[int, ...]) -> tuple[Command, Answer]:
        return LAUNCH, took(act.Launch(Launching(((number, 0, 1),), (), (), flush)))

    never = explain(machine, state, *launched(1, ()), View(), exact=False)
    assert isinstance(never, Divergence)
    assert never.property == FENCE
    said = explain(machine, state, *launched(1, (0,)), View(), exact=False)
    assert isinstance(said, Explained)
    state = said.state
    for action in (act.Run(0, 1), act.Run(0, 0), act.HandleOutput(), act.Finish(1), act.Submit(2), act.Admit(2)):
        machine.check(state, action)
        state = machine.step(state, action)
    assert isinstance(explain(machine, state, *launched(2, ()), View(), exact=True), Divergence)
    again = explain(machine, state, *launched(2, ()), View(), exact=False)
    assert isinstance(again, Explained)
    assert again.state.steps[-1].after_jobs == (0,)


def test_a_call_is_put_into_the_contracts_order() -> None:
    """An engine that tells of its launch first, and of an end last, has still done them in that order."""
    scope = SCOPE._replace(prompts=("a", "b"))
    machine = Machine(Contract("pinning"), scope)
    state = machine.initial()
    for action in (act.Submit(0), act.Admit(0), act.Launch(), act.Run(0, 0), act.HandleOutput(), act.Submit(1)):
        state = machine.step(state, action)
    told = (act.Launch(), act.Admit(1), act.Finish(0))
    after = state
    for action in reversed(told):
        after = machine.step(after, action)
    found = explain(machine, state, SCHEDULE, took(*told), expected(after), exact=True)
    assert found == Explained((act.Finish(0), act.Admit(1), act.Launch()), after)


def test_a_lookup_is_given_up_for_what_follows() -> None:
    """Before growth, where its blocks are needed there; else beside admissions."""
    scope = SCOPE._replace(device_blocks=3, host_blocks=3, prompts=("ab", "a"), decode=1, lookups=True)
    machine = Machine(Contract("pinning"), scope)
    state = machine.initial()
    path = (act.Submit(1), act.Lookup(1), act.Admit(1), act.Launch(), act.Run(0, 0), act.HandleOutput())
    for action in (*path, act.Preempt(1), act.Run(0, 1), act.Report(0, 0), act.Lookup(1)):
        machine.check(state, action)
        state = machine.step(state, action)
    for action in (act.Submit(0), act.Admit(0, Admission((), (), (1, 2))), act.Launch(), act.Run(0, 0)):
        machine.check(state, action)
        state = machine.step(state, action)
    state = machine.step(state, act.HandleOutput())
    told = (act.ReleaseLookup(1), act.Grow(0, (0,)))
    after = state
    for action in told:
        after = machine.step(after, action)
    found = explain(machine, state, SCHEDULE, took(*told), expected(after), exact=False)
    assert found == Explained(told, after)


@pytest.mark.parametrize(
    ("command", "path", "told", "what"),
    [
        (HANDLE, RAN, (act.Finish(0),), "an end when the output is handled"),
        (REPORT, COPIED, (act.Preempt(0),), "a preemption with a report"),
    ],
)
def test_what_comes_with_a_command_is_accounted_for(
    command: Command, path: tuple[Action, ...], told: tuple[Action, ...], what: str
) -> None:
    machine, state = at(path, "pinning")
    own = act.HandleOutput() if command is HANDLE else act.Report(0, 0)
    after = machine.step(state, own)
    for action in told:
        after = machine.step(after, action)
    found = explain(machine, state, command, took(*told), expected(after), exact=True)
    assert found == Explained((own, *told), after), what


def test_another_request_than_the_one_asked_for() -> None:
    scope = SCOPE._replace(device_blocks=4, prompts=("ab", "ac"))
    machine = Machine(Contract("pinning"), scope)
    state = machine.step(machine.step(machine.initial(), act.Submit(0)), act.Submit(1))
    other = act.Admit(1, Admission((), (), (0, 1)))
    seen = expected(machine.step(state, other))
    found = explain(machine, state, ADMIT, took(other), seen, exact=False)
    assert isinstance(found, Divergence)


def test_a_scheduling_call_does_not_reset() -> None:
    found = explained(Case((), SCHEDULE, took(Reset("evict", "preempt")), "", "", "", ""))
    assert isinstance(found, Divergence)
    assert found.sentence == "The target failed with Malformed on schedule(): a scheduling call does not take Reset."


def test_offers() -> None:
    machine, state = at(SUBMITTED, "pinning")
    admit = frozenset({("Admit", 0, None)})
    missing = between(machine, state, None, admit, frozenset())
    assert missing is not None
    assert (missing.property, missing.sentence) == (STEPPING, "The target's scheduler would not admit x, and can.")
    extra = between(machine, state, None, admit, admit | {("Wake", 0)})
    assert extra is not None
    assert extra.sentence == (
        "The target's scheduler would wake x, and must not: request 0 wakes before its load is complete."
    )
    assert between(machine, state, None, admit, admit) is None


def test_awaited_steps_in_words() -> None:
    """x left while two steps compute for it, and the target has not taken it out of the older one."""
    scope = SCOPE._replace(device_blocks=3, prompts=("a",), decode=1)
    machine = Machine(Contract("pinning", depth=2), scope)
    state = machine.initial()
    for action in (act.Submit(0), act.Admit(0), act.Launch(), act.Grow(0), act.Launch()):
        machine.check(state, action)
        state = machine.step(state, action)
    seen = expected(machine.step(state, act.Preempt(0)))
    assert seen.launched is not None
    older, younger = seen.launched
    told = seen._replace(launched=(older._replace(left=False), younger))
    found = explain(machine, state, Command("preempt", (0,)), Answer(), told, exact=True)
    assert isinstance(found, Divergence)
    assert (found.property, found.sentence) == ("no-use-after-free", "Request x has not left awaited step 0.")
    assert found.contract_lines == ("awaited step 0: x +d0, left / step 1: x d0 +d1, left",)
    assert found.target_lines == ("awaited step 0: x +d0 / step 1: x d0 +d1, left",)
    odd = explain(
        machine,
        state,
        Command("preempt", (0,)),
        Answer(),
        told._replace(launched=(older._replace(step=2),)),
        exact=True,
    )
    assert isinstance(odd, Divergence)
    assert "awaited step 2 does not exist" in odd.sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda job: job._replace(view=ABANDONED), "Job 0 is ABANDONED, and should be LIVE."),
        (lambda job: job._replace(request=1), "Job 0 is of other blocks, or of another request, than it should be."),
        (lambda job: job._replace(id=3), "Job 0 is not in the target's table, and should be: it is LIVE."),
    ],
)
def test_a_job_that_the_scheduler_sees_otherwise_is_named(change: Callable[[JobView], JobView], sentence: str) -> None:
    machine, state = at(COPIED, "pinning")
    view = expected(state)
    assert view.jobs is not None
    view = view._replace(jobs=tuple(map(change, view.jobs)))
    found = naming.difference(machine, state, None, None, state, view, "jobs")
    assert found.sentence == sentence


def test_the_owner_of_a_block_is_called_as_its_request_is_everywhere() -> None:
    machine = Machine(Contract("pinning"), SCOPES["s3"])
    state = machine.step(machine.step(machine.initial(), act.Submit(1)), act.Admit(1))
    contract, target = sides(machine, state, expected(state)._replace(device_refs=(0, 1, 0)))
    assert (contract[0], target[0]) == ("d0 references 1: y", "d0 references 0: y")
