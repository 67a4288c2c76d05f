"""Naming a divergence: which property it breaks, what happened in one sentence, and the facts side by side.

What is seen of the target is put into the machine's state, and the properties are asked of that: the first that does
not hold names the divergence. Where all hold, the field that differs does.
"""

from typing import NamedTuple

from kvmodel import Action, Forbidden, Machine, State
from kvmodel import actions as act
from kvmodel.block_pool import Pool
from kvmodel.contents import describe as content_words
from kvmodel.owners import owners
from kvmodel.request import PHASES, Request
from kvmodel.state import job_with
from kvmodel.streams import STREAMS, oldest_compute, oldest_copy
from kvmodel.transfer_job import DIRECTIONS, FORGOTTEN, LAUNCHED, REPORTED, STORE, VIEWS, Job
from kvproof.targets.command import Command, request_name
from kvproof.targets.view import JobView, View, expected
from kvspecs.catalogue import AGREEMENT, JUDGED, NAMES


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


def forbidden(machine: Machine, state: State, command: Command, action: Action, why: Forbidden) -> Divergence:
    """The contract forbids what the target did."""
    name = why.rule if why.rule in NAMES else AGREEMENT
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
    from kvmodel.policy import admission, launching

    reference: Action = action
    if isinstance(action, act.Admit):
        reference = action._replace(choice=admission(machine.setting, state, action.request))
    elif isinstance(action, act.Launch):
        reference = act.Launch(launching(machine.setting, state))
    return Divergence(
        AGREEMENT,
        f"On {command} the target made another choice than the reference.",
        (_choice_words(reference),),
        (_choice_words(action),),
        type(action),
        ("choice", command.verb),
    )


def offers(
    machine: Machine, state: State, expected: frozenset[tuple[object, ...]], seen: frozenset[tuple[object, ...]]
) -> Divergence:
    """The target's scheduler would take other decisions than the machine's."""
    missing, extra = expected - seen, seen - expected
    odd = min(map(_offer_words, missing or extra))
    sentence = (
        f"The target's scheduler {'would not' if missing else 'would'} {odd}, and {'can' if missing else 'must not'}."
    )
    verb = odd.partition(" ")[0]
    name = "work-remaining-keeps-the-engine-stepping" if missing else AGREEMENT
    return Divergence(
        name,
        sentence,
        (_offers_words(expected),),
        (_offers_words(seen),),
        None,
        ("offers", verb, "missing" if missing else "extra"),
    )


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
                "work-remaining-keeps-the-engine-stepping",
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
    seen = _as_state(after, view)
    if seen is not None:
        for candidate in JUDGED:
            sentence = candidate.on_state(setting, seen) if candidate.on_state is not None else None
            applies = not candidate.actions or type(action).__name__ in candidate.actions
            if sentence is None and candidate.on_step is not None and action is not None and applies:
                sentence = candidate.on_step(setting, before, action, seen)
            if sentence is not None:
                return candidate.name, sentence[:1].upper() + sentence[1:] + "."
    if field == "requests":
        return _request_name(after, view)
    name = BY_FIELD.get(field, AGREEMENT)
    return name, f"The target's {field.replace('_', ' ')} are not what the contract says."


def _request_name(after: State, view: View) -> tuple[str, str]:
    assert view.requests is not None
    for number, (right, seen) in enumerate(zip(after.requests, view.requests, strict=False)):
        if right == seen:
            continue
        who = request_name(number)
        if set(seen.jobs) - set(right.jobs):
            lost = min(set(seen.jobs) - set(right.jobs))
            return "every-request-can-finish", f"Request {who} still waits for job {lost}, which it must not wait for."
        if right.phase != seen.phase:
            name = "every-request-can-finish"
            return name, f"Request {who} is {PHASES[seen.phase]} and should be {PHASES[right.phase]}."
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
