"""The account of a log that is not explained: its last commands step by step, for a timeline, as the log itself has
them. Nothing is run again."""

from collections.abc import Iterable, Iterator
from typing import cast

from kvmodel import State
from kvproof.log.entry import JSON
from kvproof.log.follow import AROUND, Follower, Stuck, Taken
from kvproof.log.telling import legend, words
from kvproof.obligations.logged import Broken
from kvproof.report.story import Lane, Picture, Step, Story, narrowed
from kvproof.targets.narration import narrated
from kvproof.targets.picture import MOST_CELLS, cells_of, lanes_of, picture_of


def account(follower: Follower, stuck: Stuck, title: str) -> Story | None:
    """The last commands that are explained, and the one that is not. Lanes in which nothing happens are left out. None
    where the pools are too large to be drawn."""
    if cells_of(follower.machine.setting.scope) * (AROUND + 1) > MOST_CELLS:
        return None
    taken = list(follower.recent)
    divergence = stuck.divergence
    start = taken[0].before if taken else follower.state
    sides = [side for side in (divergence.contract_state, divergence.target_state) if side is not None]
    last = sides[0] if sides else follower.state

    def picture(state: State) -> Picture:
        return picture_of(follower.machine, state)

    before = picture(start)
    steps = [Step(_words(follower, one), noted(one), picture(one.after)) for one in taken]
    entry = stuck.entry
    answered = "" if entry.answered is None else f"answered {entry.answered}"
    steps.append(Step(f"line {entry.number}: {words(follower, stuck.command, named=True)}", answered, picture(last)))
    contract = None if divergence.contract_state is None else picture(divergence.contract_state)
    target = None if divergence.target_state is None else picture(divergence.target_state)
    shown = [before, *(step.picture for step in steps)]
    parted = {name for name, cell in (contract or {}).items() if target is not None and target.get(name) != cell}
    states = [start, *(one.after for one in taken), *sides]
    names = legend(follower, "\n".join(step.command for step in steps))
    lanes = tuple(lane for lane in lanes_of(follower.machine, states) if lane.name in parted or _happens(lane, shown))
    story = Story(
        title=" ".join([title, *names]),
        lanes=lanes,
        start=before,
        steps=tuple(steps),
        property=divergence.property,
        sentence=divergence.sentence,
        facts=tuple(zip(divergence.contract_lines, divergence.target_lines, strict=True)),
        contract=contract,
        target=target,
    )
    return narrowed(story)


def _words(follower: Follower, one: Taken) -> str:
    said = words(follower, one.command, named=True)
    if one.entry is not None and one.command.verb == "submit":  # a place has had several requests in time
        said += f" ({one.entry.arguments['request']})"
    return f"line {one.entry.number}: {said}" if one.entry is not None else f"(inferred) {said}"


def noted(one: Taken) -> str:
    """What a line led to, in a few words."""
    return narrated(one.machine, one.before, one.actions, one.answered)


def _happens(lane: Lane, pictures: list[Picture]) -> bool:
    """Whether anything of it changes but its place in a free queue."""
    cells = [picture.get(lane.name) for picture in pictures]
    return len({None if cell is None else cell[:2] for cell in cells}) > 1


def listing(lines: Iterable[tuple[int, JSON]], broken: Broken, title: str) -> Story:
    """The last lines of an engine that goes its own way, up to the one that breaks something. There is no machine
    beside it, so there are no lanes."""
    steps = tuple(Step(f"line {number}: {_verb(record)}", "; ".join(_parts(record)), {}) for number, record in lines)
    return Story(title, (), {}, steps, property=broken.property, sentence=broken.sentence)


def _verb(record: JSON) -> object:
    return cast(JSON, record["do"])["verb"]


def _parts(record: JSON) -> Iterator[str]:
    """What a line says, in words."""
    requests = cast("dict[str, dict[str, int]]", record.get("requests", {}))
    if requests:
        yield "compute " + ", ".join(
            f"{name} tokens {said['start']} to {said['start'] + said['count']}" for name, said in requests.items()
        )
    for job, direction, pairs in cast("list[tuple[int, str, list[list[int]]]]", record.get("copies", [])):
        yield f"job {job}: {direction} " + ", ".join(f"{source} -> {destination}" for source, destination in pairs)
    if record.get("flush"):
        yield f"flush {record['flush']}"
    if record.get("jobs"):
        yield "jobs " + ", ".join(map(str, cast("list[int]", record["jobs"])))
    do = cast(JSON, record["do"])
    if "request" in do:
        yield f"request {do['request']}"
    if "answered" in record:
        yield f"answered {record['answered']}"
