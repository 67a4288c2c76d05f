"""Which blocks a launch stores: eagerly those of running requests, lazily the cached free ones near eviction."""

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Scope
from kvproof.targets.view import expected

PINNING, FENCING = Contract("pinning"), Contract("fencing")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])
LAZY = pytest.mark.parametrize(
    "contract", [PINNING._replace(store_mode="lazy"), FENCING._replace(store_mode="lazy")], ids=["pinning", "fencing"]
)

AB_AC = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab", "ac"), meanings=("invalidate", "evict"))

X_HANDLED = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")


def seen(contract: Contract, scope: Scope, *commands: str) -> dict[str, str]:
    machine, state = state_after(contract, scope, *commands)
    return facts(machine.setting, expected(state))


def carried(contract: Contract, scope: Scope, *commands: str) -> list[str]:
    """The keys that each job in the table carries."""
    machine, state = state_after(contract, scope, *commands)
    names = machine.setting.key_names
    return [" ".join(names[pair.key - 1] for pair in job.pairs) for job in state.jobs]


def cursors(contract: Contract, scope: Scope, *commands: str) -> list[int]:
    _, state = state_after(contract, scope, *commands)
    return [request.stored for request in state.requests]


@BOTH
def test_the_blocks_that_a_launch_computes_are_stored_with_it(contract: Contract) -> None:
    assert carried(contract, AB_AC, *X_HANDLED[:3]) == ["a ab"]
    assert cursors(contract, AB_AC, *X_HANDLED[:3]) == [2, 0]


@BOTH
def test_one_job_for_each_request_and_no_key_twice(contract: Contract) -> None:
    """Both compute `a` in blocks of their own; the second one's is not stored."""
    together = ('submit x "ab"', 'submit y "ac"', "admit x", "admit y", "launch")
    assert carried(contract, AB_AC, *together) == ["a ab", "ac"]
    assert cursors(contract, AB_AC, *together) == [2, 2]


@BOTH
def test_what_the_host_has_is_passed_over(contract: Contract) -> None:
    stored = (*X_HANDLED, "run w0 store", "report w0 job 0")
    assert carried(contract, AB_AC, *stored, 'submit y "ac"', "admit y", "launch") == ["ac"]


@BOTH
def test_a_full_host_stops_the_cursor_and_the_rest_is_offered_again(contract: Contract) -> None:
    """DESIGN 3, number 10."""
    one = AB_AC._replace(host_blocks=1)
    assert carried(contract, one, *X_HANDLED) == ["a"]
    assert cursors(contract, one, *X_HANDLED) == [1, 0]
    again = (*X_HANDLED, "run w0 store", "report w0 job 0", "launch")
    assert carried(contract, one, *again) == ["ab"]
    assert cursors(contract, one, *again) == [2, 0]
    assert seen(contract, one, *again)["on_host"] == ""


@BOTH
def test_a_preempted_request_is_stored_from_its_first_block_again(contract: Contract) -> None:
    scope = AB_AC._replace(host_blocks=1)
    preempted = (*X_HANDLED, "run w0 store", "report w0 job 0", "preempt x", "admit x")
    assert cursors(contract, scope, *preempted) == [0, 0]
    assert carried(contract, scope, *preempted, "launch") == ["ab"]


@BOTH
def test_an_outdated_survivor_is_not_stored(contract: Contract) -> None:
    scope = AB_AC._replace(prompts=("ab", "c"), decode=1, survivors=True)
    survived = (*X_HANDLED, "run w0 store", "report w0 job 0", "reset invalidate, survivors kept", "grow x", "launch")
    assert carried(contract, scope, *survived) == []
    assert seen(contract, scope, *survived, "run w0 compute", "handle output")["on_device"] == ""


@BOTH
def test_a_survivor_of_evict_is_stored_again_from_block_0(contract: Contract) -> None:
    scope = AB_AC._replace(survivors=True)
    survived = (*X_HANDLED, "run w0 store", "report w0 job 0", "reset evict, survivors kept", "launch")
    assert carried(contract, scope, *survived) == ["a ab"]


@LAZY
def test_lazy_stores_take_cached_free_blocks_that_the_host_lacks(contract: Contract) -> None:
    assert carried(contract, AB_AC, *X_HANDLED) == []
    finished = (*X_HANDLED, "finish x", "launch")
    assert carried(contract, AB_AC, *finished) == ["ab a"]
    assert seen(contract, AB_AC, *finished)["jobs"] == "0 store LIVE w0"
    assert seen(contract, AB_AC, *finished, "run w0 store", "report w0 job 0")["on_host"] == "a ab"


def test_lazy_sources_are_pinned_under_pinning_and_stay_free_under_fencing() -> None:
    finished = (*X_HANDLED, "finish x", "launch")
    assert seen(PINNING._replace(store_mode="lazy"), AB_AC, *finished)["device"] == "1 1 0 0"
    assert seen(FENCING._replace(store_mode="lazy"), AB_AC, *finished)["device"] == "0 0 0 0"


@LAZY
def test_lazy_stores_look_at_the_blocks_nearest_to_eviction(contract: Contract) -> None:
    """Four device blocks: two that were never used stand before `ab` and `a`."""
    for window, stored in ((0, ["ab a"]), (4, ["ab a"]), (3, ["ab"])):
        assert carried(contract, AB_AC._replace(lazy_window=window), *X_HANDLED, "finish x", "launch") == stored
    machine, state = state_after(contract, AB_AC._replace(lazy_window=2), *X_HANDLED, "finish x")
    assert "Launch" not in [type(action).__name__ for action in machine.actions(state)]


@LAZY
def test_lazy_stores_do_not_turn_the_host_over(contract: Contract) -> None:
    """The host's one block holds `ab`, which the device has too: storing `a` would only drop what comes next."""
    one = AB_AC._replace(host_blocks=1)
    stored = (*X_HANDLED, "finish x", "launch", "run w0 store", "report w0 job 0")
    assert seen(contract, one, *stored)["on_host"] == "ab"
    machine, state = state_after(contract, one, *stored)
    assert "Launch" not in [type(action).__name__ for action in machine.actions(state)]
