"""All properties, in the order in which reports list them."""

from kvspecs.liveness import (
    every_full_block_is_stored_or_refused,
    every_request_can_finish,
    everything_drains,
    reset_converges,
    work_remaining_keeps_the_engine_stepping,
)
from kvspecs.property import LivenessProperty, Property
from kvspecs.safety import (
    dropped_jobs_publish_nothing,
    events_tell_what_can_be_hit,
    failed_copies_are_never_published,
    false_reset_has_a_cause,
    false_reset_serves_nothing_old,
    fence_before_reuse,
    free_means_unowned,
    hits_are_prefix_closed,
    ids_are_never_reused,
    no_block_stored_twice_at_once,
    no_double_free,
    no_use_after_free,
    one_copy_per_key,
    owners_account_for_references,
    pinned_is_not_evicted,
    published_after_all_copied,
    reads_what_was_written,
    refused_changes_nothing,
    stale_completions_change_nothing,
    true_reset_serves_nothing_old,
    workers_agree,
)

SAFETY: tuple[Property, ...] = (
    owners_account_for_references.PROPERTY,
    free_means_unowned.PROPERTY,
    no_double_free.PROPERTY,
    no_use_after_free.PROPERTY,
    reads_what_was_written.PROPERTY,
    published_after_all_copied.PROPERTY,
    stale_completions_change_nothing.PROPERTY,
    dropped_jobs_publish_nothing.PROPERTY,
    failed_copies_are_never_published.PROPERTY,
    pinned_is_not_evicted.PROPERTY,
    true_reset_serves_nothing_old.PROPERTY,
    false_reset_has_a_cause.PROPERTY,
    refused_changes_nothing.PROPERTY,
    no_block_stored_twice_at_once.PROPERTY,
    ids_are_never_reused.PROPERTY,
    workers_agree.PROPERTY,
    fence_before_reuse.PROPERTY,
    hits_are_prefix_closed.PROPERTY,
    one_copy_per_key.PROPERTY,
    false_reset_serves_nothing_old.PROPERTY,
)

LIVENESS: tuple[LivenessProperty, ...] = (
    every_request_can_finish.PROPERTY,
    everything_drains.PROPERTY,
    reset_converges.PROPERTY,
    every_full_block_is_stored_or_refused.PROPERTY,
)

JUDGED: tuple[Property, ...] = (*SAFETY, every_full_block_is_stored_or_refused.PASSED_OVER)
"""Everything that one state or one transition can break: what a search judges as it goes."""

AGREEMENT = "agrees-with-the-reference"
"""kvoffload also chooses as the reference does, where the contract leaves a choice."""

EVENTS = events_tell_what_can_be_hit.PROPERTY
"""Of what a target announces; the machine announces nothing, so that no search of the machine alone can judge it."""

STEPPING = work_remaining_keeps_the_engine_stepping.PROPERTY

NAMES: tuple[str, ...] = (*(p.name for p in SAFETY), *(p.name for p in LIVENESS), EVENTS.name, STEPPING.name, AGREEMENT)


def sentence_of(name: str) -> str:
    """The sentence of a property. KeyError if there is none of this name."""
    sentences = {p.name: p.sentence for p in (*SAFETY, STEPPING, EVENTS)} | {p.name: p.sentence for p in LIVENESS}
    sentences[AGREEMENT] = "Where the contract leaves a choice, kvoffload chooses as the reference does."
    return sentences[name]
