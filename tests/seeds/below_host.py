"""The way of a block down to the second host tier and back, in words: what the tests of that tier begin with."""

from kvmodel.scope import Scope

AB = Scope(
    device_blocks=2,
    host_blocks=1,
    workers=1,
    prompts=("ab", "ab"),
    resets=3,
    meanings=("invalidate", "evict"),
    tiers=("all", "device", "host"),
    duplicates=1,
    failures=1,
    double_frees=1,
    second_blocks=1,
)

ON_HOST = (
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 0"),
)
CASCADING = (*ON_HOST, "launch")
CASCADED = (*CASCADING, "run w0 cascade", "report w0 job 1")
REPLACED = (*CASCADED, "launch", "run w0 store", "report w0 job 2")
"""`ab` is on the host, `a` on the second tier alone."""
LEAVE_THE_DEVICE = "reset evict of the device tier"
BELOW = (*REPLACED, LEAVE_THE_DEVICE)
"""x waits, and would hit `a` below the host."""
PROMOTE = ("promote what x would hit", "launch")
PROMOTING = (*BELOW, *PROMOTE)
