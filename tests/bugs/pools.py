"""Bugs of the block pool and the prefix cache."""

from tests.bugs.bug import Bug

BUGS = (
    Bug(
        id="pool-release-unchecked",
        kind="pool",
        mechanism="Releasing a block that nobody references is not refused: its count goes below zero.",
        source="planted",
        file="block_pool.py",
        old="""        if refused:
            self._take_back(blocks)
""",
        new="",
        discipline="pinning",
        variant="s1+double-frees",
        property="no-double-free",
        commands=1,
    ),
    Bug(
        id="double-free-loses-the-block",
        kind="pool",
        mechanism="What refuses a double free takes the block out of the free queue, where it was before: it is lost.",
        source="planted",
        file="block_pool.py",
        old="            if self.counts[block] == 1:\n                del",
        new="            if self.counts[block] <= 1:\n                del",
        discipline="pinning",
        variant="s1+double-frees",
        property="free-means-unowned",
        commands=1,
    ),
    Bug(
        id="pool-append-twice",
        kind="pool",
        mechanism="A block enters the free queue with the last reference but one, so it stands there while it is held.",
        source="https://github.com/vllm-project/vllm/pull/42903",
        file="block_pool.py",
        old="            if not left:\n",
        new="            if 0 <= left <= 1:\n",
        discipline="pinning",
        variant="s1",
        property="free-means-unowned",
        commands=5,
    ),
    Bug(
        id="pool-release-collapses-repeats",
        kind="pool",
        mechanism="A block that is released for two positions of a table loses one reference alone.",
        source="https://github.com/vllm-project/vllm/pull/42903",
        file="block_pool.py",
        old="for block in reversed(blocks):",
        new="for block in reversed(dict.fromkeys(blocks)):",
        discipline="pinning",
        variant="s1+repeats",
        property="owners-account-for-references",
        commands=7,
    ),
    Bug(
        id="pool-pinned-stays-queued",
        kind="pool",
        mechanism="A cached free block that is referenced again stays in the free queue, from which it can be evicted.",
        source="https://github.com/NVIDIA/TensorRT-LLM/pull/12667",
        file="block_pool.py",
        old="""            if not counts[block]:
                del queue[block]
            counts[block] += 1""",
        new="""            counts[block] += 1""",
        discipline="pinning",
        variant="s1",
        property="free-means-unowned",
        commands=6,
    ),
    Bug(
        id="pool-take-keeps-key",
        kind="pool",
        mechanism="A block that is taken for something new can still be hit under its old key.",
        source="https://github.com/vllm-project/vllm/pull/4764",
        file="block_pool.py",
        old="        self.cache.evict(taken)\n",
        new="",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=7,
    ),
    Bug(
        id="pool-release-head-first",
        kind="pool",
        mechanism="A list of blocks is released from its head, so that a prefix is evicted before its extensions.",
        source="https://github.com/llm-d/llm-d-inference-sim/issues/704",
        file="block_pool.py",
        old="for block in reversed(blocks):",
        new="for block in blocks:",
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=3,
    ),
    Bug(
        id="pool-append-at-head",
        kind="pool",
        mechanism="A released block goes to the eviction end of the queue: what was used last is evicted first.",
        source="planted",
        file="block_pool.py",
        old="""                queue[block] = None
""",
        new="""                queue[block] = None
                queue.move_to_end(block, last=False)
""",
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=3,
    ),
    Bug(
        id="pool-free-count-drifts",
        kind="pool",
        mechanism="A cached block that is referenced again is counted as free all the same.",
        source="planted",
        file="block_pool.py",
        old="        return len(self.queue)\n",
        new="""        found = set(self.cache.blocks.values())
        return sum([block in found or not count for block, count in enumerate(self.counts)])
""",
        discipline="pinning",
        variant="s1",
        property="pinned-is-not-evicted",
        commands=12,
    ),
    Bug(
        id="pool-release-drops-key",
        kind="pool",
        mechanism="A block that loses one of several references can no longer be hit, though others still hold it.",
        source="planted",
        file="block_pool.py",
        old="""            elif left < 0:
                refused = True""",
        new="""            elif left < 0:
                refused = True
            else:
                self.cache.evict((block,))""",
        discipline="pinning",
        variant="s1",
        property="pinned-is-not-evicted",
        commands=5,
    ),
    Bug(
        id="cache-publish-takes-over",
        kind="pool",
        mechanism="Publishing a key that another block serves already leaves both blocks under that key.",
        source="planted",
        file="prefix_cache.py",
        old="""            if key in blocks:
                continue
""",
        new="",
        discipline="pinning",
        variant="s1,prompts=a+a",
        property="one-copy-per-key",
        commands=5,
    ),
    Bug(
        id="cache-hits-skip-holes",
        kind="pool",
        mechanism="The longest cached run does not end at the first block that is missing.",
        source="https://github.com/llm-d/llm-d-inference-sim/issues/705",
        file="prefix_cache.py",
        old="""            if block is None:
                break""",
        new="""            if block is None:
                continue""",
        discipline="pinning",
        variant="s1+lookups",
        property="hits-are-prefix-closed",
        commands=14,
    ),
)
