"""Naming a divergence: which property it breaks, what happened in one sentence, and the facts side by side.

What is seen of the target is put into the machine's state, and the properties are asked of that: the first that does
not hold names the divergence. Where all hold, as when the target's books agree with each other, that does what the
difference endangers; or else the field that differs.
"""

from collections.abc import Iterator

from kvmodel import Action, Forbidden, Machine, State, policy
from kvmodel import actions as act
from kvmodel.block_pool import HOLE
from kvmodel.owners import Holding, holding_of_job
from kvmodel.request import ABSENT, DONE, PHASES, held
from kvmodel.state import job_with, pool_of
from kvmodel.streams import STREAMS, oldest_compute, oldest_copy
from kvmodel.transfer_job import ABANDONED, FORGOTTEN, LAUNCHED, STORE, VIEWS
from kvproof.targets.command import Command, request_name
from kvproof.targets.divergence import Divergence
from kvproof.targets.side_by_side import as_state, choice_words, content_in_words, sides
from kvproof.targets.view import JobView, View, expected
from kvspecs.catalogue import AGREEMENT, EVENTS, JUDGED, NAMES, STEPPING
from kvspecs.property import Property
from kvspecs.safety.events_tell_what_can_be_hit import on_events

BY_FIELD = {
    "device_refs": "owners-account-for-references",
    "host_refs": "owners-account-for-references",
    "second_refs": "owners-account-for-references",
    "device_free": "free-means-unowned",
    "host_free": "free-means-unowned",
    "second_free": "free-means-unowned",
    "device_keys": "published-after-all-copied",
    "host_keys": "published-after-all-copied",
    "second_keys": "published-after-all-copied",
    "contents": "reads-what-was-written",
    "offers": "work-remaining-keeps-the-engine-stepping",
    "jobs": "stale-completions-change-nothing",
    "launched": "no-use-after-free",
}
"""The property that a difference in this field breaks, where no property names itself."""

BY_RULE = {
    "admit": "stale-completions-change-nothing",
    "finish": "every-request-can-finish",
    "grow": "pinned-is-not-evicted",
    "handle-output": "published-after-all-copied",
    "launch": "no-use-after-free",
    "lookup": "stale-completions-change-nothing",
    "preempt": "every-request-can-finish",
    "promote": "stale-completions-change-nothing",
    "wake": "reads-what-was-written",
}
"""The property that a guard of the contract is there for, by the name of its rule: of admit and lookup, that a request
with jobs outstanding is deferred."""

ENDED = (ABSENT, DONE)
"""Phases of requests that want nothing of the engine."""

COUNTS = ("owners-account-for-references", "free-means-unowned", "no-double-free")
"""Properties of counts and queues: named first where they are broken, since whatever else is wrong comes of it."""


def _by_specificity(action: Action | None) -> list[Property]:
    """What is judged, in the order in which it gives its name: counts; then what is about this very action, published
    by a dropped job or a failed copy before all else that a completion may do wrong; then what holds of every state."""
    name = type(action).__name__

    def rank(candidate: Property) -> int:
        if candidate.name in COUNTS:
            return 0
        if name not in candidate.actions:
            return 3
        return 1 if candidate.name in ("dropped-jobs-publish-nothing", "failed-copies-are-never-published") else 2

    return sorted(JUDGED, key=rank)


def forbidden(machine: Machine, state: State, command: Command, action: Action, why: Forbidden) -> Divergence:
    """The contract forbids what the target did."""
    name = why.rule if why.rule in NAMES else BY_RULE.get(why.rule, AGREEMENT)
    words = f"On {command} the target did what the contract forbids: {why.why}."
    return Divergence(
        name,
        words,
        (f"forbidden: {why.why}",),
        (choice_words(action),),
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
        (choice_words(reference),),
        (choice_words(action),),
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
    contract, target = sides(machine, after, view)
    return Divergence(
        name,
        sentence,
        contract,
        target,
        type(action) if action is not None else None,
        ("view", verb, name, field),
        after,
        as_state(after, view),
    )


def _broken(
    machine: Machine, before: State, action: Action | None, after: State, view: View, field: str
) -> tuple[str, str]:
    setting = machine.setting
    if field == "runnable":
        return _unordered(after, view)
    found = (
        _reissued(before, after, view) or _miscompleted(before, action, after, view) or _dropped(machine, after, view)
    )
    if found is not None:
        return found
    seen = as_state(after, view)
    if seen is not None:
        for candidate in _by_specificity(action):
            sentence = candidate.on_state(setting, seen) if candidate.on_state is not None else None
            applies = not candidate.actions or type(action).__name__ in candidate.actions
            if sentence is None and candidate.on_step is not None and action is not None and applies:
                sentence = candidate.on_step(setting, before, action, seen)
            if sentence is not None:
                return candidate.name, sentence[:1].upper() + sentence[1:] + "."
    if field == "announced" and view.announced is not None:
        told = on_events(setting, after, view.announced) or "the events are not in order"
        return EVENTS.name, f"{told[:1].upper()}{told[1:]}."
    if field == "has_work":
        return STEPPING.name, f"The engine has {'' if view.has_work else 'no '}work, it says; {_left(after)}."
    if field == "requests":
        return _request_name(action, after, view)
    found = (
        _of_pool(machine, after, view, field)
        or _freed_under_an_operation(machine, after, view, field)
        or _not_kept(after, view, field)
        or _awaited(after, view, field)
        or _kept(after, view, field)
    )
    if found is not None:
        return found
    name = BY_FIELD.get(field, AGREEMENT)
    if field.endswith("_refs"):
        return name, _other_count(after, view, field)
    if field == "jobs":
        return name, _other_job(after, view)
    if field == "contents":
        return name, _other_content(machine, after, view)
    return name, f"The target's {field.replace('_', ' ')} are not what the contract says."


def _left(state: State) -> str:
    """Whatever an engine must be stepped on for."""
    left = [f"request {request_name(number)}" for number, one in enumerate(state.requests) if one.phase not in ENDED]
    left += [f"job {job.id}, which holds blocks" for job in state.jobs if job.view != FORGOTTEN]
    left += ["the output of a step" for step in state.steps if not step.handled]
    return f"left is {', '.join(left)}" if left else "nothing is left"


def _reissued(before: State, after: State, view: View) -> tuple[str, str] | None:
    """A job that the machine does not know, under the id of one that is gone."""
    known = {job.id for job in (*before.jobs, *after.jobs)}
    for job in view.jobs or ():
        if job.id < before.next_job and job.id not in known:
            return "ids-are-never-reused", f"A new job has id {job.id}, which another one had before."
    return None


def _miscompleted(before: State, action: Action | None, after: State, view: View) -> tuple[str, str] | None:
    """A completion that came before its last report, or did not come with it."""
    if view.jobs is None:
        return None
    if isinstance(action, act.Report | act.DuplicateReport):
        numbers: tuple[int, ...] = (action.job,)
    elif isinstance(action, act.ReportMark | act.RepeatMark):
        numbers = tuple(sorted({job.id for job in (*before.jobs, *after.jobs)}))
    else:
        return None
    found = (_miscompleted_job(number, after, view.jobs) for number in numbers)
    return next((named for named in found if named is not None), None)


def _miscompleted_job(number: int, after: State, jobs: tuple[JobView, ...]) -> tuple[str, str] | None:
    right = {job.id: job for job in expected(after).jobs or ()}.get(number)
    seen = {job.id: job for job in jobs}.get(number)
    if right is not None and seen is None:
        return "workers-agree", f"Job {number} is complete, and worker {right.awaiting[0]} has not reported it."
    if right is None and seen is not None and not seen.awaiting:
        if seen.view == ABANDONED:
            words = f"Job {number} is abandoned, every worker has reported it, and it stays: no reset will answer True."
            return "reset-converges", words
        return "workers-agree", f"Job {number} is not complete, and every worker has reported it."
    return None


def _dropped(machine: Machine, after: State, view: View) -> tuple[str, str] | None:
    """Under pinning nothing but its job keeps a block from others while it is copied: no job is dropped before, but for
    those that expired, which are fenced."""
    if view.jobs is None or not machine.setting.contract.pins:
        return None
    seen = {job.id for job in view.jobs}
    for job in after.jobs:
        if job.id not in seen and job.view != FORGOTTEN and LAUNCHED in job.progress:
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


def _counts(after: State, view: View, field: str) -> Iterator[tuple[str, int, int, int]]:
    """Tier, block, references that it should have, and has on the target, of those that have another number."""
    tier = field.partition("_")[0]
    pairs = zip(pool_of(after, tier).refs, getattr(view, field), strict=True)
    return ((tier, block, wanted, found) for block, (wanted, found) in enumerate(pairs) if wanted != found)


def _freed_under_an_operation(machine: Machine, after: State, view: View, field: str) -> tuple[str, str] | None:
    """A block that nobody references, by books that agree with each other, and that an operation is still to use."""
    if not field.endswith("_refs"):
        return None
    contract = machine.setting.contract
    jobs = [(f"job {job.id}", holding_of_job(contract, job)) for job in after.jobs if LAUNCHED in job.progress]
    shares = [(step, share) for step in after.steps if not step.handled for share in step.shares]
    users = [*jobs, *((f"launched step {step.id}", Holding(held(share.table), ())) for step, share in shares)]
    for tier, block, _, found in _counts(after, view, field):
        for user, holding in users if not found else ():
            if block in holding.of(tier):
                return "no-use-after-free", f"{tier.capitalize()} block {block} is free while {user} still uses it."
    return None


def _not_kept(after: State, view: View, field: str) -> tuple[str, str] | None:
    """What a request counts on, by books that agree with each other, is nobody's."""
    if not field.endswith("_refs"):
        return None
    for number, (right, seen) in enumerate(zip(after.requests, view.requests or (), strict=False)):
        who = f"Request {request_name(number)}"
        if right.pins is not None and seen.pins is None:
            return "pinned-is-not-evicted", f"{who} has looked up blocks that nothing keeps from eviction."
        for block, found in zip(right.table, seen.table, strict=False):
            if found == HOLE != block:
                return "reads-what-was-written", f"{who} has given up device block {block}, which it is still to read."
    return None


def _other_count(after: State, view: View, field: str) -> str:
    """The first block with another number of references than it should have, by books that agree with each other."""
    tier, block, wanted, found = next(_counts(after, view, field))
    return f"{tier.capitalize()} block {block} has {found} references, and should have {wanted}."


def _other_job(after: State, view: View) -> str:
    """The first job that the scheduler sees otherwise than it should."""
    right = {job.id: job for job in expected(after).jobs or ()}
    seen = {job.id: job for job in view.jobs or ()}
    for number in sorted(right.keys() | seen.keys()):
        wanted, found = right.get(number), seen.get(number)
        if wanted is None:
            return f"Job {number} is in the target's table, and should be in none any more."
        if found is None:
            return f"Job {number} is not in the target's table, and should be: it is {VIEWS[wanted.view]}."
        if found.view != wanted.view:
            return f"Job {number} is {VIEWS[found.view]}, and should be {VIEWS[wanted.view]}."
        if found != wanted:
            return f"Job {number} is of other blocks, or of another request, than it should be."
    return "The target's jobs are not what the contract says."


def _other_content(machine: Machine, after: State, view: View) -> str:
    """The first block that holds something else than it should."""
    names = machine.setting.key_names
    for tier, right_rows, rows in zip("dhs", expected(after).contents or (), view.contents or (), strict=False):
        for worker, (right, row) in enumerate(zip(right_rows, rows, strict=False)):
            for block, (wanted, found) in enumerate(zip(right, row, strict=False)):
                if wanted != found:
                    words = content_in_words(found, names), content_in_words(wanted, names)
                    return f"Block {tier}{block} of worker {worker} holds {words[0]}, and should hold {words[1]}."
    return "The target's contents are not what the contract says."


def _awaited(after: State, view: View, field: str) -> tuple[str, str] | None:
    """A job that waits for other workers than those that have not reported it, or that does not know what failed."""
    expected_jobs = {job.id: job for job in expected(after).jobs or ()}
    right = {number: job.awaiting for number, job in expected_jobs.items()}
    for job in (view.jobs or ()) if field == "jobs" else ():
        wanted = right.get(job.id, job.awaiting)
        if job.awaiting != wanted:
            seen, due = (
                ", ".join(f"w{worker}" for worker in workers) or "nobody" for workers in (job.awaiting, wanted)
            )
            return "workers-agree", f"Job {job.id} awaits {seen}, and should await {due}."
        known = expected_jobs[job.id].failed if job.id in expected_jobs else job.failed
        if job.failed != known:
            seen, due = (", ".join(map(str, pairs)) or "none" for pairs in (job.failed, known))
            words = f"Of job {job.id} the pairs that failed are {seen}, and should be {due}."
            return "failed-copies-are-never-published", words
    return None


def _kept(after: State, view: View, field: str) -> tuple[str, str] | None:
    """A launched step that does not know who has left it: what keeps the blocks that it still writes from others."""
    right, seen = expected(after).launched or (), view.launched or ()
    if field != "launched" or [s._replace(left=False) for s in seen] != [s._replace(left=False) for s in right]:
        return None
    share = next(share for share, wanted in zip(seen, right, strict=True) if share.left != wanted.left)
    left = "left" if share.left else "not left"
    return BY_FIELD[field], f"Request {request_name(share.request)} has {left} awaited step {share.step}."


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
            stale = isinstance(action, act.Report | act.ReportMark | act.DuplicateReport | act.RepeatMark)
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
