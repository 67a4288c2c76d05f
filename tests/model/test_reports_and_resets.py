"""Completions and resets: who publishes, who releases, what is answered, and that ids go on."""

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Scope
from kvmodel import actions as act
from kvmodel.transfer_job import ABANDONED, FORGOTTEN, LOST
from kvproof.targets.view import expected

PINNING, FENCING = Contract("pinning"), Contract("fencing")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])

AB = Scope(
    device_blocks=3,
    host_blocks=3,
    workers=2,
    prompts=("ab", "ab"),
    resets=4,
    meanings=("invalidate", "evict"),
    survivors=True,
    duplicates=2,
    losses=2,
    forgeries=1,
)
HANDLED = ('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output")
COPIED = (*HANDLED, "run w0 store", "run w1 store")


def seen(contract: Contract, *commands: str) -> dict[str, str]:
    machine, state = state_after(contract, AB, *commands)
    return facts(machine.setting, expected(state))


@BOTH
def test_a_job_is_complete_when_every_worker_has_reported_it(contract: Contract) -> None:
    assert seen(contract, *COPIED)["jobs"] == "0 store LIVE w0 w1"
    one = seen(contract, *COPIED, "report w1 job 0")
    assert (one["jobs"], one["on_host"], one["host"]) == ("0 store LIVE w0", "", "1 1 0")
    both = seen(contract, *COPIED, "report w1 job 0", "report w0 job 0")
    assert (both["jobs"], both["on_host"], both["host"]) == ("", "a ab", "0 0 0")


@BOTH
def test_a_worker_reports_what_it_has_copied_and_once(contract: Contract) -> None:
    machine, state = state_after(contract, AB, *HANDLED, "run w0 store")
    assert [action for action in machine.actions(state) if isinstance(action, act.Report)] == [act.Report(0, 0)]
    machine, state = state_after(contract, AB, *HANDLED, "run w0 store", "report w0 job 0")
    assert [action for action in machine.actions(state) if isinstance(action, act.Report)] == []


@BOTH
def test_the_old_store_of_a_survivor_publishes_nothing_beside_its_new_one(contract: Contract) -> None:
    """After an `evict` with a survivor both carry the same keys, and the same true contents."""
    again = seen(contract, *COPIED, "reset evict, survivors kept", "launch", "report w0 job 0", "report w1 job 0")
    assert again["on_host"] == ""
    assert again["jobs"].startswith("1 store LIVE")


@BOTH
def test_faults_are_counted_down_and_change_nothing_else(contract: Contract) -> None:
    machine, state = state_after(contract, AB, *COPIED, "report w0 job 0")
    for fault in (act.DuplicateReport(0, 0), act.ForgeReport(1)):
        machine.check(state, fault)
        after = machine.step(state, fault)
        assert after._replace(faults_left=state.faults_left) == state
        assert sum(after.faults_left) == sum(state.faults_left) - 1


def test_a_lost_report_leaves_the_job_and_what_it_holds() -> None:
    for contract, device in ((PINNING, "2 2 0"), (FENCING, "1 1 0")):
        lost = (*COPIED, "report w0 job 0", "lose the report of w1 for job 0")
        _, state = state_after(contract, AB, *lost)
        assert state.jobs[0].progress[1] == LOST
        after = seen(contract, *lost)
        assert (after["device"], after["host"], after["on_host"]) == (device, "1 1 0", "")


@BOTH
def test_a_forgotten_job_leaves_the_table_when_every_worker_is_done_with_it(contract: Contract) -> None:
    """Only fencing forgets; under pinning it stays, abandoned."""
    _, state = state_after(contract, AB, *HANDLED, "reset invalidate")
    assert [job.view for job in state.jobs] == [ABANDONED if contract.pins else FORGOTTEN]
    gone = (*HANDLED, "reset invalidate", "run w0 store", "run w1 store", "report w0 job 0")
    _, lost = state_after(contract, AB, *gone, "lose the report of w1 for job 0")
    assert len(lost.jobs) == (1 if contract.pins else 0)


@pytest.mark.parametrize(
    ("contract", "commands", "reset", "answer"),
    [
        (PINNING, (), "reset invalidate", True),
        (PINNING, HANDLED, "reset invalidate", False),
        (PINNING, COPIED, "reset evict", False),
        (PINNING, (*COPIED, "report w0 job 0", "report w1 job 0"), "reset invalidate", True),
        (PINNING, (*COPIED, "report w0 job 0", "report w1 job 0"), "reset invalidate, survivors kept", False),
        (PINNING, (*COPIED, "report w0 job 0", "report w1 job 0"), "reset evict, survivors kept", False),
        (FENCING, (), "reset invalidate", True),
        (FENCING, HANDLED, "reset invalidate", True),
        (FENCING, COPIED, "reset evict", True),
        (FENCING, HANDLED, "reset invalidate, survivors kept", False),
        (FENCING, HANDLED, "reset evict, survivors kept", True),
    ],
)
def test_answers(contract: Contract, commands: tuple[str, ...], reset: str, answer: bool) -> None:
    machine, state = state_after(contract, AB, *commands)
    meaning, kept = ("evict" if "evict" in reset else "invalidate"), "kept" in reset
    action = act.Reset(meaning, "keep" if kept else "preempt")
    assert machine.answer(state, action) is answer
    machine.check(state, action._replace(answer=answer))


@BOTH
def test_a_reset_clears_both_prefix_caches_and_drops_lookups(contract: Contract) -> None:
    cached = (*COPIED, "report w0 job 0", "report w1 job 0", "finish x", 'submit y "ab"', "lookup y")
    assert (seen(contract, *cached)["on_device"], seen(contract, *cached)["on_host"]) == ("a ab", "a ab")
    after = seen(contract, *cached, "reset invalidate")
    assert (after["on_device"], after["on_host"], after["found"], after["device"]) == ("", "", "", "0 0 0")
    assert after["requests"] == "DONE WAITING"


@BOTH
def test_invalidate_ages_what_blocks_hold_and_what_is_still_to_be_computed(contract: Contract) -> None:
    _, state = state_after(contract, AB, *COPIED, "reset invalidate")
    assert state.device_contents == ((-1, -2, 0), (-1, -2, 0))
    assert state.host_contents == ((-1, -2, 0), (-1, -2, 0))
    _, kept = state_after(contract, AB, *COPIED, "reset evict")
    assert kept.device_contents == ((1, 2, 0), (1, 2, 0))
    late = ('submit x "ab"', "admit x", "launch", "reset invalidate", "run w0 compute")
    _, computed = state_after(contract, AB, *late)
    assert computed.device_contents[0] == (-1, -2, 0)


@BOTH
def test_a_second_invalidate_does_not_make_the_old_new_again(contract: Contract) -> None:
    _, state = state_after(contract, AB, *COPIED, "reset invalidate", "reset invalidate")
    assert state.device_contents == ((-1, -2, 0), (-1, -2, 0))


@BOTH
def test_job_ids_go_on_after_a_reset(contract: Contract) -> None:
    scope = AB._replace(device_blocks=4, host_blocks=4)
    _, state = state_after(contract, scope, *COPIED, "reset invalidate", "admit x", "launch")
    assert state.jobs[-1].id == 1
    assert state.next_job == 2
