"""Bugs of an engine that a dead worker has shut down."""

from tests.bugs.bug import Bug

BUGS = (
    Bug(
        id="shutdown-keeps-what-steps-hold",
        kind="scheduler",
        mechanism="The blocks that a step keeps for a request that left it stay referenced when the engine shuts down.",
        source="planted",
        file="scheduler.py",
        old="        for blocks in left:\n",
        new="        for blocks in left[1:]:\n",
        discipline="pinning",
        variant="s1+declared",
        property="owners-account-for-references",
        commands=5,
    ),
    Bug(
        id="shutdown-leaves-the-cache",
        kind="connector",
        mechanism="What the dead worker has a part of can still be hit after it was declared dead.",
        source="planted",
        file="connectors/transfers.py",
        old='        self.queued.clear()\n        self._clear_caches(self._device(), "all")\n',
        new="        self.queued.clear()\n",
        discipline="pinning",
        variant="s1+declared",
        property="published-after-all-copied",
        commands=6,
    ),
    Bug(
        id="shutdown-wants-what-still-runs",
        kind="connector",
        mechanism="Transfers that still run on living workers keep their blocks, and publish, when it shuts down.",
        source="planted",
        file="connectors/transfers.py",
        old="""            elif job.state is not JobState.FORGOTTEN:
                self._forget(job)
        self.queued""",
        new="        self.queued",
        discipline="pinning",
        variant="s2+declared",
        property="owners-account-for-references",
        commands=4,
    ),
)
