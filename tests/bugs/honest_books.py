"""Bugs of data whose books agree: whoever lets go of a block that is still in use strikes off the record, too.

No count gives these away. Each has a twin of which a count does, before any data is hurt (`Bug.twin`).
"""

from tests.bugs.bug import Bug

_VLLM = "https://github.com/vllm-project/vllm/"
_DYNAMO = "https://github.com/ai-dynamo/dynamo/"

BUGS = (
    Bug(
        id="preemption-drops-the-stores",
        kind="connector",
        mechanism="A preemption ends the stores that read the request's blocks, and lets go of what they hold.",
        source=_VLLM + "pull/29870",
        file="connectors/transfers.py",
        old="        if load is None:\n            return False\n",
        new="""        if load is None:
            for job in [job for job in self.jobs.values() if not set(request.table).isdisjoint(job.device_blocks)]:
                self.storing.difference_update([pair.key for pair in job.pairs])
                del self.jobs[job.id]
                self._disown(job)
            return False
""",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=3,
        twin="sources-not-pinned",
    ),
    Bug(
        id="transfers-deleted-at-finish",
        kind="connector",
        mechanism="A request's stores are deleted when it ends, with all that they hold, while they still copy.",
        source=_DYNAMO + "issues/3730",
        file="connectors/transfers.py",
        old="""        if not keep_table:
            request.jobs.clear()
""",
        new="""        if not keep_table:
            for number in request.jobs & self.jobs.keys():
                job = self.jobs.pop(number)
                self.storing.difference_update([pair.key for pair in job.pairs])
                self._disown(job)
            request.jobs.clear()
""",
        discipline="fencing",
        variant="s1",
        property="no-use-after-free",
        commands=3,
        twin="slot-deleted-at-finish",
    ),
    Bug(
        id="step-forgets-who-left",
        kind="scheduler",
        mechanism="Who leaves a launched step is struck off it: its blocks are free while the step writes them.",
        source=_VLLM + "pull/45357",
        file="scheduler.py",
        old="""        for share in reversed(self._shares(request.id)):
            share.left = True
            if not kept:
                kept = len(share.blocks)
                continue
            self.device.touch(share.blocks)
""",
        new="""        for step in self.pipeline:
            step.shares.pop(request.id, None)
""",
        discipline="pinning",
        variant="s1",
        property="no-use-after-free",
        commands=3,
        twin="freed-under-the-step",
    ),
    Bug(
        id="lookup-forgets-what-it-found",
        kind="scheduler",
        mechanism="A lookup tells what it found, and neither references nor notes it: it can go before the admission.",
        source=_VLLM + "pull/42289",
        file="scheduler.py",
        old="        return LookupResult(*waiting.pins)\n",
        new="""        found = LookupResult(*waiting.pins)
        if any(found):
            self._drop_pins(waiting)
        return found
""",
        discipline="pinning",
        variant="s1+lookups",
        property="pinned-is-not-evicted",
        commands=6,
        twin="lookup-does-not-pin",
    ),
    Bug(
        id="reset-drops-a-promotion",
        kind="connector",
        mechanism="A reset ends a promotion that still runs, and releases what it writes and what it reads.",
        source=_VLLM + "pull/44541",
        file="connectors/pinning.py",
        old="            if job.publishes_in(tiers):\n                job.state = JobState.ABANDONED\n",
        new="""            if job.publishes_in(tiers):
                if job.direction == "PROMOTION" and job.state is JobState.LIVE:
                    del self.jobs[job.id]
                    self._disown(job)
                job.state = JobState.ABANDONED
""",
        discipline="pinning",
        variant="s1+second",
        property="no-use-after-free",
        commands=15,
        twin="reset-frees-what-a-promotion-writes",
    ),
    Bug(
        id="admission-gives-up-all-lookups",
        kind="scheduler",
        mechanism="Whoever is admitted ends every lookup: another request's loses what it counts on, and is not told.",
        source="https://github.com/LMCache/LMCache/pull/1075",
        file="scheduler.py",
        old="            matched = admitted.pins.host\n            admitted.pins = None\n",
        new="""            matched = admitted.pins.host
            admitted.pins = None
            for other in self.requests.values():
                if other.pins is not None and any(other.pins):
                    self._drop_pins(other)
""",
        discipline="pinning",
        variant="s1,prompts=a+a,lookups=yes,resets=0,aborts=no",
        property="pinned-is-not-evicted",
        commands=9,
        twin="admission-unpins-the-rest",
    ),
    Bug(
        id="next-step-forgets-who-left",
        kind="scheduler",
        mechanism="Who leaves is struck off all launched steps but the oldest, and the next one writes free blocks.",
        source=_VLLM + "pull/45357",
        file="scheduler.py",
        old="        for share in reversed(self._shares(request.id)):\n",
        new="""        for step in self.pipeline[1:]:
            step.shares.pop(request.id, None)
        for share in reversed(self._shares(request.id)):
""",
        discipline="pinning",
        variant="s1+depth",
        property="no-use-after-free",
        commands=4,
        twin="fence-off-by-one-step",
    ),
)
