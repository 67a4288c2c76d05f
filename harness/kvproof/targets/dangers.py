"""What a broken property leads to next, in a sentence for the person who has to decide how urgent it is."""

from collections.abc import Mapping

NEXT: Mapping[str, str] = {
    "owners-account-for-references": "a block with too few references is given to somebody else while it is still "
    "used; one with too many never comes back",
    "free-means-unowned": "the same block is handed to two owners, or never handed out again",
    "no-double-free": "the block is queued twice and gets two owners",
    "no-use-after-free": "one request's KV is overwritten by, or served as, another's",
    "reads-what-was-written": "a request computes on, or the host keeps, bytes that are not what their key says",
    "published-after-all-copied": "the next lookup of this key is served wrong or unwritten bytes",
    "stale-completions-change-nothing": "the next late report releases or publishes what belongs to somebody else",
    "dropped-jobs-publish-nothing": "what a reset declared worthless is served again",
    "failed-copies-are-never-published": "a request computes on bytes that were never written, or everybody who shares "
    "the key fails at the same copy",
    "pinned-is-not-evicted": "a request loses the block that it was promised, and crashes or reads foreign bytes",
    "true-reset-serves-nothing-old": "after the weight update requests are served the old weights' KV",
    "false-reset-serves-nothing-old": "while the client waits to reset again, requests are served the old weights' KV",
    "false-reset-has-a-cause": "a client that resets until it hears True waits for ever",
    "refused-changes-nothing": "a caller that handles the refusal goes on with a state that nobody knows",
    "no-block-stored-twice-at-once": "host blocks and bandwidth are spent on copies that nobody needs",
    "ids-are-never-reused": "a late report of the old job completes the new one",
    "workers-agree": "one rank serves a block that another rank has not copied",
    "fence-before-reuse": "a copy that still runs reads or overwrites the block of its next owner",
    "hits-are-prefix-closed": "a request skips the computation of blocks that it does not have",
    "events-tell-what-can-be-hit": "a router sends requests where their prefix is not, or never where it is",
    "one-copy-per-key": "the two copies diverge, and which one is hit depends on chance",
    "every-request-can-finish": "the request hangs, and everybody behind it",
    "everything-drains": "blocks stay pinned until the process ends",
    "reset-converges": "a client that resets until it hears True waits for ever",
    "every-full-block-is-stored-or-refused": "blocks that could have been hit are computed again",
    "work-remaining-keeps-the-engine-stepping": "the engine stands still with work left",
}
"""Next danger by property."""
