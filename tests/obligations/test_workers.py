"""The simulated workers: what waits for what, and what a compute finds in the blocks that it reads."""

from kvproof.obligations.workers import AGES, Misread, Share, Workers

PREFIXES = [1, 2, 3, 4]
"""Names of the prefixes of a request of four tokens, in two blocks."""


def workers(count: int = 1) -> Workers:
    return Workers(count, device_blocks=4, host_blocks=2, tokens_per_block=2)


def whole(table: tuple[int, ...] = (0, 1)) -> tuple[Share, ...]:
    return (Share(0, table, 0, 4, PREFIXES),)


def test_a_compute_writes_its_tokens_and_a_later_one_reads_them() -> None:
    ranks = workers()
    ranks.launch(0, (Share(0, (0, 1), 0, 3, PREFIXES),))
    ranks.launch(0, (Share(0, (0, 1), 3, 4, PREFIXES),))
    ranks.run(0, "compute")
    assert ranks.ranks[0].device == [[1 * AGES, 2 * AGES], [3 * AGES, 0], [0, 0], [0, 0]]
    ranks.run(0, "compute")
    assert ranks.ranks[0].device[1] == [3 * AGES, 4 * AGES]
    assert (ranks.misreads, ranks.runnable(0, "compute")) == ([], False)


def test_what_a_compute_reads_and_nobody_has_written() -> None:
    ranks = workers()
    ranks.launch(0, (Share(0, (0, 1), 2, 4, PREFIXES),))
    ranks.run(0, "compute")
    assert ranks.misreads == [Misread(0, 0, 0, 0, "unwritten")]


def test_what_a_compute_reads_and_somebody_else_has_written() -> None:
    ranks = workers(2)
    for worker in (0, 1):
        ranks.launch(worker, whole())
        ranks.run(worker, "compute")
    ranks.launch(1, (Share(1, (1, 2), 0, 4, [1, 7, 8, 9]),))
    ranks.run(1, "compute")
    ranks.launch(1, (Share(0, (0, 1, 3), 4, 5, [*PREFIXES, 5]),))
    ranks.run(1, "compute")
    assert ranks.misreads == [Misread(1, 0, 1, 2, "other")]


def test_what_was_computed_before_the_weights_changed() -> None:
    ranks = workers()
    ranks.launch(0, whole())
    ranks.run(0, "compute")
    ranks.age += 1
    ranks.launch(0, (Share(0, (0, 1), 3, 4, PREFIXES),))
    ranks.run(0, "compute")
    assert ranks.misreads == [Misread(0, 0, 0, 0, "old")]


def test_a_compute_that_was_launched_before_the_weights_changed_writes_what_is_old() -> None:
    ranks = workers()
    assert ranks.launch(0, whole()) == 1
    ranks.age += 1
    ranks.run(0, "compute")
    assert ranks.ranks[0].device[0] == [1 * AGES, 2 * AGES]


def test_who_ran_through_a_change_of_the_weights_reads_its_own_even_if_it_ends_before_the_compute_runs() -> None:
    ranks = workers()
    ranks.launch(0, (Share(0, (0,), 0, 1, PREFIXES),))
    ranks.run(0, "compute")
    ranks.weights_change(survivors=[0])
    ranks.launch(0, (Share(0, (0,), 1, 2, PREFIXES),))
    ranks.forget_survivors(holders=[])
    ranks.run(0, "compute")
    assert ranks.misreads == []
    assert ranks.ranks[0].device[0] == [1 * AGES, 2 * AGES]
    ranks.launch(0, (Share(0, (0,), 1, 2, PREFIXES),))
    ranks.run(0, "compute")
    assert ranks.misreads == [Misread(0, 0, 0, 0, "old")]


def test_a_copy_waits_for_the_compute_before_it_if_it_says_so() -> None:
    ranks = workers()
    ranks.launch(0, whole())
    ranks.submit(0, 7, "store", [(0, 1)], waits_for_compute=True)
    ranks.submit(0, 8, "load", [(0, 3)], waits_for_compute=False)
    assert [ranks.runnable(0, stream) for stream in ("compute", "store", "load")] == [True, False, True]
    ranks.run(0, "compute")
    assert ranks.runnable(0, "store")
    ranks.run(0, "store")
    assert ranks.ranks[0].host[1] == [1 * AGES, 2 * AGES]
    assert [copy.job for copy in ranks.collect(0)] == [7]
    assert (ranks.collect(0), ranks.jobs(), ranks.unfinished()) == ([], {8}, True)


def test_which_compute_a_copy_has_to_do_with() -> None:
    """x writes block 0 and then block 1, which needs block 0; y writes block 2."""
    ranks = workers()
    for share in (Share(0, (0,), 0, 2, [1, 2]), Share(0, (0, 1), 2, 3, [1, 2, 3]), Share(1, (2,), 0, 1, [9])):
        ranks.launch(0, (share,))
    assert [ranks.last_compute(0, {block}, that_writes=True) for block in range(4)] == [1, 2, 3, 0]
    assert [ranks.last_compute(0, {block}, that_writes=False) for block in range(4)] == [2, 2, 3, 0]
    ranks.run(0, "compute")
    assert [ranks.last_compute(0, {0}, that_writes=writes) for writes in (True, False)] == [0, 2]


def test_a_copy_takes_what_is_there_when_it_runs() -> None:
    ranks = workers()
    ranks.launch(0, whole())
    ranks.run(0, "compute")
    ranks.submit(0, 1, "store", [(0, 0)], waits_for_compute=True)
    ranks.launch(0, (Share(1, (0,), 0, 2, [8, 9]),))
    ranks.run(0, "compute")
    ranks.run(0, "store")
    assert ranks.ranks[0].host[0] == [8 * AGES, 9 * AGES]


def test_a_flush_runs_what_it_waits_for_and_all_before_it_in_its_stream() -> None:
    ranks = workers()
    ranks.launch(0, whole())
    for job, source in ((1, 0), (2, 1)):
        ranks.submit(0, job, "store", [(source, source)], waits_for_compute=True)
    ranks.submit(0, 3, "store", [(0, 1)], waits_for_compute=True)
    ranks.flush(0, {2, 99})
    assert [copy.job for copy in ranks.collect(0)] == [1, 2]
    assert ranks.ranks[0].host == [[1 * AGES, 2 * AGES], [3 * AGES, 4 * AGES]]
    assert ranks.jobs() == {3}


def test_a_poll_that_asks_for_one_copy() -> None:
    ranks = workers()
    first = ranks.submit(0, 1, "load", [(0, 0)], waits_for_compute=False)
    second = ranks.submit(0, 2, "load", [(0, 1)], waits_for_compute=False)
    ranks.run(0, "load")
    assert [ranks.collected(0, copy) for copy in (first, second)] == [True, False]
    assert (ranks.collect(0), ranks.jobs()) == ([], {2})
