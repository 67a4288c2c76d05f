"""Progress: what stands still, or turns in circles."""

from typing import Any

from tests.specs.planted.plant import FENCING, PINNING, S1, SWAP, TINY, Patch, changed, planted

from kvmodel import Contract, Scope, State, policy
from kvmodel import actions as act
from kvmodel.block_pool import HOLE, release
from kvmodel.departure import abandoned, load_of, table_let_go
from kvmodel.request import ENDED, Request
from kvmodel.rules import launch
from kvmodel.setting import Setting


@planted("vLLM PR 41180: an idle engine is not polled", PINNING, S1._replace(resets=0), "reset-converges", 0)
def reset_is_true_only_while_somebody_is_served(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.reset_pinning.answer",
        lambda state, tiers: any(r.phase not in (0, ENDED.phase) for r in state.requests),
    )


@planted("vLLM issue 27074: nothing is scheduled any more", PINNING, S1, "work-remaining-keeps-the-engine-stepping", 6)
def the_output_of_a_step_is_never_handled(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.is_computed", lambda setting, step: False)


@planted(
    "vLLM PR 49675",
    PINNING,
    TINY._replace(prompts=("a", "b"), decode=1, device_blocks=3),
    "every-request-can-finish",
    10,
)
def the_preempted_request_is_admitted_before_the_other_grows(patch: Patch) -> None:
    """Found by explore when the machine was young: two requests take turns in undoing each other's work."""
    patch.setattr("kvmodel.policy.is_outranked", lambda setting, state: False)


HALVES = Scope(2, 1, 1, ("ab", "cd"), resets=0, aborts=False, preempts=False)
PARTIAL = PINNING._replace(admission="partial")


@planted("vLLM issues 45387, 45388", PARTIAL, HALVES, "work-remaining-keeps-the-engine-stepping", 12)
def two_requests_hold_a_part_each_and_neither_gives_way(patch: Patch) -> None:
    """The circular wait of partial admission, without the rule that ends it: nothing can happen any more."""
    patch.setattr("kvmodel.policy.pressure_victim", lambda setting, state: None)


@planted("vLLM issues 45387, 45388", PARTIAL, HALVES, "every-request-can-finish", 13)
def the_one_that_gave_way_is_admitted_in_part_again(patch: Patch) -> None:
    """The other half of that rule: the block that was given up must go to the one for whom it was."""
    patch.setattr("kvmodel.policy.is_outranked", lambda setting, state: False)


WINDOW = Scope(3, 1, 1, ("ab",), decode=2, window=1, resets=0, aborts=False, preempts=False)


@planted("vLLM issue 42761", FENCING, WINDOW, "reads-what-was-written", 14)
def a_store_that_was_put_off_names_what_the_window_has_left(patch: Patch) -> None:
    """The ids were noted when the blocks were computed: the block belongs to another position by now."""
    right = policy.eager_stores

    def noted(setting: Setting, state: State) -> Any:
        request = state.requests[0]
        table = tuple(position if block == HOLE else block for position, block in enumerate(request.table))
        return right(setting, state._replace(requests=(request._replace(table=table),)))

    patch.setattr("kvmodel.policy.eager_stores", noted)


@planted(
    "vLLM PR 42903",
    PINNING,
    Scope(2, 2, 1, ("aa",), resets=0, aborts=False, repeats=True),
    "owners-account-for-references",
    8,
)
def what_stands_twice_in_a_table_is_released_once(patch: Patch) -> None:
    """The same block at two positions was collapsed, so that it should not be queued twice."""
    patch.setattr("kvmodel.departure.release", lambda pool, blocks: release(pool, tuple(dict.fromkeys(blocks))))


@planted(
    "DESIGN 3, number 10: a store that found no room is retried",
    PINNING,
    S1,
    "every-full-block-is-stored-or-refused",
    7,
)
def a_launch_is_never_made_for_stores_alone(patch: Patch) -> None:
    patch.setattr(
        "kvmodel.rules.launch.has_work",
        lambda setting, state: (
            launch.has_queued_job(state)
            or any(launch.wants_compute(state, number) for number in range(len(state.requests)))
        ),
    )


@planted(
    "DESIGN 3: a preempted load under fencing drains", FENCING, SWAP._replace(preempts=True), "no-use-after-free", 11
)
def a_preempted_load_frees_its_destination(patch: Patch) -> None:
    def left(contract: Contract, state: State, number: int, successor: Request) -> State:
        job = load_of(state, number)
        return table_let_go(state if job is None else abandoned(state, job), number, successor)

    patch.setattr("kvmodel.rules.preempt.loading_left", left)


@planted(
    "vLLM PR 45628: output for a request that is gone",
    PINNING,
    TINY._replace(preempts=True),
    "owners-account-for-references",
    6,
)
def the_output_of_a_request_that_left_is_handled(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.handle_output.has_left", lambda share: False)


@planted(
    "DESIGN 3: a lazy store pins its sources",
    PINNING._replace(store_mode="lazy"),
    TINY,
    "owners-account-for-references",
    7,
)
def a_lazy_store_does_not_pin_its_sources(patch: Patch) -> None:
    patch.setattr("kvmodel.rules.launch.touch", lambda pool, blocks: pool)


@planted("vLLM PR 46972: the cursor runs ahead", PINNING, S1, "every-full-block-is-stored-or-refused", 3)
def the_cursor_passes_over_what_found_no_room(patch: Patch) -> None:
    """The host has one block: `ab` finds none, and would never be offered again."""

    def ahead(setting: Setting, before: State, action: Any, after: State) -> State:
        requests = tuple(request._replace(stored=len(request.table)) for request in after.requests)
        return after._replace(requests=requests)

    changed(patch, act.Launch, ahead)
