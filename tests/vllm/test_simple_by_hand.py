"""What kvproof found in SimpleCPUOffloadConnector, by hand. docs/track-record.md has it with its trace."""

import pytest

pytest.importorskip("vllm")

from tests.vllm.by_hand import ByHand, release


def stored_and_ended() -> ByHand:
    """A request of one block has ended, and the store of its block was launched; nothing was reported."""
    vllm = ByHand("SimpleCPUOffloadConnector")
    vllm.submit("x", [1, 2])
    stores = 0
    for token in (500, 501, 502):
        scheduled = vllm.schedule()
        stores += len(scheduled.kv_connector_metadata.store_gpu_blocks)
        vllm.output(scheduled, {"x": token})
    vllm.output(vllm.schedule(), {})
    assert stores == 1
    return vllm


@pytest.mark.skipif(release() >= (0, 30), reason="fixed by 0.30: the engine goes on stepping")
def test_an_idle_engine_never_hears_of_a_store_and_no_reset_is_ever_true() -> None:
    vllm = stored_and_ended()
    assert not vllm.scheduler.has_requests()
    assert [vllm.reset(running=False, connector=True) for _ in range(3)] == [False, False, False]


@pytest.mark.skipif(release() < (0, 30), reason="not fixed yet")
def test_the_engine_goes_on_stepping_until_the_store_is_reported() -> None:
    assert stored_and_ended().scheduler.has_requests()
