"""Each obligation can be broken, and is then named: an engine that does nothing, with books that are made to order."""

from collections.abc import Callable
from typing import cast

import pytest

from kvproof.obligations.books import Books, Pool, Unreadable
from kvproof.obligations.judge import Judged
from kvproof.obligations.runs import NOT_POSSIBLE, run_of_watched
from kvproof.obligations.workers import AGES, Share, Workers
from kvproof.targets.command import Command
from kvproof.targets.outcome import Answer, Outcome, Refused

SOUND = Books(Pool((1, 1, 0), (2,), frozenset((0,))), Pool((0, 0), (0, 1)), ((0, (1,)),), (0,), True)
"""Block 0 is a null block, request 0 has block 1, and block 2 is free."""

REST = Books(Pool((1, 0, 0), (2, 1), frozenset((0,))), Pool((0, 0), (0, 1)), (), (), False)


NOTHING = Answer()


class Idle:
    """An engine that does nothing. do: what a command does to it; told: its answer; shown: its books."""

    exact = False
    watched = True
    copies_own_blocks = True
    reading = "lenient"

    def __init__(
        self, shown: Books = SOUND, told: Outcome = NOTHING, do: Callable[[Workers], None] | None = None
    ) -> None:
        self.workers = Workers(2, device_blocks=3, host_blocks=2, tokens_per_block=1)
        self.shown, self.told, self.do = shown, told, do

    def enabled(self) -> list[Command]:
        return [SCHEDULE, RESET, INVALIDATE]

    def perform(self, command: Command) -> Outcome:
        if self.do is not None:
            self.do(self.workers)
        return self.told

    def books(self) -> Books:
        return self.shown

    def close(self) -> None: ...


SCHEDULE, DRAIN = Command("schedule"), Command("drain")
RESET, INVALIDATE = Command("reset", ("evict", "keep")), Command("reset", ("invalidate", "keep"))


def broken(target: Idle, command: Command = SCHEDULE) -> str | None:
    found = Judged(target).perform(command)[1]
    return None if found is None else found.property


def test_sound_books_are_no_violation() -> None:
    assert broken(Idle()) is None
    assert broken(Idle(REST), DRAIN) is None


@pytest.mark.parametrize(
    ("pool", "name"),
    [
        (Pool((1, 0, 0), (2,), frozenset((0,))), "free-means-unowned"),
        (Pool((1, 1, 0), (1, 2), frozenset((0,))), "free-means-unowned"),
        (Pool((1, 1, 0), (2, 2), frozenset((0,))), "no-double-free"),
        (Pool((1, -1, 0), (2, 1), frozenset((0,))), "no-double-free"),
        (Pool((1, 0, 0), (2, 1), frozenset((0,))), "owners-account-for-references"),
    ],
)
def test_books_that_do_not_add_up(pool: Pool, name: str) -> None:
    assert broken(Idle(SOUND._replace(device=pool))) == name


def test_a_compute_that_misreads() -> None:
    def misread(workers: Workers) -> None:
        workers.launch(0, (Share(0, (1,), 1, 1, [5]),))
        workers.run(0, "compute")

    assert broken(Idle(do=misread)) == "reads-what-was-written"


@pytest.mark.parametrize(("direction", "pair"), [("store", (2, 0)), ("load", (0, 2))])
def test_a_block_that_a_copy_uses_and_nobody_owns(direction: str, pair: tuple[int, int]) -> None:
    def copying(workers: Workers) -> None:
        workers.submit(0, 0, direction, [pair], waits_for_compute=True)  # type: ignore[arg-type]

    held = SOUND._replace(host=Pool((1, 0), (1,)))
    assert broken(Idle(held, do=copying)) == "no-use-after-free"
    fencing = Idle(held, do=copying)
    fencing.copies_own_blocks = False
    assert broken(fencing) is None


def test_what_can_be_hit_and_one_worker_does_not_hold() -> None:
    def written_once(workers: Workers) -> None:
        workers.ranks[0].host[1] = [5 * AGES]

    def written(workers: Workers) -> None:
        for rank in workers.ranks:
            rank.host[1] = [5 * AGES]

    served = SOUND._replace(published=((1, (5,)),))
    assert broken(Idle(served, do=written_once)) == "published-after-all-copied"
    assert broken(Idle(served, do=written)) is None
    assert broken(Idle(served, Answer(True), written), INVALIDATE) == "true-reset-serves-nothing-old"
    assert broken(Idle(served, Answer(True), written), RESET) is None


def test_a_reset_that_does_not_answer_true_wants_a_cause() -> None:
    for told in (Answer(False), Refused("RuntimeError: no")):
        assert broken(Idle(REST, told), RESET) == "false-reset-has-a-cause"
        assert broken(Idle(SOUND, told), RESET) is None
    lets_go = Judged(Idle(SOUND))
    assert lets_go.perform(SCHEDULE)[1] is None
    lets_go.target = Idle(REST, Answer(False))
    assert lets_go.perform(RESET)[1] is None
    assert lets_go.perform(RESET)[1] is not None
    assert broken(Idle(REST, Answer(True)), RESET) is None


def test_at_rest_nobody_waits_and_nothing_is_held() -> None:
    assert broken(Idle(REST._replace(unfinished=(0,))), DRAIN) == "work-remaining-keeps-the-engine-stepping"
    copied = Idle(REST._replace(host=Pool((0, 1), (0,))))
    copied.workers.submit(0, 3, "store", [(1, 1)], waits_for_compute=False)
    copied.workers.flush(0, {3})
    copied.copies_own_blocks = False
    assert broken(copied, DRAIN) == "work-remaining-keeps-the-engine-stepping"
    leaking = Pool((1, 1, 0), (2,), frozenset((0,)))
    assert broken(Idle(REST._replace(device=leaking)), DRAIN) == "owners-account-for-references"
    assert broken(Idle(REST._replace(host=Pool((0, 1), (0,)))), DRAIN) == "owners-account-for-references"


def test_an_engine_that_steps_for_ever() -> None:
    assert broken(Idle(REST._replace(busy=True)), DRAIN) == "everything-drains"
    assert broken(Idle(SOUND), DRAIN) == "every-request-can-finish"
    found = Judged(Idle(SOUND._replace(deferred=(0,)))).perform(DRAIN)[1]
    assert found is not None
    assert found.cause == ("hang", "request", "deferred")
    assert found.sentence.endswith("request x never finishes; the lookup of x is put off for ever.")


def test_a_crash_is_known_by_where_it_was_raised() -> None:
    def fails(workers: Workers) -> None:
        raise KeyError(3)

    found = Judged(Idle(do=fails)).perform(SCHEDULE)[1]
    assert found is not None
    assert found.cause == ("crash", "schedule", "KeyError", "fails")


def test_an_adapter_that_does_not_know_the_engine_is_no_violation() -> None:
    def missing(workers: Workers) -> None:
        raise Unreadable("BlockPool has no blocks")

    with pytest.raises(Unreadable, match="BlockPool has no blocks"):
        Judged(Idle(do=missing)).perform(SCHEDULE)


def test_a_run_leaves_out_what_cannot_be_given() -> None:
    run = run_of_watched(Idle(REST, Answer("so")), (Command("abort", (0,)), SCHEDULE, DRAIN), lambda: False)
    assert run == (3, (NOT_POSSIBLE, "so", "0 steps"), None)


class TestReadingOfAResetThatAnsweredFalse:
    """One request holds block 1, which was computed before the weights changed; the host serves what it always did."""

    def judged(self, reading: str, shown: Books) -> Judged:
        def written(workers: Workers) -> None:
            if not workers.ranks[0].ran:
                for worker, rank in enumerate(workers.ranks):
                    workers.launch(worker, (Share(0, (1,), 0, 1, [5]),))
                    workers.run(worker, "compute")
                    rank.host[1] = list(rank.device[1])

        target = Idle(shown, Answer(False), written)
        target.reading = reading
        return Judged(target)

    def test_lenient_promises_nothing(self) -> None:
        judged = self.judged("lenient", SOUND._replace(published=((1, (5,)),)))
        assert [judged.perform(command)[1] for command in (SCHEDULE, INVALIDATE, SCHEDULE)] == [None] * 3

    def test_strict_what_can_be_hit_is_gone(self) -> None:
        judged = self.judged("strict", SOUND._replace(published=((1, (5,)),)))
        assert judged.perform(SCHEDULE)[1] is None
        found = judged.perform(INVALIDATE)[1]
        assert found is not None
        assert found.property == "false-reset-serves-nothing-old"
        assert self.judged("strict", SOUND._replace(published=((1, (5,)),))).perform(RESET)[1] is None

    def test_strict_who_was_running_goes_on_and_others_read_nothing_of_it(self) -> None:
        for request, name in ((0, None), (1, "false-reset-serves-nothing-old")):
            judged = self.judged("strict", SOUND)
            assert [judged.perform(command)[1] for command in (SCHEDULE, INVALIDATE)] == [None, None]
            workers = judged.target.workers
            workers.launch(0, (Share(request, (1,), 1, 1, [5]),))
            workers.run(0, "compute")
            found = judged.perform(SCHEDULE)[1]
            assert (found and found.property) == name

    def test_strict_who_lost_its_blocks_begins_anew(self) -> None:
        judged = self.judged("strict", SOUND)
        assert [judged.perform(command)[1] for command in (SCHEDULE, INVALIDATE)] == [None, None]
        assert judged.target.workers.survivors == {0: 0}
        cast(Idle, judged.target).shown = REST
        judged.perform(SCHEDULE)
        assert judged.target.workers.survivors == {}

    def test_strict_what_a_true_one_had_promised_keeps_its_name(self) -> None:
        judged = self.judged("strict", SOUND)
        cast(Idle, judged.target).told = Answer(True)
        assert judged.perform(INVALIDATE)[1] is None
        workers = judged.target.workers
        workers.launch(0, (Share(1, (1,), 1, 1, [5]),))
        workers.run(0, "compute")
        found = judged.perform(SCHEDULE)[1]
        assert found is not None
        assert found.property == "true-reset-serves-nothing-old"
