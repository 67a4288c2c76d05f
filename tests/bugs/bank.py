"""All planted bugs, in the order of reports."""

from tests.bugs import (
    below_host,
    completions,
    connectors,
    deaths,
    events,
    failures,
    high_water,
    honest_books,
    orderings,
    pipelines,
    pools,
    reported,
    scheduling,
)
from tests.bugs.bug import Bug

BANK: tuple[Bug, ...] = (
    *pools.BUGS,
    *connectors.BUGS,
    *completions.BUGS,
    *high_water.BUGS,
    *scheduling.BUGS,
    *pipelines.BUGS,
    *orderings.BUGS,
    *events.BUGS,
    *failures.BUGS,
    *deaths.BUGS,
    *below_host.BUGS,
    *reported.BUGS,
    *honest_books.BUGS,
)

BY_ID = {bug.id: bug for bug in BANK}

if len(BY_ID) < len(BANK):
    raise ValueError("two bugs of the bank have one id")
