"""Bugs in what reports of workers come to."""

from tests.bugs.bug import Bug

BUGS = (
    Bug(
        id="any-worker-suffices",
        kind="completion",
        mechanism="A transfer is complete when the first worker reports it, though others still copy.",
        source="https://github.com/vllm-project/vllm/pull/21048",
        file="connectors/transfers.py",
        old="""        if job.awaiting:
            return ConnectorOutput(stale=stale)
""",
        new="",
        discipline="pinning",
        variant="s2",
        property="workers-agree",
        commands=5,
        twin="first-report-unlocks",
    ),
    Bug(
        id="reports-counted",
        kind="completion",
        mechanism="Reports are counted and not named: a repeated one of one worker stands for that of another.",
        source="https://github.com/vllm-project/vllm-ascend/pull/14407",
        file="completions/per_job.py",
        old="""    if known is None or not known.launched or worker not in known.awaiting:
        return None
    known.awaiting.discard(worker)""",
        new="""    if known is None or not known.launched or not known.awaiting:
        return None
    known.awaiting.discard(worker if worker in known.awaiting else min(known.awaiting))""",
        discipline="pinning",
        variant="s2+duplicates",
        property="workers-agree",
        commands=6,
    ),
    Bug(
        id="abandoned-stays",
        kind="completion",
        mechanism="An abandoned transfer that is complete stays in the table, and no reset ever answers True again.",
        source="planted",
        file="connectors/transfers.py",
        old="        del self.jobs[job.id]\n        if job.state is JobState.FORGOTTEN:",
        new="""        if job.state is not JobState.ABANDONED:
            del self.jobs[job.id]
        if job.state is JobState.FORGOTTEN:""",
        discipline="pinning",
        variant="s1",
        property="reset-converges",
        commands=6,
    ),
    Bug(
        id="forged-accepted",
        kind="completion",
        mechanism="A completion for an id that was never issued is taken for a stale one.",
        source="planted",
        file="connectors/transfers.py",
        old="        per_job.validate(self.jobs, jobs, failed, self.next_job)\n",
        new="",
        discipline="pinning",
        variant="s1+forgeries",
        property="refused-changes-nothing",
        commands=1,
    ),
    Bug(
        id="forged-next-id-accepted",
        kind="completion",
        mechanism="A completion for the id that comes next is taken for a stale one: the bound is one too high.",
        source="planted",
        file="completions/per_job.py",
        old="        if not 0 <= job < next_job:\n",
        new="        if not 0 <= job <= next_job:\n",
        discipline="pinning",
        variant="s1+forgeries",
        property="refused-changes-nothing",
        commands=1,
    ),
    Bug(
        id="late-report-crashes",
        kind="completion",
        mechanism="A report of a transfer that is gone is looked up as if it had to be there.",
        source="https://github.com/vllm-project/vllm/issues/48616",
        file="completions/per_job.py",
        old="    known = jobs.get(job)\n",
        new="    known = jobs[job]\n",
        discipline="pinning",
        variant="s1+duplicates",
        property="work-remaining-keeps-the-engine-stepping",
        commands=6,
    ),
    Bug(
        id="completion-keyed-by-request",
        kind="completion",
        mechanism="A completion counts for its request and not for its job: an old load's one wakes the next load.",
        source="https://github.com/vllm-project/vllm/pull/54872",
        file="scheduler.py",
        old="""        if request is None or job.job not in request.jobs:
            return
        request.jobs.discard(job.job)""",
        new="""        if request is None:
            return
        request.jobs.clear()""",
        discipline="pinning",
        variant="s1,device=3",
        property="stale-completions-change-nothing",
        commands=12,
    ),
    Bug(
        id="load-credits-itself-only",
        kind="completion",
        mechanism="A complete load counts as all that its request has; its hits on the device are computed again.",
        source="planted",
        file="scheduler.py",
        old="request.computed += job.loaded",
        new="request.computed = job.loaded",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=19,
    ),
    Bug(
        id="load-publishes-nothing",
        kind="completion",
        mechanism="What a load brought in cannot be hit on the device.",
        source="planted",
        file="connectors/transfers.py",
        old="        cache.publish([(pair.destination, pair.key) for pair in intact])\n",
        new="""        if job.direction is Direction.STORE:
            cache.publish([(pair.destination, pair.key) for pair in intact])
""",
        discipline="pinning",
        variant="s1",
        property="agrees-with-the-reference",
        commands=10,
    ),
)
