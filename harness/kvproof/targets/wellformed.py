"""Whether what a target hands over makes sense at all: blocks that exist, fields of the right shape.

An adapter that mixes up its numbers must be told so, and must not bring the checker down. Each function answers what
is wrong in a few words, or nothing.
"""

from kvmodel import ACTIONS
from kvmodel import actions as act
from kvmodel.block_pool import HOLE
from kvmodel.request import PHASES, Pins, Request
from kvmodel.setting import Setting
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import CASCADE, DIRECTIONS, NONE, PROMOTION, STORE, TIERS_OF, VIEWS, Pair
from kvproof.targets.view import OFFERED, TIERS, JobView, ShareView, View


class _Odd(Exception):
    """What is wrong, in a few words."""


def oddity_of_actions(setting: Setting, observed: object) -> str:
    """What is wrong with the actions that an answer names: how they are written, and not whether they are legal."""
    try:
        for action in _sequence(observed, "observed"):
            if type(action) not in ACTIONS:
                raise _Odd(f"observed has {action!r:.60}, which is no action")
            _action(setting, action)
    except _Odd as odd:
        return str(odd)
    return ""


def oddity_of_view(setting: Setting, view: View) -> str:
    """What is wrong with the declared fields of a view."""
    try:
        _view(setting, view)
    except _Odd as odd:
        return str(odd)
    return ""


def oddity_of_offers(setting: Setting, offers: frozenset[tuple[object, ...]]) -> str:
    """What is wrong with what a scheduler says it would do next."""
    kinds = {kind.__name__: kind for kind in OFFERED}
    for offer in offers:
        kind = kinds.get(str(offer[0]))
        if kind is None or len(offer) != 1 + len(kind._fields):
            return f"offers has {offer!r:.60}, which is no key of an action of a scheduler"
        if "request" in kind._fields:
            try:
                _numbers(offer[1:2], len(setting.prompt_keys), "request")
            except _Odd as odd:
                return str(odd)
    return ""


def _action(setting: Setting, action: object) -> None:
    scope = setting.scope
    device, host = scope.device_blocks, scope.host_blocks
    if isinstance(action, act.Expire):
        _numbers((action.job,), None, "job")
    if "worker" in getattr(action, "_fields", ()):
        _numbers((getattr(action, "worker", None),), scope.workers, "worker")
    request = getattr(action, "request", None)
    if "request" in getattr(action, "_fields", ()):
        _numbers((request,), len(scope.prompts), "request")
    match action:
        case act.Lookup(_, hits) if hits is not None:
            on_device, on_host = _sequence(hits, "hits", 2)
            _numbers(on_device, device, "device block")
            _numbers(on_host, host, "host block")
        case act.Admit(_, choice) if choice is not None:
            if not isinstance(choice, act.Admission):
                raise _Odd(f"the choice of Admit is {choice!r:.60}")
            _numbers(choice.device, device, "device block")
            _numbers(choice.host, host, "host block")
            _numbers(choice.fresh, device, "device block")
        case act.Promote(_, pairs) if pairs is not None:
            _pairs(setting, pairs, PROMOTION)
        case act.Grow(_, blocks) if blocks is not None:
            _numbers(blocks, device, "device block")
        case act.Launch(choice) if choice is not None:
            _launching(setting, choice)
        case _:
            pass


def _launching(setting: Setting, choice: object) -> None:
    if not isinstance(choice, act.Launching):
        raise _Odd(f"the choice of Launch is {choice!r:.60}")
    requests = len(setting.prompt_keys)
    computing: list[object] = []
    for compute in _sequence(choice.computes, "computes"):
        number, *blocks = _sequence(compute, "a compute", 3)
        _numbers((number,), requests, "request")
        _numbers(tuple(blocks), _longest(setting) + 1, "count of blocks")
        if number in computing:
            raise _Odd(f"request {number} is computed twice in one launch")
        computing.append(number)
    for store in _sequence(choice.stores, "stores"):
        number, pairs = _sequence(store, "a store", 2)
        if number != NONE:
            _numbers((number,), requests, "request")
        _pairs(setting, pairs, STORE)
    _pairs(setting, choice.cascade, CASCADE)
    for cursor in _sequence(choice.cursors, "cursors"):
        number, *stored = _sequence(cursor, "a cursor", 2)
        _numbers((number,), requests, "request")
        _numbers(tuple(stored), _longest(setting) + 1, "cursor")
    _numbers(choice.flush, None, "job")


def _pairs(setting: Setting, pairs: object, direction: int) -> None:
    sources, destinations = (_blocks_of(setting, tier) for tier in TIERS_OF[direction])
    for pair in _sequence(pairs, "pairs"):
        if not isinstance(pair, Pair):
            raise _Odd(f"a pair of blocks is {pair!r:.60}")
        _numbers((pair.source,), sources, "source block")
        _numbers((pair.destination,), destinations, "destination block")
        _numbers((pair.key,), len(setting.key_names) + 1, "key")
        if not pair.key:
            raise _Odd("a pair of blocks carries no key")


def _blocks_of(setting: Setting, tier: str) -> int:
    """Blocks of a tier (count)."""
    scope = setting.scope
    return {"device": scope.device_blocks, "host": scope.host_blocks, "second": scope.second_blocks}[tier]


def _view(setting: Setting, view: View) -> None:
    scope = setting.scope
    keys = len(setting.key_names)
    there = TIERS if scope.second_blocks else TIERS[:2]
    for tier in TIERS:
        blocks = _blocks_of(setting, tier)
        refs, cached, free = (getattr(view, f"{tier}_{name}") for name in ("refs", "keys", "free"))
        if refs is not None:
            _numbers(_sequence(refs, f"{tier}_refs", blocks), None, "count of references")
        if cached is not None:
            _numbers(_sequence(cached, f"{tier}_keys", blocks), keys + 1, "key")
        if free is not None:
            _numbers(_sequence(free, f"{tier}_free"), blocks, f"{tier} block")
    if view.requests is not None:
        for request in _sequence(view.requests, "requests", len(scope.prompts)):
            _request(setting, request)
    if view.jobs is not None:
        for job in _sequence(view.jobs, "jobs"):
            _job(setting, job)
    if view.launched is not None:
        for share in _sequence(view.launched, "launched"):
            if not isinstance(share, ShareView):
                raise _Odd(f"launched has {share!r:.60}, which is no ShareView")
            _numbers((share.request,), len(scope.prompts), "request")
            _table(share.table, scope.device_blocks)
            _numbers((share.step,), setting.contract.depth, "awaited step")
    if view.runnable is not None:
        for place in _sequence(view.runnable, "runnable"):
            worker, stream = _sequence(place, "a member of runnable", 2)
            _numbers((worker,), scope.workers, "worker")
            _numbers((stream,), len(STREAMS), "stream")
    if view.announced is not None:
        for told in _sequence(view.announced, "announced", len(there)):
            for key in _sequence(told, "what is announced of a tier"):
                if not isinstance(key, int) or not 0 < abs(key) <= keys:
                    raise _Odd(f"announced has {key!r:.40}, which is no key")
    if not isinstance(view.has_work, bool | None):
        raise _Odd(f"has_work is {view.has_work!r:.40}, which is neither True nor False")
    if view.contents is not None:
        for rows, tier in zip(_sequence(view.contents, "contents", len(there)), there, strict=True):
            for row in _sequence(rows, "contents of a tier", scope.workers):
                for content in _sequence(row, "contents of a worker", _blocks_of(setting, tier)):
                    if not isinstance(content, int):
                        raise _Odd(f"a block holds {content!r:.40}, which is no content")


def _longest(setting: Setting) -> int:
    """Positions of the longest table (count): with a window, more than there are blocks."""
    return max(setting.scope.device_blocks, *map(len, setting.total_keys))


def _request(setting: Setting, request: object) -> None:
    device, host = setting.scope.device_blocks, setting.scope.host_blocks
    if not isinstance(request, Request):
        raise _Odd(f"requests has {request!r:.60}, which is no Request")
    _numbers((request.phase,), len(PHASES), "phase")
    _table(request.table, device)
    _numbers((request.computed, request.stored), _longest(setting) + 1, "count of blocks")
    _numbers(request.jobs, None, "job")
    if request.pins is not None:
        if not isinstance(request.pins, Pins):
            raise _Odd(f"a request pins {request.pins!r:.60}")
        _numbers(request.pins.device, device, "device block")
        _numbers(request.pins.host, host, "host block")


def _table(table: object, device: int) -> None:
    """Blocks, or HOLE where a window has left one."""
    _numbers(tuple([block for block in _sequence(table, "a table") if block != HOLE]), device, "device block")


def _job(setting: Setting, job: object) -> None:
    if not isinstance(job, JobView):
        raise _Odd(f"jobs has {job!r:.60}, which is no JobView")
    _numbers((job.id,), None, "job")
    _numbers((job.direction,), len(DIRECTIONS), "direction")
    _numbers((job.view,), len(VIEWS), "view of a job")
    _numbers(job.awaiting, setting.scope.workers, "worker")
    _numbers(job.failed, len(_sequence(job.pairs, "pairs")), "pair")
    if job.request != NONE:
        _numbers((job.request,), len(setting.prompt_keys), "request")
    if not job.direction:
        raise _Odd(f"job {job.id} has no direction")
    _pairs(setting, job.pairs, job.direction)


def _sequence(value: object, name: str, length: int | None = None) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise _Odd(f"{name} is {value!r:.60}, which is no tuple")
    if length is not None and len(value) != length:
        raise _Odd(f"{name} has {len(value)} members and should have {length}")
    return value


def _numbers(values: object, below: int | None, name: str) -> None:
    """Numbers from 0, all below a bound if there is one. name: of one of them."""
    for value in _sequence(values, f"what holds each {name}"):
        if not isinstance(value, int) or value < 0 or (below is not None and value >= below):
            least = "from 0" if below is None else f"from 0 to {below - 1}"
            raise _Odd(f"{name} {value!r:.40} does not exist, it must be a number {least}")
