"""Double frees: of a device block, of a host block, of a request, and of one block twice in one call.

Each is refused by a typed error and changes nothing, and the engine goes on to serve right bytes.
"""

import pytest
from tests.seeds.driving import Step, Steps, case, facts, given, vocabulary

from kvmodel import Forbidden, Machine
from kvmodel.block_pool import empty_pool, release, take, touch
from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvoffload.block_pool import BlockPool
from kvoffload.errors import DoubleFree
from kvproof.targets.kvoffload import Host, KVOffload, Ledger

PINNING = Contract("pinning")
FENCING = Contract("fencing")

CLUMSY = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("ab",), resets=1, double_frees=9)


@case(PINNING, FENCING, scope=CLUMSY)
def test_double_free_of_a_device_block_of_a_host_block_and_of_a_request() -> Steps:
    """While nothing is held, while a copy holds blocks, and when all has ended."""
    return (
        Step("free a device block twice", refused="DoubleFree", device="0 0 0"),
        Step("free a host block twice", refused="DoubleFree", host="0 0 0"),
        *given('submit x "ab"', "admit x", "launch"),
        Step("free a device block twice", refused="DoubleFree"),
        Step("free a host block twice", refused="DoubleFree", host="1 1 0"),
        *given("run w0 compute", "handle output"),
        Step("run w0 store", kv="x a ab"),
        Step("report w0 job 0", on_host="a ab", device="1 1 0", host="0 0 0"),
        Step("free a device block twice", refused="DoubleFree", device="1 1 0"),
        Step("free a host block twice", refused="DoubleFree", on_host="a ab", host="0 0 0"),
        Step("finish x", requests="DONE", device="0 0 0"),
        Step("free a request twice", refused="UnknownRequest", device="0 0 0"),
        Step("abort x", refused="UnknownRequest", device="0 0 0"),
        Step("finish x", refused="UnknownRequest", device="0 0 0"),
        Step("reset invalidate", answer=True),
        Step("free a device block twice", refused="DoubleFree", device="0 0 0", host="0 0 0"),
    )


RELEASES = [
    pytest.param(0, (0,), id="free block"),
    pytest.param(1, (0, 0), id="one reference, twice in one call"),
    pytest.param(1, (0, 1, 0), id="twice in one call, around another"),
    pytest.param(1, (1, 2), id="a free block after a held one"),
    pytest.param(1, (2, 1), id="a free block before a held one"),
    pytest.param(2, (0, 0, 0), id="two references, three times in one call"),
]
"""References on block 0, of three blocks of which 1 is held once and 2 is free; and what is released in one call."""


@pytest.mark.parametrize(("references", "blocks"), RELEASES)
def test_the_machines_pool_refuses_a_release_whole(references: int, blocks: tuple[int, ...]) -> None:
    _, pool = take(empty_pool(3), 1)
    pool = touch(pool, (0,) * references)
    with pytest.raises(Forbidden) as refused:
        release(pool, blocks)
    assert refused.value.rule == "no-double-free"


@pytest.mark.parametrize(("references", "blocks"), RELEASES)
def test_kvoffloads_pool_refuses_a_release_whole(references: int, blocks: tuple[int, ...]) -> None:
    pool = BlockPool.of_size(3)
    pool.touch((1,) + (0,) * references)
    before = (list(pool.counts), list(pool.free_blocks()), pool.free)
    with pytest.raises(DoubleFree):
        pool.release(blocks)
    assert (list(pool.counts), list(pool.free_blocks()), pool.free) == before


@pytest.mark.parametrize("kind", [Ledger, Host])
@pytest.mark.parametrize("contract", [PINNING, FENCING], ids=lambda contract: contract.discipline)
@pytest.mark.parametrize("tier", ["device", "host"])
def test_the_same_block_twice_in_one_call_while_a_copy_uses_it(
    kind: type[KVOffload], contract: Contract, tier: str
) -> None:
    """Somebody frees the blocks of a running store one time too often. Nothing changes, and the store ends well."""
    words = vocabulary(CLUMSY)
    target = kind(Machine(contract, CLUMSY).setting)
    try:
        for text in ('submit x "ab"', "admit x", "launch"):
            target.perform(words[text])
        pool = target.engine.device_pool if tier == "device" else target.engine.host_pool
        held = [block for block, count in enumerate(pool.counts) if count]
        assert len(held) == 2
        before = target.view()
        with pytest.raises(DoubleFree):
            pool.release(held * (pool.counts[held[0]] + 1))
        assert target.view() == before
        for text in ("run w0 compute", "handle output", "run w0 store", "report w0 job 0", "finish x"):
            target.perform(words[text])
        seen = facts(target.setting, target.view())
        assert (seen["device"], seen["host"]) == ("0 0 0", "0 0 0")
        assert (seen["on_device"], seen["on_host"]) == ("a ab", "a ab")
        contents = target.view().contents
        assert contents is not None
        assert [sorted(worker) for rows in contents for worker in rows] == [[0, 1, 2], [0, 1, 2]]
    finally:
        target.close()
