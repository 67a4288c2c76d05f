"""Naming a divergence: which property it breaks, what happened in one sentence, and the facts side by side.

What is seen of the target is put into the machine's state, and the properties are asked of that: the first that does
not hold names the divergence. Where all hold, the field that differs does.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kvmodel import Action, Forbidden, Machine, State, policy
from kvmodel import actions as act
from kvmodel.block_pool import Pool
from kvmodel.contents import describe as content_words
from kvmodel.launched_step import awaited
from kvmodel.owners import owners
from kvmodel.request import PHASES, Request
from kvmodel.state import job_with
from kvmodel.streams import STREAMS, oldest_compute, oldest_copy
from kvmodel.transfer_job import ABANDONED, DIRECTIONS, FORGOTTEN, LAUNCHED, QUEUED, REPORTED, STORE, VIEWS, Job
from kvproof.targets.command import Command, request_name
from kvproof.targets.view import JobView, View, expected
from kvspecs.catalogue import AGREEMENT, JUDGED, NAMES
from kvspecs.property import Property


class Divergence(NamedTuple):
    """A command that cannot be accounted for.

    property  that is broken; sentence: what happened, in the field's words
    contract_lines, target_lines  pairwise, what differs
    rule      the action whose rule decides it
    cause     stable words that make two divergences the same
    """

    property: str
    sentence: str
    contract_lines: tuple[str, ...]
    target_lines: tuple[str, ...]
    rule: type[Action] | None
    cause: tuple[str, ...]


BY_FIELD = {
    "device_refs": "owners-account-for-references",
    "host_refs": "owners-account-for-references",
    "device_free": "free-means-unowned",
    "host_free": "free-means-unowned",
    "device_keys": "published-after-all-copied",
    "host_keys": "published-after-all-copied",
    "contents": "reads-what-was-written",
    "offers": "work-remaining-keeps-the-engine-stepping",
    "jobs": "stale-completions-change-nothing",
}
"""The property that a difference in this field breaks, where no property names itself."""

BY_RULE = {
    "admit": "stale-completions-change-nothing",
    "finish": "every-request-can-finish",
    "grow": "pinned-is-not-evicted",
    "handle-output": "published-after-all-copied",
    "launch": "no-use-after-free",
    "lookup": "stale-completions-change-nothing",
    "wake": "reads-what-was-written",
}
"""The property that a guard of the contract is there for, by the name of its rule: of admit and lookup, that a request
with jobs outstanding is deferred."""

COUNTS = ("owners-account-for-references", "free-means-unowned", "no-double-free")
"""Properties of counts and queues: named first where they are broken, since whatever else is wrong comes of it."""


def _by_specificity(action: Action | None) -> list[Property]:
    """What is judged, in the order in which it gives its name: counts; then what is about this very action, published
    by a dropped job before all else that a completion may do wrong; then what holds of every state."""
    name = type(action).__name__

    def rank(candidate: Property) -> int:
        if candidate.name in COUNTS:
            return 0
        if name not in candidate.actions:
            return 3
        return 1 if candidate.name == "dropped-jobs-publish-nothing" else 2

    return sorted(JUDGED, key=rank)


def forbidden(machine: Machine, state: State, command: Command, action: Action, why: Forbidden) -> Divergence:
    """The contract forbids what the target did."""
    name = why.rule if why.rule in NAMES else BY_RULE.get(why.rule, AGREEMENT)
    words = f"On {command} the target did what the contract forbids: {why.why}."
    return Divergence(
        name,
        words,
        (f"forbidden: {why.why}",),
        (_choice_words(action),),
        type(action),
        ("forbidden", command.verb, why.rule),
    )


def other_choice(machine: Machine, state: State, command: Command, action: Action) -> Divergence:
    """Legal, but not what the reference chooses: for a target that promises to choose as the reference does."""
    reference: Action = action
    name, why = AGREEMENT, "."
    if isinstance(action, act.Admit):
        reference = action._replace(choice=policy.admission(machine.setting, state, action.request))
    elif isinstance(action, act.PreemptUnderPressure):
        name, why = "every-request-can-finish", ": two that preempt each other never end."
    elif isinstance(action, act.Launch) and action.choice is not None:
        right = policy.launching(machine.setting, state)
        reference = act.Launch(right)
        name, why = _other_stores(machine, state, right, action.choice)
    return Divergence(
        name,
        f"On {command} the target made another choice than the reference{why}",
        (_choice_words(reference),),
        (_choice_words(action),),
        type(action),
        ("choice", command.verb),
    )


def _other_stores(machine: Machine, state: State, right: act.Launching, chosen: act.Launching) -> tuple[str, str]:
    """Stores that are missing, or not needed: the property, and how the sentence ends."""
    wanted, seen = _stored(right), _stored(chosen)
    names = machine.setting.key_names
    again = {key for key in seen - wanted if key in state.host.keys}
    if again:
        return "no-block-stored-twice-at-once", f": {names[min(again) - 1]!r} is on the host already."
    if wanted - seen:
        key = names[min(wanted - seen) - 1]
        return "every-full-block-is-stored-or-refused", f": {key!r} is not stored, though the host has room."
    return AGREEMENT, "."


def _stored(choice: act.Launching) -> set[int]:
    return {pair.key for _, pairs in choice.stores for pair in pairs}


def offers(
    machine: Machine, state: State, expected: frozenset[tuple[object, ...]], seen: frozenset[tuple[object, ...]]
) -> Divergence:
    """The target's scheduler would take other decisions than the machine's."""
    missing, extra = expected - seen, seen - expected
    offer = min(missing or extra, key=_offer_words)
    odd = _offer_words(offer)
    if missing:
        name = _left(machine, state, str(offer[0]))
        sentence = f"The target's scheduler would not {odd}, and can."
    else:
        name, why = _overeager(machine, state, offer)
        sentence = f"The target's scheduler would {odd}, and must not{why}."
    verb = odd.partition(" ")[0]
    return Divergence(
        name,
        sentence,
        (_offers_words(expected),),
        (_offers_words(seen),),
        None,
        ("offers", verb, "missing" if missing else "extra"),
    )


def _left(machine: Machine, state: State, kind: str) -> str:
    """The property that suffers when an action of this kind is not taken."""
    if kind == "Launch":
        choice = policy.launching(machine.setting, state)
        if choice.stores and not choice.computes and not any(job.progress[0] == QUEUED for job in state.jobs):
            return "every-full-block-is-stored-or-refused"
    return "work-remaining-keeps-the-engine-stepping"


def _overeager(machine: Machine, state: State, offer: tuple[object, ...]) -> tuple[str, str]:
    """The property that an action would break which the target would take, and why: the contract's reason, or the
    policy's. Whoever would launch nothing never comes to rest; whom the policy puts last waits for the others."""
    action = _ASKED[str(offer[0])](offer)
    try:
        machine.check(state, action)
    except Forbidden as forbidden:
        why = f": {forbidden.why}"
        if isinstance(action, act.Launch) and awaited(state.steps) is None and len(state.steps) < 2:
            return "everything-drains", why
        if isinstance(action, act.Admit) and not state.requests[action.request].jobs:
            return "pinned-is-not-evicted", why
        return forbidden.rule if forbidden.rule in NAMES else BY_RULE.get(forbidden.rule, AGREEMENT), why
    if isinstance(action, act.Admit | act.Grow | act.PreemptUnderPressure):
        return "every-request-can-finish", ": another request comes first"
    return AGREEMENT, ""


_ASKED: dict[str, Callable[[tuple[Any, ...]], Action]] = {
    "Lookup": lambda offer: act.Lookup(offer[1]),
    "Admit": lambda offer: act.Admit(offer[1]),
    "Grow": lambda offer: act.Grow(offer[1]),
    "Launch": lambda _: act.Launch(),
    "Wake": lambda offer: act.Wake(offer[1]),
    "Finish": lambda offer: act.Finish(offer[1]),
    "HandleOutput": lambda _: act.HandleOutput(),
    "PreemptUnderPressure": lambda offer: act.PreemptUnderPressure(offer[1]),
}
"""The action that a key in `offers` stands for, its choice left open."""


def left_undone(machine: Machine, after: State, taken: list[Action]) -> Divergence | None:
    """After one whole scheduling call nothing of what it is for may be left: except that nobody is admitted in a
    call that preempted, and who was admitted in this call grows in the next one."""
    preempted = any(isinstance(action, act.PreemptUnderPressure) for action in taken)
    skipped = (act.Launch,) if preempted else (act.Launch, act.Wake, act.Grow, act.Admit)
    admitted = [action.request for action in taken if isinstance(action, act.Admit)]
    for action in machine.actions(after):
        if isinstance(action, act.Grow) and action.request in admitted:
            continue
        if isinstance(action, skipped) and not (isinstance(action, act.Admit) and machine.setting.scope.lookups):
            words = _offer_words(act.key(action))
            return Divergence(
                _left(machine, after, type(action).__name__),
                f"The target's scheduling call is over, and it could still {words}.",
                (f"would still {words}",),
                ("nothing more to do",),
                type(action),
                ("left undone", words.partition(" ")[0]),
            )
    return None


def _offer_words(offer: tuple[object, ...]) -> str:
    kind, *rest = offer
    words = {"HandleOutput": "handle output", "PreemptUnderPressure": "preempt under pressure"}.get(
        str(kind), str(kind).lower()
    )
    who = [request_name(number) for number in rest if isinstance(number, int)]
    return " ".join([words, *who])


def _offers_words(found: frozenset[tuple[object, ...]]) -> str:
    return "would: " + (", ".join(sorted(map(_offer_words, found))) or "nothing")


def difference(
    machine: Machine,
    before: State,
    command: Command | None,
    action: Action | None,
    after: State,
    view: View,
    field: str,
) -> Divergence:
    """The target's view differs from the machine's in this field, and perhaps in others."""
    verb = command.verb if command is not None else "start"
    name, sentence = _broken(machine, before, action, after, view, field)
    contract, target = _sides(machine, after, view)
    return Divergence(
        name,
        sentence,
        contract,
        target,
        type(action) if action is not None else None,
        ("view", verb, name, field),
    )


def _broken(
    machine: Machine, before: State, action: Action | None, after: State, view: View, field: str
) -> tuple[str, str]:
    setting = machine.setting
    if field == "runnable":
        return _unordered(after, view)
    found = _reissued(before, after, view) or _miscompleted(action, after, view) or _dropped(machine, after, view)
    if found is not None:
        return found
    seen = _as_state(after, view)
    if seen is not None:
        for candidate in _by_specificity(action):
            sentence = candidate.on_state(setting, seen) if candidate.on_state is not None else None
            applies = not candidate.actions or type(action).__name__ in candidate.actions
            if sentence is None and candidate.on_step is not None and action is not None and applies:
                sentence = candidate.on_step(setting, before, action, seen)
            if sentence is not None:
                return candidate.name, sentence[:1].upper() + sentence[1:] + "."
    if field == "requests":
        return _request_name(action, after, view)
    found = _of_pool(machine, after, view, field) or _awaited(after, view, field)
    if found is not None:
        return found
    name = BY_FIELD.get(field, AGREEMENT)
    return name, f"The target's {field.replace('_', ' ')} are not what the contract says."


def _reissued(before: State, after: State, view: View) -> tuple[str, str] | None:
    """A job that the machine does not know, under the id of one that is gone."""
    known = {job.id for job in (*before.jobs, *after.jobs)}
    for job in view.jobs or ():
        if job.id < before.next_job and job.id not in known:
            return "ids-are-never-reused", f"A new job has id {job.id}, which another one had before."
    return None


def _miscompleted(action: Action | None, after: State, view: View) -> tuple[str, str] | None:
    """A completion that came before its last report, or did not come with it."""
    if view.jobs is None or not isinstance(action, act.Report | act.DuplicateReport):
        return None
    number = action.job
    right = {job.id: job for job in expected(after).jobs or ()}.get(number)
    seen = {job.id: job for job in view.jobs}.get(number)
    if right is not None and seen is None:
        return "workers-agree", f"Job {number} is complete, and worker {right.awaiting[0]} has not reported it."
    if right is None and seen is not None and not seen.awaiting:
        if seen.view == ABANDONED:
            words = f"Job {number} is abandoned, every worker has reported it, and it stays: no reset will answer True."
            return "reset-converges", words
        return "workers-agree", f"Job {number} is not complete, and every worker has reported it."
    return None


def _dropped(machine: Machine, after: State, view: View) -> tuple[str, str] | None:
    """Under pinning nothing but its job keeps a block from others while it is copied: no job is dropped before."""
    if view.jobs is None or not machine.setting.contract.pins:
        return None
    seen = {job.id for job in view.jobs}
    for job in after.jobs:
        if job.id not in seen and LAUNCHED in job.progress:
            return (
                "no-use-after-free",
                f"Job {job.id} is dropped while it copies: nothing keeps its blocks from others.",
            )
    return None


def _of_pool(machine: Machine, after: State, view: View, field: str) -> tuple[str, str] | None:
    """Keys that cannot be hit and should be; free blocks in another order."""
    tier, _, what = field.partition("_")
    if what not in ("keys", "free"):
        return None
    right, seen = getattr(expected(after), field), getattr(view, field)
    if what == "free":
        if sorted(right) != sorted(seen):
            return None
        block, other = next((r, s) for r, s in zip(right, seen, strict=True) if r != s)
        words = f"The free {tier} blocks are in another order: {tier[0]}{other} stands where {tier[0]}{block} should."
        return AGREEMENT, words
    if any(key and key != wanted for key, wanted in zip(seen, right, strict=True)):
        return None
    block = next(block for block, (key, wanted) in enumerate(zip(seen, right, strict=True)) if key != wanted)
    name = AGREEMENT if tier == "device" else "every-full-block-is-stored-or-refused"
    key = machine.setting.key_names[right[block] - 1]
    return name, f"{tier.capitalize()} block {block} cannot be hit as {key!r}, and should be."


def _awaited(after: State, view: View, field: str) -> tuple[str, str] | None:
    """A job that waits for other workers than those that have not reported it."""
    right = {job.id: job.awaiting for job in expected(after).jobs or ()}
    for job in (view.jobs or ()) if field == "jobs" else ():
        wanted = right.get(job.id, job.awaiting)
        if job.awaiting != wanted:
            seen, due = (
                ", ".join(f"w{worker}" for worker in workers) or "nobody" for workers in (job.awaiting, wanted)
            )
            return "workers-agree", f"Job {job.id} awaits {seen}, and should await {due}."
    return None


def _request_name(action: Action | None, after: State, view: View) -> tuple[str, str]:
    assert view.requests is not None
    for number, (right, seen) in enumerate(zip(after.requests, view.requests, strict=False)):
        if right == seen:
            continue
        who = request_name(number)
        if set(seen.jobs) - set(right.jobs):
            lost = min(set(seen.jobs) - set(right.jobs))
            return "every-request-can-finish", f"Request {who} still waits for job {lost}, which it must not wait for."
        if set(right.jobs) - set(seen.jobs):
            lost = min(set(right.jobs) - set(seen.jobs))
            stale = isinstance(action, act.Report | act.DuplicateReport)
            name = "stale-completions-change-nothing" if stale else "reads-what-was-written"
            return name, f"Request {who} does not wait for job {lost}, which is not complete."
        if right.phase != seen.phase:
            name = "every-request-can-finish"
            return name, f"Request {who} is {PHASES[seen.phase]} and should be {PHASES[right.phase]}."
        if right.returns != seen.returns:
            then = "wait again" if seen.returns else "be done"
            return "every-request-can-finish", f"Request {who} will {then} when its load is done, and should not."
        if seen.pins is not None and right.pins is None:
            return "everything-drains", f"Request {who} keeps what it looked up, and nobody will take it away."
        if seen.computed != right.computed:
            words = f"Request {who} counts {seen.computed} computed blocks and has {right.computed}"
            if seen.computed > right.computed:
                return "reads-what-was-written", f"{words}."
            return "no-use-after-free", f"{words}: it would write again what can be hit."
        if right.stored != seen.stored:
            name = "every-full-block-is-stored-or-refused"
            return (
                name,
                f"Request {who} has offered {seen.stored} blocks to the host and should have offered {right.stored}.",
            )
    return AGREEMENT, "The target's requests are not what the contract says."


def _unordered(after: State, view: View) -> tuple[str, str]:
    """An operation that could run too early, or that never can."""
    assert view.runnable is not None
    right = set(expected(after).runnable or ())
    seen = set(view.runnable)
    for worker, stream in sorted(seen - right):
        what = f"the oldest operation of worker {worker}'s {STREAMS[stream]} stream"
        job = oldest_copy(after, worker, stream) if stream else None
        step = oldest_compute(after, worker) if not stream else None
        waits = job.after_jobs if job is not None else (step.after_jobs if step is not None else ())
        if any(_is_pending(after, worker, other) for other in waits):
            return (
                "fence-before-reuse",
                f"{what[:1].upper()}{what[1:]} does not wait for the copies that use its blocks.",
            )
        if job is not None and job.direction == STORE:
            return (
                "reads-what-was-written",
                f"{what[:1].upper()}{what[1:]} does not wait for the compute that writes what it reads.",
            )
        if job is not None:
            return (
                "no-use-after-free",
                f"{what[:1].upper()}{what[1:]} does not wait for the last compute that reads what it overwrites.",
            )
        return AGREEMENT, f"{what[:1].upper()}{what[1:]} could run, and there should be none."
    worker, stream = min(right - seen)
    return (
        "everything-drains",
        f"The oldest operation of worker {worker}'s {STREAMS[stream]} stream should be able to run, and is not.",
    )


def _is_pending(state: State, worker: int, job_id: int) -> bool:
    job = job_with(state, job_id)
    return job is not None and job.progress[worker] == LAUNCHED


def _as_state(after: State, view: View) -> State | None:
    """The machine's state with everything replaced that is seen otherwise on the target."""
    device = Pool(
        after.device.refs if view.device_refs is None else view.device_refs,
        after.device.keys if view.device_keys is None else view.device_keys,
        after.device.free if view.device_free is None else view.device_free,
    )
    host = Pool(
        after.host.refs if view.host_refs is None else view.host_refs,
        after.host.keys if view.host_keys is None else view.host_keys,
        after.host.free if view.host_free is None else view.host_free,
    )
    requests = after.requests
    if view.requests is not None and len(view.requests) == len(requests):
        requests = view.requests
    contents = (after.device_contents, after.host_contents) if view.contents is None else view.contents
    jobs = after.jobs if view.jobs is None else tuple(_jobs(after, view.jobs))
    for request in requests:
        if any(not 0 <= block < len(device.refs) for block in request.table):
            return None
    return after._replace(
        device=device, host=host, requests=requests, jobs=jobs, device_contents=contents[0], host_contents=contents[1]
    )


def _jobs(after: State, seen: tuple[JobView, ...]) -> list[Job]:
    """The physical table with the target's view of each job; what the target dropped is FORGOTTEN, its copies go on."""
    by_id = {job.id: job for job in seen}
    jobs: list[Job] = []
    for job in after.jobs:
        view = by_id.pop(job.id, None)
        if view is None:
            jobs.append(job._replace(view=FORGOTTEN))
        else:
            jobs.append(job._replace(view=view.view, pairs=view.pairs, request=view.request))
    workers = len(after.device_contents)
    for view in by_id.values():
        progress = (REPORTED,) * workers
        jobs.append(Job(view.id, view.direction, view.request, view.pairs, view.view, progress))
    return sorted(jobs, key=lambda job: job.id)


def _sides(machine: Machine, after: State, view: View) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What differs, line by line: references with their owners, keys, requests, jobs, contents, what may run."""
    right = expected(after)
    seen_state = _as_state(after, view)
    contract: list[str] = []
    target: list[str] = []

    def say(wanted: str, found: str) -> None:
        if wanted != found and len(contract) < 12:
            contract.append(wanted)
            target.append(found)

    for tier in ("device", "host"):
        refs = getattr(view, f"{tier}_refs")
        if refs is not None:
            for block in range(len(refs)):
                if refs[block] != getattr(right, f"{tier}_refs")[block]:
                    say(_block(machine, after, tier, block), _block(machine, seen_state or after, tier, block))
        keys = getattr(view, f"{tier}_keys")
        if keys is not None:
            for block, (key, wanted) in enumerate(zip(keys, getattr(right, f"{tier}_keys"), strict=False)):
                say(f"{tier[0]}{block} {_hit(machine, wanted)}", f"{tier[0]}{block} {_hit(machine, key)}")
        free = getattr(view, f"{tier}_free")
        if free is not None:
            say(_queue(tier, getattr(right, f"{tier}_free")), _queue(tier, free))
    if view.requests is not None:
        for number, (wanted_request, seen) in enumerate(zip(after.requests, view.requests, strict=False)):
            say(_request(number, wanted_request), _request(number, seen))
    if view.jobs is not None:
        seen_jobs = {job.id: job for job in view.jobs}
        wanted_jobs = {job.id: job for job in right.jobs or ()}
        for job_id in sorted(seen_jobs.keys() | wanted_jobs.keys()):
            say(_job(job_id, wanted_jobs.get(job_id)), _job(job_id, seen_jobs.get(job_id)))
    if view.launched is not None:
        say(f"launched step {right.launched}", f"launched step {view.launched}")
    if view.runnable is not None:
        say(_may_run(right.runnable or ()), _may_run(view.runnable))
    if view.contents is not None:
        for tier, wanted_rows, rows in zip(("d", "h"), right.contents or (), view.contents, strict=True):
            for worker, (wanted_row, row) in enumerate(zip(wanted_rows, rows, strict=True)):
                for block, (wanted, found) in enumerate(zip(wanted_row, row, strict=True)):
                    names = machine.setting.key_names
                    say(
                        f"{tier}{block} on w{worker} {_content(wanted, names)}",
                        f"{tier}{block} on w{worker} {_content(found, names)}",
                    )
    return tuple(contract), tuple(target)


def _content(content: int, names: tuple[str, ...]) -> str:
    return content_words(content, names) if abs(content) <= len(names) else "TORN"


def _block(machine: Machine, state: State, tier: str, block: int) -> str:
    pool = state.device if tier == "device" else state.host
    names = [
        name.replace("request ", "").replace("0", "x") if name.startswith("request 0") else name
        for name, holding in owners(machine.setting.contract, state)
        for held in (holding.device if tier == "device" else holding.host)
        if held == block
    ]
    queued = ", in the free queue" if block in pool.free else ""
    return f"{tier[0]}{block} references {pool.refs[block]}: {', '.join(names) or 'nobody'}{queued}"


def _hit(machine: Machine, key: int) -> str:
    return f"can be hit as {machine.setting.key_names[key - 1]!r}" if key else "cannot be hit"


def _queue(tier: str, free: tuple[int, ...]) -> str:
    return f"free {tier} blocks: {' '.join(f'{tier[0]}{block}' for block in free) or 'none'}"


def _request(number: int, request: Request) -> str:
    words = [f"{request_name(number)} {PHASES[request.phase]}"]
    if request.table:
        table = " ".join(f"d{block}" for block in request.table)
        words.append(f"holds {table}, {request.computed} computed, {request.stored} offered")
    if request.pins is not None:
        pins = [f"d{block}" for block in request.pins.device] + [f"h{block}" for block in request.pins.host]
        words.append(f"pins {' '.join(pins) or 'nothing'}")
    if request.jobs:
        words.append(f"waits for job {', '.join(map(str, request.jobs))}")
    words += ["outdated"] * request.outdated + ["returns"] * request.returns
    return ", ".join(words)


def _job(job_id: int, job: JobView | None) -> str:
    if job is None:
        return f"no job {job_id}"
    tiers = "dh" if job.direction == STORE else "hd"
    pairs = " ".join(f"{tiers[0]}{pair.source}->{tiers[1]}{pair.destination}" for pair in job.pairs)
    awaiting = ",".join(f"w{worker}" for worker in job.awaiting)
    return f"job {job_id} {DIRECTIONS[job.direction]} {pairs} {VIEWS[job.view]}, awaiting {awaiting or 'nobody'}"


def _may_run(runnable: tuple[tuple[int, int], ...]) -> str:
    return "may run: " + (", ".join(f"w{worker} {STREAMS[stream]}" for worker, stream in sorted(runnable)) or "nothing")


def _choice_words(action: Action) -> str:
    match action:
        case act.Admit(number, choice) if choice is not None:
            device = " ".join(f"d{block}" for block in choice.device) or "none"
            host = " ".join(f"h{block}" for block in choice.host) or "none"
            fresh = " ".join(f"d{block}" for block in choice.fresh) or "none"
            return f"admit {request_name(number)}: device hits {device}, host hits {host}, fresh {fresh}"
        case act.Launch(choice) if choice is not None:
            computes = " ".join(f"{request_name(number)}[{start}:{end}]" for number, start, end in choice.computes)
            stores = " ".join(f"d{p.source}->h{p.destination}" for _, pairs in choice.stores for p in pairs)
            flush = " ".join(map(str, choice.flush))
            return f"launch: compute {computes or 'nothing'}; store {stores or 'nothing'}; flush {flush or 'nothing'}"
        case _:
            return " ".join([type(action).__name__.lower(), *map(str, action)])
