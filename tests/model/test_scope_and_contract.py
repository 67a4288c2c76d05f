"""What no machine can be built from is refused by BadScope, in a sentence that says which field and what would do."""

from typing import Any

import pytest

from kvmodel import BadScope, Contract, Machine, Scope
from kvmodel.scope import sequences

GOOD = Scope(device_blocks=3, host_blocks=2, workers=1, prompts=("ab", "ac"))
PINNING = Contract("pinning")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"device_blocks": 0}, "device_blocks is 0; it must be between 1 and 100000"),
        ({"host_blocks": 0}, "host_blocks is 0; it must be between 1 and 100000"),
        ({"host_blocks": 100_001}, "host_blocks is 100001; it must be between 1 and 100000"),
        ({"workers": 0}, "workers is 0; it must be between 1 and 64"),
        ({"workers": 65}, "workers is 65; it must be between 1 and 64"),
        ({"prompts": ()}, "prompts is 0; it must be between 1 and 1024"),
        ({"prompts": ("a",) * 1025}, "prompts is 1025; it must be between 1 and 1024"),
        ({"decode": -1}, "decode is -1; it must be between 0 and 256"),
        ({"resets": -1}, "resets is -1; it must be between 0 and 1000000"),
        ({"duplicates": -1}, "duplicates is -1; it must be between 0 and 1000000"),
        ({"losses": -1}, "losses is -1; it must be between 0 and 1000000"),
        ({"forgeries": -1}, "forgeries is -1; it must be between 0 and 1000000"),
        ({"double_frees": -1}, "double_frees is -1; it must be between 0 and 1000000"),
        ({"failures": -1}, "failures is -1; it must be between 0 and 1000000"),
        ({"partial_failures": -1}, "partial_failures is -1; it must be between 0 and 1000000"),
        ({"window": -1}, "window is -1; it must be between 0 and 256"),
        ({"window": 257}, "window is 257; it must be between 0 and 256"),
        ({"expiries": -1}, "expiries is -1; it must be between 0 and 1000000"),
        ({"lazy_window": -1}, "lazy_window is -1; it must be between 0 and 100000"),
        ({"prompts": ("",)}, "prompt '' must be 1 to 256 letters or digits, one for each block"),
        ({"prompts": ("a b",)}, "prompt 'a b' must be 1 to 256 letters or digits, one for each block"),
        (
            {"prompts": ("abcd",)},
            "prompt 'abcd' with decode=0 needs 4 device blocks, and device_blocks is 3: it could never finish",
        ),
        (
            {"decode": 2},
            "prompt 'ab' with decode=2 needs 4 device blocks, and device_blocks is 3: it could never finish",
        ),
        ({"meanings": ()}, "resets are allowed but meanings is empty; use invalidate, evict or both"),
        ({"meanings": ("flush",)}, "meaning 'flush' does not exist; use invalidate or evict"),
        (
            {"decode": 9, "prompts": ("a" * 200,) * 100},
            "prompts have 20,900 blocks with what is decoded; there may be 16,384 in all",
        ),
        (
            {"decoded": ("c",)},
            "decoded has one member for each prompt, which may be empty, and decode is 0 beside it",
        ),
        ({"decoded": ("+", "")}, "decoded '+' must be up to 256 letters or digits, one for each block"),
        ({"tiers": ()}, "resets are allowed but tiers is empty; use all, device, host or several of them"),
        ({"tiers": ("disk",)}, "tiers 'disk' does not exist; use all, device, host"),
        (
            {"tiers": ("all", "device")},
            "tiers has device and meanings lacks evict: a reset of the device tier alone cannot mean invalidate: "
            "the host would serve the old weights' KV",
        ),
        (
            {"meanings": ("invalidate", "evict"), "tiers": ("host",)},
            "meanings has invalidate and tiers lacks all: a reset of one tier alone can only mean evict",
        ),
    ],
)
def test_a_scope_that_makes_no_sense(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadScope) as refused:
        Machine(PINNING, GOOD._replace(**fields))
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"discipline": "hoping"}, "discipline 'hoping' does not exist; use pinning or fencing"),
        ({"store_mode": "never"}, "store mode 'never' does not exist; use eager or lazy"),
        ({"deadline": "soon"}, "deadline 'soon' does not exist; use none or expire"),
        ({"output_from": "last"}, "output_from 'last' does not exist; use all or first"),
        ({"depth": 3}, "depth 3 does not exist; use 1 or 2"),
        ({"admission": "half"}, "admission 'half' does not exist; use whole or partial"),
        (
            {"environment": frozenset({"flood"})},
            "fault 'flood' does not exist; use duplicate, loss, forgery, double-free, failure",
        ),
    ],
)
def test_a_contract_that_makes_no_sense(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadScope) as refused:
        Machine(PINNING._replace(**fields), GOOD)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("duplicates", "duplicate"),
        ("losses", "loss"),
        ("forgeries", "forgery"),
        ("double_frees", "double-free"),
        ("failures", "failure"),
        ("partial_failures", "failure"),
    ],
)
def test_a_scope_with_a_fault_that_the_contract_excludes(field: str, fault: str) -> None:
    contract = PINNING._replace(environment=PINNING.environment - {fault})
    with pytest.raises(BadScope) as refused:
        Machine(contract, GOOD._replace(**dict[str, Any]({field: 2})))
    assert str(refused.value) == f"the scope has 2 of fault '{fault}', which the contract's environment excludes"
    Machine(contract, GOOD)


def test_a_window_needs_depth_1() -> None:
    with pytest.raises(BadScope) as refused:
        Machine(PINNING._replace(depth=2), GOOD._replace(window=1))
    assert str(refused.value) == (
        "the scope has window 1 and the contract depth 2: a window moves when no launched step reads what it leaves, "
        "so use depth 1, or window 0"
    )


def test_with_a_window_a_request_may_be_longer_than_the_device() -> None:
    """It holds its prompt, or the window and one more."""
    Machine(PINNING, GOOD._replace(decode=5, window=2))
    with pytest.raises(BadScope, match="needs 4 device blocks, and device_blocks is 3: it could never finish"):
        Machine(PINNING, GOOD._replace(decode=5, window=3))


def test_no_resets_need_no_meaning() -> None:
    Machine(PINNING, GOOD._replace(resets=0, meanings=()))


def test_equal_prefixes_have_equal_keys_and_decoded_blocks_have_keys_of_their_own() -> None:
    keys = sequences(GOOD._replace(decode=1))
    assert keys.names == ("a", "ab", "ac", "ab+1", "ac+1")
    assert keys.prompt == ((1, 2), (1, 3))
    assert keys.total == ((1, 2, 4), (1, 3, 5))


def test_with_repeats_a_symbol_has_one_key_wherever_it_stands() -> None:
    keys = sequences(GOOD._replace(prompts=("aba", "b"), decode=1, repeats=True))
    assert keys.names == ("a", "b", "aba+1", "b+1")
    assert keys.prompt == ((1, 2, 1), (2,))
    assert keys.total == ((1, 2, 1, 3), (2, 4))


def test_the_same_symbol_after_another_prefix_has_another_key() -> None:
    assert sequences(GOOD._replace(prompts=("ab", "b"))).prompt == ((1, 2), (3,))


def test_what_is_decoded_may_differ_and_other_prompts_go_on_from_it() -> None:
    """`ab` decodes `c`, and `abc` is a prompt of its own: they have all three keys in common."""
    scope = GOOD._replace(prompts=("ab", "abc", "x"), decoded=("c", "", "y"))
    found = sequences(scope)
    assert found.prompt == ((1, 2), (1, 2, 3), (4,))
    assert found.total == ((1, 2, 3), (1, 2, 3), (4, 5))
    assert found.names == ("a", "ab", "abc", "x", "xy")
    with pytest.raises(BadScope, match="prompt 'ab' with decode=2 needs 4 device blocks"):
        Machine(PINNING, scope._replace(decoded=("cd", "", "")))
