"""References: who owns a block, and gives it back."""

from typing import Any

from tests.specs.planted.plant import DEEP, FENCING, PAIR, PINNING, S1, SWAP, Patch, changed, planted

from kvmodel import Contract, State
from kvmodel import actions as act
from kvmodel.block_pool import Pool, release
from kvmodel.departure import abandoned, load_of, table_let_go
from kvmodel.launched_step import awaited, shares_of
from kvmodel.request import ENDED, Request
from kvmodel.setting import Setting
from kvmodel.state import with_request


@planted(
    "vLLM PR 42289: a hit is found and not pinned",
    PINNING,
    PAIR._replace(lookups=True),
    "owners-account-for-references",
    8,
)
def a_lookup_does_not_pin(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.lookup.touch", lambda pool, blocks: pool)


@planted(
    "vLLM issue 39702: the second lookup pins again",
    PINNING,
    PAIR._replace(lookups=True),
    "owners-account-for-references",
    9,
)
def a_repeated_lookup_pins_twice(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.lookup.pins_let_go",
        lambda state, number, successor: state._replace(requests=with_request(state, number, successor)),
    )


@planted(
    "vLLM PR 42289: pins kept by a request that ended",
    PINNING,
    PAIR._replace(lookups=True, aborts=True, resets=0),
    "everything-drains",
    9,
)
def an_aborted_request_keeps_its_lookup_pins(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.abort.pins_let_go",
        lambda state, number, successor: state._replace(
            requests=with_request(state, number, ENDED._replace(pins=state.requests[number].pins))
        ),
    )


@planted("vLLM PR 45357", PINNING, S1, "no-use-after-free", 4)
def blocks_of_a_launched_step_are_released(patch: Patch) -> None:
    patch.setattr("kvmodel.departure.is_in_launched_step", lambda steps, number: False)


@planted(
    "vLLM PR 45357, a fence that is off by one step",
    PINNING._replace(depth=2),
    DEEP,
    "owners-account-for-references",
    6,
)
def only_the_oldest_step_keeps_the_blocks_of_a_request_that_left(patch: Patch) -> None:
    right = shares_of
    patch.setattr("kvmodel.departure.shares_of", lambda steps, number: right(steps, number)[:1])


@planted("vLLM PR 45357: two steps, one reference", PINNING._replace(depth=2), DEEP, "owners-account-for-references", 6)
def an_older_step_has_no_references_of_its_own(patch: Patch) -> None:
    patch.setattr("kvmodel.departure.touch", lambda pool, blocks: pool)


@planted("vLLM PR 45357, at a stop token", FENCING._replace(depth=2), DEEP, "no-use-after-free", 8)
def a_stopped_request_frees_what_the_next_step_writes(patch: Patch) -> None:
    def let_go(state: State, number: int, successor: Request) -> State:
        blocks = state.requests[number].table
        return state._replace(requests=with_request(state, number, successor), device=release(state.device, blocks))

    patch.setattr("kvmodel.rules.stop.table_let_go", let_go)


@planted("outputs out of order", FENCING._replace(depth=2), DEEP, "no-use-after-free", 9)
def outputs_are_handled_youngest_first(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.awaited", lambda steps: awaited(steps[::-1]))


@planted("vLLM PR 32255, SGLang PR 35049", FENCING, SWAP._replace(aborts=True), "no-use-after-free", 12)
def an_aborted_load_frees_its_destination(patch: Patch) -> None:
    def left(contract: Contract, state: State, number: int, successor: Request) -> State:
        job = load_of(state, number)
        return table_let_go(state if job is None else abandoned(state, job), number, successor)

    patch.setattr("kvmodel.rules.abort.loading_left", left)


@planted("vLLM issue 42571", PINNING, S1, "no-double-free", 6)
def a_finished_request_releases_its_table_twice(patch: Patch) -> None:
    def twice(state: State, number: int, successor: Request) -> State:
        table = state.requests[number].table
        state = table_let_go(state, number, state.requests[number])
        return table_let_go(state, number, successor) if table else state

    patch.setattr("kvmodel.rules.finish.table_let_go", twice)


@planted(
    "vLLM issue 42571: a free block is freed and queued again",
    PINNING,
    S1._replace(double_frees=1),
    "no-double-free",
    1,
)
def a_double_free_is_accepted(patch: Patch) -> None:
    def accepted(setting: Setting, before: State, action: Any, after: State) -> State:
        return after._replace(device=after.device._replace(free=(*after.device.free, after.device.free[0])))

    changed(patch, act.FreeTwice, accepted)


@planted("DESIGN 3: a refusal by documented exception", PINNING, S1._replace(forgeries=1), "refused-changes-nothing", 1)
def a_forged_report_leaves_a_trace(patch: Patch) -> None:
    changed(patch, act.ForgeReport, lambda setting, before, action, after: after._replace(next_job=after.next_job + 1))


@planted("TensorRT-LLM PR 12834", PINNING, PAIR, "free-means-unowned", 10)
def a_hit_stays_in_the_free_queue(patch: Patch) -> None:
    def counted_only(pool: Pool, blocks: Any) -> Pool:
        refs = list(pool.refs)
        for block in blocks:
            refs[block] += 1
        return pool._replace(refs=tuple(refs))

    patch.setattr("kvmodel.rules.admit.touch", counted_only)


@planted(
    "vLLM issue 39702: eviction does not look at references",
    PINNING,
    SWAP._replace(host_blocks=1, lookups=True),
    "pinned-is-not-evicted",
    15,
)
def a_store_evicts_what_a_lookup_has_pinned(patch: Patch) -> None:
    def stolen(pool: Pool, block: int | None = None) -> tuple[int, Pool]:
        taken = block if block is not None else pool.free[0] if pool.free else 0
        refs, keys = list(pool.refs), list(pool.keys)
        refs[taken], keys[taken] = 1, 0
        return taken, Pool(tuple(refs), tuple(keys), tuple(other for other in pool.free if other != taken))

    patch.setattr("kvmodel.policy.is_full", lambda pool: False)
    patch.setattr("kvmodel.policy.take", stolen)
    patch.setattr("kvmodel.rules.launch.take", stolen)
