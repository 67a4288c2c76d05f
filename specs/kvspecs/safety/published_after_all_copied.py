"""published-after-all-copied."""

from kvmodel.contents import describe
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    for tier, pool, contents in (
        ("host", state.host, state.host_contents),
        ("device", state.device, state.device_contents),
        ("second", state.second, state.second_contents),
    ):
        for block, key in enumerate(pool.keys):
            if not key:
                continue
            for worker, held in enumerate(contents):
                if held[block] != key and not (tier == "device" and _is_still_computed(state, worker, block)):
                    names = setting.key_names
                    return (
                        f"{tier} block {block} can be hit as {names[key - 1]!r},"
                        f" and on worker {worker} it holds {describe(held[block], names)}"
                    )
    return None


def _is_still_computed(state: State, worker: int, block: int) -> bool:
    """A worker that lags behind the first one will have written the block before anything there can read it."""
    return any(
        step.handled and not step.ran[worker] and any(block in share.table[share.start :] for share in step.shares)
        for step in state.steps
    )


PROPERTY = Property(
    "published-after-all-copied",
    "What can be hit is there: on every worker the block holds the content of its key.",
    on_state,
)
