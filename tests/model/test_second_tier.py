"""The second host tier: what the machine offers and chooses there, beside the cases of `tests/seeds`, which it plays
too."""

import pytest
from tests.seeds.below_host import AB, BELOW, CASCADED, CASCADING, PROMOTE, PROMOTING
from tests.seeds.driving import facts, state_after

from kvmodel import BadScope, Contract, Machine, Scope
from kvmodel.transfer_job import FORGOTTEN
from kvproof.targets.command import describe
from kvproof.targets.view import expected
from kvproof.targets.wording import command_of

PINNING, FENCING = Contract("pinning"), Contract("fencing")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])


def seen(contract: Contract, *commands: str, scope: Scope = AB) -> dict[str, str]:
    machine, state = state_after(contract, scope, *commands)
    return facts(machine.setting, expected(state))


def offered(contract: Contract, *commands: str, scope: Scope = AB) -> set[str]:
    machine, state = state_after(contract, scope, *commands)
    return {describe(command_of(action), scope) for action in machine.actions(state)}


@BOTH
def test_the_second_tier_drops_nothing_that_the_host_still_has(contract: Contract) -> None:
    """It would come back next, for ever. The end of a prefix is evicted first, and so it goes down first."""
    scope = AB._replace(host_blocks=2)
    full = seen(contract, *CASCADED, scope=scope)
    assert (full["on_host"], full["on_second"]) == ("a ab", "ab")
    assert "launch" not in offered(contract, *CASCADED, scope=scope)


@BOTH
def test_whoever_would_hit_it_waits_until_it_is_back_on_the_host(contract: Contract) -> None:
    offers = offered(contract, *BELOW)
    assert "promote what x would hit" in offers
    assert "admit x" not in offers
    assert "admit x" not in offered(contract, *PROMOTING)
    assert "admit x" in offered(contract, *PROMOTING, "run w0 promotion", "report w0 job 3")


@BOTH
def test_promotion_is_once_since_two_could_promote_in_turn_for_ever(contract: Contract) -> None:
    scope = AB._replace(prompts=("ab", "c", "ab"))
    back = (*PROMOTING, "run w0 promotion", "report w0 job 3", 'submit y "c"', "admit y", "launch", 'submit z "ab"')
    now = seen(contract, *back, "run w0 compute", "handle output", "run w0 store", "report w0 job 4", scope=scope)
    assert (now["on_host"], now["on_second"]) == ("c", "a")
    offers = offered(contract, *back, "run w0 compute", "handle output", "run w0 store", "report w0 job 4", scope=scope)
    assert "promote what z would hit" in offers
    assert "promote what x would hit" not in offers


@BOTH
def test_what_is_promoted_for_another_is_not_promoted_again(contract: Contract) -> None:
    other = offered(contract, *PROMOTING, 'submit y "ab"')
    assert "promote what y would hit" not in other
    assert "admit y" in other


@BOTH
def test_a_lookup_is_for_afterwards(contract: Contract) -> None:
    scope = AB._replace(lookups=True)
    below = ('submit x "ab"', "lookup x", *BELOW[1:])
    assert {"promote what x would hit", "lookup x"} & offered(contract, *below, scope=scope) == {
        "promote what x would hit"
    }
    back = (*below, *PROMOTE, "run w0 promotion", "report w0 job 3")
    assert "lookup x" in offered(contract, *back, scope=scope)
    assert seen(contract, *back, "lookup x", scope=scope)["found"] == "x - | a"
    again = offered(contract, *back, "lookup x", "release the lookup of x", scope=scope)
    assert "promote what x would hit" not in again


@BOTH
def test_whoever_waited_for_a_failed_promotion_is_admitted_without_it(contract: Contract) -> None:
    """vLLM issue 49176: a tier that failed and is asked again serves nobody for ever."""
    offers = offered(contract, *PROMOTING, "run w0 promotion, which fails", "report w0 job 3")
    assert "admit x" in offers
    assert "promote what x would hit" not in offers


def test_under_fencing_a_reset_forgets_what_is_between_them_and_later_copies_wait_for_it() -> None:
    machine, state = state_after(FENCING, AB, *CASCADING, "reset evict of the host tier", "launch")
    assert [(job.view, job.flushed) for job in state.jobs] == [(FORGOTTEN, True), (0, False)]
    assert facts(machine.setting, expected(state))["may_run"] == "w0 cascade"
    assert state.jobs[1].after_jobs == (1,)


def test_a_promotion_that_no_worker_knows_of_is_cancelled() -> None:
    for contract in (PINNING, FENCING):
        reset = seen(contract, *PROMOTING[:-1], "reset evict of the host tier")
        assert (reset["jobs"], reset["host"], reset["second"], reset["waits_for"]) == ("", "0", "0", "")


@BOTH
def test_what_is_promoted_is_not_stored_beside_it(contract: Contract) -> None:
    """y computes `a` itself while x waits for it: its store would make a second copy (vLLM PR 41289)."""
    computed = (*PROMOTING, 'submit y "ab"', "admit y", "launch")
    assert seen(contract, *computed)["jobs"] == "3 promotion LIVE w0"
    state = state_after(contract, AB, *computed)[1]
    assert [request.stored for request in state.requests] == [0, 1]


def test_marks_are_of_stores_and_loads_alone() -> None:
    with pytest.raises(BadScope, match="1 second_blocks and the contract reports marks"):
        Machine(Contract("pinning", reports="marks"), AB)


def test_a_tier_has_no_less_than_no_block() -> None:
    with pytest.raises(BadScope, match="second_blocks is -1; it must be between 0 and 100000"):
        Machine(PINNING, AB._replace(second_blocks=-1))
