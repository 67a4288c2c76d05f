"""What is stored and found."""

from tests.specs.planted.plant import PAIR, PINNING, S1, TINY, Patch, planted

from kvmodel.block_pool import Pool
from kvmodel.request import RUNNING


@planted("vLLM PR 41289", PINNING, S1._replace(host_blocks=2, prompts=("a",)), "no-block-stored-twice-at-once", 8)
def the_set_of_blocks_on_their_way_is_local_to_a_step(patch: Patch) -> None:
    patch.setattr("kvmodel.policy.is_being_stored", lambda state, key: False)


@planted("DESIGN 3: publication is publish-if-absent", PINNING, PAIR._replace(device_blocks=2), "one-copy-per-key", 7)
def a_key_is_published_in_a_second_block(patch: Patch) -> None:
    def publish(pool: Pool, block: int, key: int) -> Pool:
        return pool._replace(keys=(*pool.keys[:block], key, *pool.keys[block + 1 :]))

    patch.setattr("kvmodel.rules.handle_output.publish", publish)


@planted("DESIGN 3: outdated output", PINNING, TINY._replace(survivors=True), "published-after-all-copied", 6)
def output_from_before_a_reset_is_published(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.is_outdated", lambda share: False)


@planted("DESIGN 3: outdated survivors", PINNING, TINY._replace(survivors=True), "reads-what-was-written", 5)
def a_survivor_of_invalidate_is_stored(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.policy.offers_blocks",
        lambda request: request.phase == RUNNING and request.stored < len(request.table),
    )


@planted(
    "a prefix cache that is searched block by block",
    PINNING,
    S1._replace(prompts=("ab", "cd"), lookups=True),
    "hits-are-prefix-closed",
    16,
)
def a_lookup_skips_what_is_missing(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.policy.longest_hit",
        lambda pool, keys: tuple(pool.keys.index(key) for key in keys if key in pool.keys),
    )
