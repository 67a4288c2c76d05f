"""Bugs after public reports, of vLLM and of other engines, that have the same mechanism here."""

from tests.bugs.bug import Bug

_VLLM = "https://github.com/vllm-project/vllm/"
_ASCEND = "https://github.com/vllm-project/vllm-ascend/"
_SGLANG = "https://github.com/sgl-project/sglang/"
_LMCACHE = "https://github.com/LMCache/LMCache/"
_MOONCAKE = "https://github.com/kvcache-ai/Mooncake/"
_DYNAMO = "https://github.com/ai-dynamo/dynamo/"
_TENSORRT = "https://github.com/NVIDIA/TensorRT-LLM/"

BUGS: tuple[Bug, ...] = (
    Bug(
        id="pool-release-clamped",
        kind="pool",
        mechanism="A count that is zero stays there, and the block is freed again: whoever has it by now shares it.",
        source=_LMCACHE + "issues/5005",
        file="block_pool.py",
        old="            left = counts[block] - 1\n",
        new="            left = max(0, counts[block] - 1)\n",
        discipline="pinning",
        variant="s1+double-frees",
        property="no-double-free",
        commands=1,
    ),
    Bug(
        id="key-stays-on-the-block",
        kind="pool",
        mechanism="An evicted block leaves the index and keeps its key: the two disagree when it is used again.",
        source="https://github.com/ovg-project/kvcached/issues/362",
        file="prefix_cache.py",
        old="                keys[block] = NO_KEY\n",
        new="",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=7,
    ),
    Bug(
        id="key-stamped-and-not-indexed",
        kind="pool",
        mechanism="A block gets its key and no entry in the index, so that nobody ever finds it.",
        source=_VLLM + "issues/53498",
        file="prefix_cache.py",
        old="            blocks[key] = block\n",
        new="",
        discipline="pinning",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=5,
    ),
    Bug(
        id="retired-key-comes-back",
        kind="scheduler",
        mechanism="An output publishes all that its request has computed, keys that were withdrawn meanwhile included.",
        source=_VLLM + "issues/49125",
        file="scheduler.py",
        old="computed = slice(share.first, len(share.blocks))",
        new="computed = slice(len(share.blocks))",
        discipline="pinning",
        variant="s1+evict+survivors",
        property="published-after-all-copied",
        commands=14,
    ),
    Bug(
        id="last-block-cached-uncomputed",
        kind="scheduler",
        mechanism="An output publishes also the last block of the table, which is counted and not computed yet.",
        source=_VLLM + "issues/54193",
        file="scheduler.py",
        old="""                computed = slice(share.first, len(share.blocks))
                self.device.cache.publish(zip(share.blocks[computed], request.total[computed], strict=True))
""",
        new="""                computed = slice(share.first, len(request.table))
                self.device.cache.publish(zip(request.table[computed], request.total[computed], strict=True))
""",
        discipline="pinning",
        variant="s1+depth",
        property="published-after-all-copied",
        commands=5,
    ),
    Bug(
        id="last-block-not-offered",
        kind="store",
        mechanism="The block that a request ends with is never stored.",
        source=_VLLM + "pull/48596",
        file="stores/eager.py",
        old="request.table[cursor:]:",
        new="request.table[cursor : len(request.total) - 1]:",
        discipline="pinning",
        variant="s1",
        property="every-full-block-is-stored-or-refused",
        commands=6,
    ),
    Bug(
        id="one-present-ends-the-batch",
        kind="store",
        mechanism="A key that is on the host already ends the batch: what comes after it counts as stored.",
        source=_MOONCAKE + "issues/2827",
        file="stores/eager.py",
        old="""                cursor += 1
                continue
""",
        new="""                cursor = len(request.table)
                break
""",
        discipline="pinning",
        variant="s1",
        property="every-full-block-is-stored-or-refused",
        commands=8,
    ),
    Bug(
        id="host-never-evicts",
        kind="store",
        mechanism="A store takes only host blocks that hold nothing: once all of them were used, none is stored.",
        source=_LMCACHE + "issues/2942",
        file="stores/eager.py",
        old="    free = host.free_blocks()\n",
        new="    free = iter([block for block in host.free_blocks() if not host.cache.keys[block]])\n",
        discipline="pinning",
        variant="s1",
        property="every-full-block-is-stored-or-refused",
        commands=6,
    ),
    Bug(
        id="key-read-at-completion",
        kind="connector",
        mechanism="A store that is complete expects its key on its source, where it is not yet or no longer.",
        source=_VLLM + "pull/57505",
        file="connectors/transfers.py",
        old="        cache.publish([(pair.destination, pair.key) for pair in intact])\n",
        new="""        if job.direction is Direction.STORE:
            assert all([self._device().cache.keys[pair.source] == pair.key for pair in intact])
        cache.publish([(pair.destination, pair.key) for pair in intact])
""",
        discipline="fencing",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=5,
    ),
    Bug(
        id="joined-store-not-told-of-failure",
        kind="scheduler",
        mechanism="A request that left a key to another one's store never learns that this store failed.",
        source=_LMCACHE + "pull/3119",
        file="scheduler.py",
        old="""                        request.stored = position
                        break
""",
        new="""                        request.stored = position
                        return
""",
        discipline="pinning",
        variant="s1,prompts=a+a+failures",
        property="every-full-block-is-stored-or-refused",
        commands=6,
    ),
    Bug(
        id="failure-crashes",
        kind="completion",
        mechanism="A report of a failed copy is asserted to be one of success, and stops the engine.",
        source=_VLLM + "issues/39732",
        file="completions/per_job.py",
        old="    known.failed.update(failed)\n",
        new="    assert not failed\n",
        discipline="pinning",
        variant="s1+failures",
        property="work-remaining-keeps-the-engine-stepping",
        commands=5,
    ),
    Bug(
        id="failed-copy-not-reported",
        kind="completion",
        mechanism="A worker does not report a transfer that failed: it holds its blocks for ever.",
        source="https://github.com/taco-project/FlexKV/pull/237",
        file="runtime.py",
        old="        self.engine.report(worker, jobs, failed)\n",
        new="        self.engine.report(worker, [job for job in jobs if not failed[job]], failed)\n",
        discipline="pinning",
        variant="s1+failures",
        property="workers-agree",
        commands=5,
    ),
    Bug(
        id="report-ends-the-oldest",
        kind="completion",
        mechanism="Acknowledgements are counted and not named: each ends the oldest transfer that its worker owes.",
        source=_SGLANG + "issues/28429",
        file="completions/per_job.py",
        old="    known = jobs.get(job)\n",
        new="    known = next((one for one in jobs.values() if one.launched and worker in one.awaiting), None)\n",
        discipline="fencing",
        variant="s1",
        property="workers-agree",
        commands=10,
    ),
    Bug(
        id="completion-keyed-by-key",
        kind="completion",
        mechanism="A completion counts for a key: the late one of a dropped store ends the store that came after it.",
        source=_MOONCAKE + "issues/3030",
        file="completions/per_job.py",
        old="    known = jobs.get(job)\n",
        new="""    known = jobs.get(job)
    if known is not None:
        keys = [pair.key for pair in known.pairs]
        known = [one for one in jobs.values() if [pair.key for pair in one.pairs] == keys][-1]
""",
        discipline="fencing",
        variant="s1",
        property="dropped-jobs-publish-nothing",
        commands=8,
    ),
    Bug(
        id="first-report-unlocks",
        kind="completion",
        mechanism="A load has one lock for all workers: the first that is done lets go of what the others still read.",
        source=_LMCACHE + "pull/4866",
        file="connectors/transfers.py",
        old="""        if job.awaiting:
            return ConnectorOutput(stale=stale)
""",
        new="""        if job.awaiting:
            if job.direction is Direction.LOAD:
                self.host.release(job.host_blocks)
            return ConnectorOutput(stale=stale)
""",
        discipline="pinning",
        variant="s2",
        property="owners-account-for-references",
        commands=13,
    ),
    Bug(
        id="one-completion-for-all",
        kind="completion",
        mechanism="The first completion of a request's transfers makes it runnable, while its others still copy.",
        source=_VLLM + "issues/51786",
        file="scheduler.py",
        old="        request.jobs.discard(job.job)\n",
        new="        request.jobs.clear()\n",
        discipline="fencing",
        variant="s1,prompts=a,decode=1,host=2,resets=0,aborts=no",
        property="stale-completions-change-nothing",
        commands=7,
    ),
    Bug(
        id="last-store-is-waited-for",
        kind="connector",
        mechanism="A request knows of its last store alone, which takes the place of those that still copy its blocks.",
        source=_LMCACHE + "pull/5248",
        file="connectors/transfers.py",
        old="            choice.request.jobs.add(job.id)\n",
        new="            choice.request.jobs = {job.id}\n",
        discipline="fencing",
        variant="s1,prompts=a,decode=1,host=2,resets=0,aborts=no",
        property="reads-what-was-written",
        commands=5,
    ),
    Bug(
        id="transfers-of-one-launch",
        kind="connector",
        mechanism="Whose transfer it is, is known until the next launch: one that ends later wakes nobody.",
        source=_ASCEND + "pull/8743",
        file="connectors/transfers.py",
        old="        for job in queued:\n            job.launched = True\n",
        new="""        for job in self.jobs.values():
            if job.launched:
                job.request = None
        for job in queued:
            job.launched = True
""",
        discipline="pinning",
        variant="s3,resets=0,aborts=no",
        property="stale-completions-change-nothing",
        commands=11,
    ),
    Bug(
        id="slot-deleted-at-finish",
        kind="connector",
        mechanism="A request's transfers are deleted when it ends, and their completions find nothing to release.",
        source=_DYNAMO + "issues/3730",
        file="connectors/transfers.py",
        old="""        if not keep_table:
            request.jobs.clear()
""",
        new="""        if not keep_table:
            for job in request.jobs:
                del self.jobs[job]
            request.jobs.clear()
""",
        discipline="fencing",
        variant="s1",
        property="owners-account-for-references",
        commands=3,
    ),
    Bug(
        id="draining-report-filtered",
        kind="connector",
        mechanism="The report of an aborted request's load is filtered out, and its blocks are held for ever.",
        source=_VLLM + "issues/46283",
        file="scheduler.py",
        old="        if request is None or job.job not in request.jobs:\n",
        new="        if request is None or job.job not in request.jobs or request.phase is Phase.DRAINING:\n",
        discipline="fencing",
        variant="s1",
        property="stale-completions-change-nothing",
        commands=11,
    ),
    Bug(
        id="abort-drops-the-load",
        kind="connector",
        mechanism="An abort frees the destinations of a load that still writes, and the books agree.",
        source=_SGLANG + "pull/35049",
        file="connectors/pinning.py",
        old="        request.jobs.discard(load.id)\n        return False\n",
        new="""        request.jobs.discard(load.id)
        del self.jobs[load.id]
        self._disown(load)
        return False
""",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=9,
    ),
    Bug(
        id="abort-of-who-has-no-blocks",
        kind="scheduler",
        mechanism="The end of a request assumes that it has a block: one that was never admitted stops the engine.",
        source=_VLLM + "issues/49118",
        file="scheduler.py",
        old="        self._drop_pins(ended)\n        if self.connector",
        new="        self._drop_pins(ended)\n        ended.table[-1]\n        if self.connector",
        discipline="pinning",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=2,
    ),
    Bug(
        id="abort-caches-what-it-has",
        kind="scheduler",
        mechanism="An aborted request's blocks are entered in the cache, filled or not.",
        source=_SGLANG + "pull/28374",
        file="scheduler.py",
        old="        self._drop_pins(ended)\n        if self.connector",
        new="""        self._drop_pins(ended)
        self.device.cache.publish(zip(ended.table, ended.total, strict=False))
        if self.connector""",
        discipline="pinning",
        variant="s1",
        property="published-after-all-copied",
        commands=3,
    ),
    Bug(
        id="finish-frees-the-last-block-twice",
        kind="scheduler",
        mechanism="Two routines free the last block of a request that ends.",
        source="https://github.com/sgl-project/sglang-jax/pull/994",
        file="scheduler.py",
        old="        self.connector.request_finished(running)\n",
        new="        self.connector.request_finished(running)\n        self.device.release(running.table[-1:])\n",
        discipline="pinning",
        variant="s1",
        property="no-double-free",
        commands=5,
    ),
    Bug(
        id="load-source-not-locked",
        kind="connector",
        mechanism="A load owns its destinations alone: the host copy that it reads can be evicted under it.",
        source=_SGLANG + "pull/27444",
        file="connectors/pinning.py",
        old="""        self._device().touch(job.device_blocks)

    def _disown(self, job: TransferJob) -> None:
        self._device().release(job.device_blocks)
        self.host.release(job.host_blocks)
""",
        new="""        self._device().touch(job.device_blocks)
        if job.direction == "LOAD":
            self.host.release(job.host_blocks)

    def _disown(self, job: TransferJob) -> None:
        self._device().release(job.device_blocks)
        self.host.release([] if job.direction == "LOAD" else job.host_blocks)
""",
        discipline="pinning",
        variant="s1",
        property="owners-account-for-references",
        commands=8,
    ),
    Bug(
        id="store-destination-not-locked",
        kind="connector",
        mechanism="A store owns its sources alone: the next one is given the host block that it is still writing.",
        source=_SGLANG + "pull/28468",
        file="connectors/pinning.py",
        old="""        self._device().touch(job.device_blocks)

    def _disown(self, job: TransferJob) -> None:
        self._device().release(job.device_blocks)
        self.host.release(job.host_blocks)
""",
        new="""        self._device().touch(job.device_blocks)
        if job.direction == "STORE":
            self.host.release(job.host_blocks)

    def _disown(self, job: TransferJob) -> None:
        self._device().release(job.device_blocks)
        self.host.release([] if job.direction == "STORE" else job.host_blocks)
""",
        discipline="pinning",
        variant="s1",
        property="owners-account-for-references",
        commands=2,
    ),
    Bug(
        id="lookup-unpins-the-device-alone",
        kind="scheduler",
        mechanism="Of what a lookup found and nobody fetched, only the device's part is released.",
        source=_LMCACHE + "issues/1034",
        file="scheduler.py",
        old="            self.connector.release_matched(request.pins.host)\n",
        new="",
        discipline="pinning",
        variant="s1+lookups",
        property="owners-account-for-references",
        commands=8,
    ),
    Bug(
        id="admission-unpins-the-rest",
        kind="scheduler",
        mechanism="Whoever fetches releases what all lookups found: another request's lookup loses what it counts on.",
        source=_LMCACHE + "pull/1075",
        file="scheduler.py",
        old="            matched = admitted.pins.host\n            admitted.pins = None\n",
        new="""            matched = admitted.pins.host
            admitted.pins = None
            for other in self.requests.values():
                self.device.release(() if other.pins is None else other.pins.device)
""",
        discipline="pinning",
        variant="s1,prompts=a+a,lookups=yes,resets=0,aborts=no",
        property="owners-account-for-references",
        commands=9,
    ),
    Bug(
        id="fetch-consumes-the-lookups-pins",
        kind="scheduler",
        mechanism="An admission releases what its lookup found, and the load that it makes releases that again.",
        source=_LMCACHE + "pull/5095",
        file="scheduler.py",
        old="            matched = admitted.pins.host\n            admitted.pins = None\n",
        new="            matched = admitted.pins.host\n            self._drop_pins(admitted)\n",
        discipline="pinning",
        variant="s1+lookups",
        property="owners-account-for-references",
        commands=7,
    ),
    Bug(
        id="hits-in-use-not-available",
        kind="scheduler",
        mechanism="Admission takes every hit off the free blocks, also those that others hold.",
        source="https://github.com/NVIDIA/Megatron-LM/pull/5822",
        file="scheduler.py",
        old="sum([not counts[block] for block in set(hits)])",
        new="len(set(hits))",
        discipline="pinning",
        variant="s1",
        property="work-remaining-keeps-the-engine-stepping",
        commands=5,
    ),
    Bug(
        id="fence-mixes-tiers",
        kind="connector",
        mechanism="The fence compares numbers of blocks and not their tiers.",
        source=_TENSORRT + "pull/15272",
        file="connectors/fencing.py",
        old="sources, destinations = device_written, host_written | host_read",
        new="sources, destinations = host_written | host_read, device_written",
        discipline="fencing",
        variant="s1,prompts=a+b,decode=1,resets=0,aborts=no",
        property="fence-before-reuse",
        commands=9,
    ),
    Bug(
        id="fence-by-key",
        kind="connector",
        mechanism="The fence compares the contents of blocks and not their places.",
        source=_TENSORRT + "pull/9056",
        file="connectors/fencing.py",
        old="""                job.flush_ordered = any(
                    pair.source in sources or pair.destination in destinations for pair in job.pairs
                )
""",
        new="""                keys = {content.key for share in shares for _, content in share.writes}
                job.flush_ordered = any(pair.key in keys for pair in job.pairs)
""",
        discipline="fencing",
        variant="s1,prompts=ab+c,host=2,resets=0,aborts=no,preempts=no",
        property="fence-before-reuse",
        commands=7,
    ),
    Bug(
        id="reset-stops-at-the-first-false",
        kind="connector",
        mechanism="A reset that finds transfers outstanding answers False at once, and the caches are not cleared.",
        source=_VLLM + "pull/27170",
        file="connectors/pinning.py",
        old="        self._clear_caches(device, tiers)\n",
        new="        if not self.jobs:\n            self._clear_caches(device, tiers)\n",
        discipline="pinning",
        variant="s1",
        property="false-reset-serves-nothing-old",
        commands=5,
    ),
)
