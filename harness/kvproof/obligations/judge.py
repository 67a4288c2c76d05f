"""Which obligation a watched target has broken, if any, after a command."""

from typing import Any, cast

from kvmodel.actions import Reset
from kvproof.obligations.accounts import held, miscounted, mispublished, overdrawn, unowned
from kvproof.obligations.books import Books, Pool
from kvproof.obligations.watched import Watched
from kvproof.obligations.workers import AGES, Misread
from kvproof.targets import journal
from kvproof.targets.command import Command, request_name
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed
from kvproof.targets.guarded import carried_out, guarded
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused

ROUNDS_WITHOUT_END = 100
"""How often the engine steps, with every copy run and reported before, and no request ends, until it is said to hang: a
request of our scopes needs some ten steps."""

_MISREADS = {
    "unwritten": "which nobody has written",
    "other": "which holds something else",
    "old": "which was computed before a reset",
}


class Judged:
    """A watched target, and what is wrong with it so far.

    held  whether somebody held a block before the command: a reset that lets go of all may have been refused by it
    counted  the books as they were last found to add up
    strict  whether a reset that answered False is read strictly
    promised  the age of the weights since the last reset that answered True: older contents are gone, by its word
    performed  commands given so far, those of drains one by one (count)
    """

    def __init__(self, target: Watched) -> None:
        self.target = target
        self.performed = 0
        self.held = False
        self.counted: Books | None = None
        self.strict = getattr(target, "reading", "lenient") == "strict"
        self.promised = 0

    def perform(self, command: Command) -> tuple[Outcome, Divergence | None]:
        """Give one command, and judge what came of it. A drain is many steps; the first that breaks something ends it.
        Raises Unreadable where the adapter does not know this engine."""
        if command.verb == "drain":
            with journal.as_one(command):
                return self._drained(command)
        self.performed += 1
        outcome = carried_out(cast(Any, self.target), command)
        return outcome, self.broken(command, outcome)

    def broken(self, command: Command, outcome: Outcome) -> Divergence | None:
        """What a command that came to this outcome has broken."""
        if isinstance(outcome, Crashed):
            return _crashed(command, outcome)
        if self.target.workers.misreads:
            return _misread(self.target.workers.misreads[0], self.promised)
        books = guarded(self.target.books)
        if isinstance(books, Crashed):
            return _crashed(command, books)
        assert isinstance(books, Books)
        self.target.workers.forget_survivors(request for request, _ in books.tables)
        found = self._miscounted(books) or self._unowned(books) or self._mispublished(books)
        if found is None and command.verb == "reset":
            found = self._reset(command, outcome, books)
        self.held = bool(held(books))
        return found

    def _miscounted(self, books: Books) -> Divergence | None:
        """Many commands leave the books as they were."""
        if books == self.counted:
            return None
        found = _miscounted(books)
        if found is None:
            self.counted = books
        return found

    def _reset(self, command: Command, outcome: Answer | Refused, books: Books) -> Divergence | None:
        """True ages what every block holds, if the weights changed; False, and a refusal, want a cause."""
        workers = self.target.workers
        whole = "device" not in command.args
        if isinstance(outcome, Answer) and outcome.value is True:
            if whole and command.args[0] == "invalidate":
                workers.weights_change()
                self.promised = workers.age
                return self._mispublished(books)
            return None
        if self.strict and isinstance(outcome, Answer) and whole and command.args[0] == "invalidate":
            workers.weights_change(survivors=[request for request, _ in books.tables])
            found = self._mispublished(books)
            if found is not None:
                return found
        if self.held or workers.unfinished() or held(books):
            return None
        return _divergence(
            "false-reset-has-a-cause",
            "The reset did not answer True, although nobody holds a block and no copy is under way.",
            "answered True",
            "answered False" if isinstance(outcome, Answer) else f"refused: {outcome.reason}",
            ("reset", "False without a cause"),
        )

    def _unowned(self, books: Books) -> Divergence | None:
        found = unowned(self.target.workers, books) if self.target.copies_own_blocks else None
        if found is None:
            return None
        tier, block, copy = found
        return _divergence(
            "no-use-after-free",
            f"{tier.capitalize()} block {block} has no owner while a {copy.direction} uses it.",
            f"{tier[0]}{block} is kept until job {copy.job} is reported",
            f"{tier[0]}{block} references 0",
            ("unowned", tier, copy.direction),
        )

    def _mispublished(self, books: Books) -> Divergence | None:
        found = mispublished(self.target.workers, books)
        if found is None:
            return None
        block, worker, contents, aged = found
        name = _old(contents[0] % AGES, self.promised) if aged else "published-after-all-copied"
        what = "what was computed before a reset" if aged else "something else"
        return _divergence(
            name,
            f"Host block {block} can be hit, and holds {what} on worker {worker}.",
            f"h{block} holds what its key says on every worker",
            f"h{block} does not on w{worker}",
            ("published", "old" if aged else "other"),
        )

    # Draining: everything that needs nobody to ask for it, until nothing is left.

    def _drained(self, command: Command) -> tuple[Outcome, Divergence | None]:
        since, waiting, steps = 0, -1, 0
        while True:
            for inner in self._running():
                outcome, found = self.perform(inner)
                if found is not None:
                    return outcome, _during(found)
            books = guarded(self.target.books)
            if isinstance(books, Crashed):
                return books, _crashed(command, books)
            assert isinstance(books, Books)
            enabled = {offered.verb: offered for offered in self.target.enabled()}
            step = enabled.get("handle_output") or enabled.get("schedule")
            if step is None or (step.verb == "schedule" and not books.busy):
                return Answer(f"{steps} steps"), self._at_rest(books)
            since = 0 if len(books.unfinished) != waiting else since + 1
            waiting = len(books.unfinished)
            if since > 2 * ROUNDS_WITHOUT_END:
                return Answer(f"{steps} steps"), _hung(books)
            outcome, found = self.perform(step)
            steps += step.verb == "schedule"
            if found is not None:
                return outcome, _during(found)

    def _running(self) -> list[Command]:
        """Every operation that can run, again and again, until none can."""
        workers = self.target.workers
        return [
            Command("run", (worker, stream))
            for worker, rank in enumerate(workers.ranks)
            for stream, operations in (("compute", rank.compute), ("store", rank.store), ("load", rank.load))
            for _ in operations
        ]

    def _at_rest(self, books: Books) -> Divergence | None:
        """The engine has come to rest: nobody may be waiting, and nothing may be held."""
        if books.unfinished:
            names = ", ".join(map(request_name, books.unfinished))
            return _divergence(
                "work-remaining-keeps-the-engine-stepping",
                f"The engine has nothing more to do, and request {names} is not finished.",
                "goes on stepping",
                "at rest",
                ("rest", "unfinished"),
            )
        for tier, block, count in held(books):
            if self.target.workers.unfinished():
                return _divergence(
                    "work-remaining-keeps-the-engine-stepping",
                    f"The engine has nothing more to do, and {tier} block {block} is held for a copy that it has not "
                    "heard of.",
                    "goes on stepping until every copy is reported",
                    f"at rest, {tier[0]}{block} references {count}",
                    ("rest", "unreported"),
                )
            return _divergence(
                "owners-account-for-references",
                f"{tier.capitalize()} block {block} counts {count} references when everything has ended.",
                f"{tier[0]}{block} references 0",
                f"{tier[0]}{block} references {count}",
                ("rest", tier, "leaked"),
            )
        return None


def _crashed(command: Command, outcome: Crashed) -> Divergence:
    """The same crash elsewhere is another one: the function that raised it is part of its cause."""
    found = crashed(command, outcome)
    return found._replace(cause=(*found.cause, outcome.function))


def _during(found: Divergence) -> Divergence:
    return found._replace(sentence=f"While it drained: {found.sentence}")


def _hung(books: Books) -> Divergence:
    if books.unfinished:
        names, deferred = (", ".join(map(request_name, those)) for those in (books.unfinished, books.deferred))
        return _divergence(
            "every-request-can-finish",
            f"The engine goes on stepping with every copy run and reported, and request {names} never finishes"
            + (f"; the lookup of {deferred} is put off for ever." if deferred else "."),
            "every request finishes",
            f"{names} unfinished after {ROUNDS_WITHOUT_END} more steps",
            ("hang", "request", *(["deferred"] if deferred else [])),
        )
    return _divergence(
        "everything-drains",
        "The engine goes on stepping for ever, with no request and every copy run and reported.",
        "comes to rest",
        f"busy after {ROUNDS_WITHOUT_END} more steps",
        ("hang", "engine"),
    )


def _old(age: int, promised: int) -> str:
    """The property that is broken by what was computed by weights of this age."""
    return "true-reset-serves-nothing-old" if age < promised else "false-reset-serves-nothing-old"


def _misread(misread: Misread, promised: int) -> Divergence:
    name = _old(misread.age, promised) if misread.what == "old" else "reads-what-was-written"
    what = _MISREADS[misread.what]
    who = request_name(misread.request)
    where = f"token {misread.token} in device block {misread.block} of worker {misread.worker}"
    return _divergence(
        name,
        f"The compute of request {who} read {where}, {what}.",
        f"{who} reads what was computed for it",
        f"d{misread.block} of w{misread.worker}: {misread.what}",
        ("misread", misread.what),
    )


def _miscounted(books: Books) -> Divergence | None:
    found = _pool("device", books.device) or _pool("host", books.host)
    over = None if found is not None else overdrawn(books)
    if over is None:
        return found
    block, references, tables = over
    return _divergence(
        "owners-account-for-references",
        f"Device block {block} counts {references} references and is in the tables of {tables}.",
        f"d{block} references at least {tables}",
        f"d{block} references {references}",
        ("owners", "device"),
    )


def _pool(tier: str, pool: Pool | None) -> Divergence | None:
    found = miscounted(pool)
    if found is None:
        return None
    block, references, times = found
    return _divergence(
        "no-double-free" if times > 1 or references < 0 else "free-means-unowned",
        f"{tier.capitalize()} block {block} counts {references} references and stands {times} times in the free queue.",
        f"{tier[0]}{block} is free if and only if it has no owner, once",
        f"{tier[0]}{block} references {references}, free {times} times",
        ("pool", tier),
    )


def _divergence(name: str, sentence: str, contract: str, target: str, cause: tuple[str, ...]) -> Divergence:
    rule = Reset if cause[0] == "reset" else None
    return Divergence(name, sentence, (contract,), (target,), rule, cause)
