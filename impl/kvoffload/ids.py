"""Names for the plain ints and tuples that the control plane passes around."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Key = int
"""Hash of a block: it stands for the block's tokens and everything before them. Positive; NO_KEY is none."""

NO_KEY: Key = 0

Block = int
"""Index of a block in its pool, from 0."""

NO_BLOCK: Block = -1
"""Stands in a table where the request has given its block up."""

RequestId = int
JobId = int

WorkerRank = int
"""The name of a worker, from 0."""

Meaning = Literal["invalidate", "evict"]
"""What a reset says about the contents from before: worthless (the weights changed), or still true."""

Survivors = Literal["preempt", "keep"]
"""What a reset does with running requests: preempt them, or let them run on with the blocks that they hold."""

Tiers = Literal["all", "device", "host"]
"""Which caches a reset empties: both, or one."""


Failures = Mapping[JobId, Sequence[int]]
"""Of each job, the positions of those of its pairs that a worker could not copy. A job that is not in it was copied."""


class Pair(NamedTuple):
    """One block's copy: from `source` to `destination`, of the content that `key` names."""

    source: Block
    destination: Block
    key: Key
