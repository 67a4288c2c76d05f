"""What kvproof found in OffloadingConnector, by hand. docs/track-record.md has each with its trace."""

from typing import Any

import pytest

pytest.importorskip("vllm")

from tests.vllm.by_hand import ByHand, copied, release
from vllm.v1.request import Request

BEFORE_48102 = pytest.mark.skipif(release() >= (0, 26), reason="fixed by vLLM PR 48102")
SINCE_48102 = pytest.mark.skipif(release() < (0, 26), reason="before vLLM PR 48102")


def storing(asynchronous: bool = False) -> ByHand:
    """A request of two blocks is computed, and the store of both, job 0, is under way."""
    vllm = ByHand(asynchronous=asynchronous)
    vllm.submit("x", [1, 2, 3, 4])
    scheduled = vllm.schedule()
    assert list(scheduled.kv_connector_metadata.store_jobs) == [0]
    vllm.output(scheduled, {"x": 500})
    return vllm


class TestTwoResets:
    """A second reset before the next step fails an assertion: the first has left jobs to be flushed behind."""

    def test_while_a_request_runs(self) -> None:
        vllm = storing()
        assert vllm.reset(running=False, connector=True) is False
        with pytest.raises(AssertionError):
            vllm.reset(running=False, connector=True)

    def test_on_an_idle_engine_for_ever(self) -> None:
        vllm = storing()
        vllm.abort("x")
        vllm.output(vllm.schedule(), {})
        assert vllm.reset(running=False, connector=True) is True
        assert not vllm.scheduler.has_requests()
        for _ in range(3):
            with pytest.raises(AssertionError):
                vllm.reset(running=False, connector=True)


class TestPreemptedAndLoadedInOneStep:
    """A reset that preempts and leaves the host tier alone: the next step admits the request again with a load, and
    takes that for a store to be flushed. The scheduler dies."""

    def test_reset_of_the_device_alone(self) -> None:
        vllm = storing()
        scheduled = vllm.schedule()
        vllm.output(scheduled, {"x": 501}, copied(0))
        assert vllm.reset(running=True, connector=False) is True
        with pytest.raises(AssertionError):
            vllm.schedule()

    def test_no_reset_no_death(self) -> None:
        """The same without the reset: the request goes on."""
        vllm = storing()
        vllm.output(vllm.schedule(), {"x": 501}, copied(0))
        assert list(vllm.schedule().num_scheduled_tokens) == ["x"]


@BEFORE_48102
class TestJobsThatOutliveTheReset:
    """vLLM PR 48102, in the releases before it: a request that survives a reset keeps the ids of forgotten jobs."""

    def test_abort_dies(self) -> None:
        vllm = storing()
        vllm.reset(running=False, connector=True)
        with pytest.raises(KeyError):
            vllm.abort("x")

    def test_the_next_step_dies_of_a_preemption(self) -> None:
        vllm = storing()
        assert vllm.reset(running=True, connector=True) is True
        with pytest.raises(KeyError):
            vllm.schedule()

    def test_the_next_store_dies(self) -> None:
        vllm = storing(asynchronous=True)
        vllm.reset(running=False, connector=True)
        with pytest.raises(KeyError):
            vllm.schedule()

    def test_the_end_dies(self) -> None:
        vllm = ByHand(asynchronous=True)
        vllm.submit("x", [1, 2, 3, 4], output=1)
        scheduled = vllm.schedule()
        vllm.reset(running=False, connector=True)
        with pytest.raises(KeyError):
            vllm.output(scheduled, {"x": 500})

    def test_the_request_waits_for_ever(self) -> None:
        """Asynchronous scheduling: preempted by a reset that was refused, forgotten by the next one while the report
        of its store is on the way."""
        vllm = ByHand(asynchronous=True)
        request = vllm.submit("x", [1, 2, 3, 4])
        first = vllm.schedule()
        with pytest.raises(RuntimeError, match="Failed to reset KV cache"):
            vllm.reset(running=True, connector=True)
        second = vllm.schedule()
        assert second.kv_connector_metadata.jobs_to_flush == {0}
        vllm.output(first, {"x": 500})
        assert vllm.reset(running=True, connector=True) is True
        vllm.output(second, {}, copied(0))
        for _ in range(50):
            scheduled = vllm.schedule()
            assert not scheduled.num_scheduled_tokens
            vllm.output(scheduled, {})
        assert not request.is_finished()


@SINCE_48102
class TestJobsThatDoNotOutliveTheReset:
    """The same steps since PR 48102: the request ends."""

    def test_the_request_is_admitted_again(self) -> None:
        vllm = storing()
        assert vllm.reset(running=True, connector=True) is True
        assert list(vllm.schedule().num_scheduled_tokens) == ["x"]

    def test_abort(self) -> None:
        vllm = storing()
        vllm.reset(running=False, connector=True)
        vllm.abort("x")
        assert not vllm.scheduler.requests


ONLY_0_26 = pytest.mark.skipif(release() != (0, 26), reason="0.26 alone stores what an aborted request had")


@ONLY_0_26
class TestStoresOfAnAbortedRequest:
    """vLLM 0.26 stores what an aborted request had, or once had, or never had, by the tokens that it knows."""

    def test_before_it_was_admitted_the_scheduler_dies(self) -> None:
        vllm = ByHand()
        vllm.submit("x", [1, 2])
        vllm.abort("x")
        with pytest.raises(AssertionError):
            vllm.schedule()

    def test_while_it_runs_what_was_never_computed_is_published(self) -> None:
        """Three of four tokens were computed. The store of the second block says that it holds four."""
        vllm = ByHand()
        request = vllm.submit("x", [1, 2], output=5)
        vllm.output(vllm.schedule(), {"x": 500})
        vllm.output(vllm.schedule(), {"x": 501}, copied(0))
        assert (request.num_tokens, request.num_computed_tokens) == (4, 3)
        vllm.abort("x")
        scheduled = vllm.schedule()
        assert list(scheduled.kv_connector_metadata.store_jobs) == [1]
        vllm.output(scheduled, {})
        vllm.output(vllm.schedule(), {}, copied(1))
        again = vllm.submit("y", [1, 2, 500, 501, 7])
        assert vllm.scheduler.connector.get_num_new_matched_tokens(again, 0)[0] == 4

    def test_after_a_preemption_it_publishes_what_was_never_computed(self) -> None:
        """Three of four tokens were computed when the request was preempted, and its blocks given back. The store has
        both blocks, free as they are, and the second one's key says that it holds four."""
        vllm = ByHand()
        request = vllm.submit("x", [1, 2], output=5)
        vllm.output(vllm.schedule(), {"x": 500})
        vllm.output(vllm.schedule(), {"x": 501}, copied(0))
        assert (request.num_tokens, request.num_computed_tokens) == (4, 3)
        assert vllm.reset(running=True, connector=True) is True
        vllm.abort("x")
        scheduled = vllm.schedule()
        (job,) = scheduled.kv_connector_metadata.store_jobs.values()
        assert [vllm.scheduler.kv_cache_manager.block_pool.blocks[b].ref_cnt for b in job.src_spec.block_ids] == [0, 0]
        vllm.output(scheduled, {})
        vllm.output(vllm.schedule(), {}, copied(1))
        again = vllm.submit("y", [1, 2, 500, 501, 7])
        assert vllm.scheduler.connector.get_num_new_matched_tokens(again, 0)[0] == 4


def looped(vllm: ByHand, requests: dict[str, Request], steps: int) -> list[Any]:
    """vLLM's engine loop with asynchronous scheduling: each step is scheduled before the output of the one before it.
    Loads are reported with the step that they were launched with, stores with the next: vLLM's worker begins them
    there. Returns the steps."""
    taken: list[Any] = []
    awaited: list[tuple[Any, dict[str, int], list[int], dict[int, str]]] = []
    stores: list[int] = []
    for _ in range(steps):
        scheduled = vllm.schedule()
        sampled = {
            name: 500 + requests[name].num_computed_tokens - requests[name].num_prompt_tokens
            for name in scheduled.num_scheduled_tokens
            if not requests[name].is_prefill_chunk
        }
        metadata = scheduled.kv_connector_metadata
        loads = {job: transfer.req_id for job, transfer in metadata.load_jobs.items()}
        taken.append(scheduled)
        awaited.append((scheduled, sampled, stores, loads))
        stores = list(metadata.store_jobs)
        if len(awaited) == 2:
            before, tokens, stored, loaded = awaited.pop(0)
            over = copied(*stored, *loaded) if stored or loaded else None
            vllm.output(before, tokens, over, tuple(loaded.values()))
    return taken


class TestOneThatFitsNowhereStandsBeforeOneThatCouldRun:
    """Four blocks, four requests, asynchronous scheduling, no reset. x is preempted while its store is under way; w,
    behind it, is admitted meanwhile with a load, and holds two blocks. Then x needs three, two are free, and the loop
    over waiting requests ends there: w, whose load is done, is never looked at."""

    def two_hundred_steps(self) -> tuple[ByHand, dict[str, Request]]:
        vllm = ByHand(blocks=5, asynchronous=True, tokens=6)
        prompts = {"y": [1, 2, 3, 4], "x": [5, 6, 7, 8], "w": [1, 2, 3, 4], "z": [9, 10]}
        requests = {name: vllm.submit(name, prompt) for name, prompt in prompts.items()}
        self.taken = looped(vllm, requests, 200)
        return vllm, requests

    @pytest.mark.skipif(release() >= (0, 30), reason="since vLLM 0.30 x is not preempted so")
    def test_neither_ever_runs(self) -> None:
        vllm, requests = self.two_hundred_steps()
        assert [name for name, request in requests.items() if not request.is_finished()] == ["x", "w"]
        assert not any(step.num_scheduled_tokens for step in self.taken[20:])
        blocks = vllm.scheduler.kv_cache_manager
        assert [len(blocks.get_block_ids(name)[0]) for name in ("x", "w")] == [0, 2]
        assert blocks.block_pool.get_num_free_blocks() == 2
        vllm.abort("x")
        looped(vllm, requests, 10)
        assert requests["w"].is_finished()

    @pytest.mark.skipif(release() < (0, 30), reason="before vLLM 0.30")
    def test_all_end(self) -> None:
        _, requests = self.two_hundred_steps()
        assert all(request.is_finished() for request in requests.values())
