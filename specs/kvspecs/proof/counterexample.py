"""A counterexample to induction in the field's words: a state in which the invariants hold, and what an action makes of
it. Which request, which block, which job; before and after."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Protocol

from kvspecs.proof.abstraction import MATTERS
from kvspecs.proof.action import Action
from kvspecs.proof.logic import Term
from kvspecs.proof.obligations import Obligation
from kvspecs.proof.state import GHOSTS, MEANINGS, TABLES, State, Vocabulary

_LETTERS: Mapping[str, str] = {"D": "d", "H": "h", "R": "request ", "W": "w", "J": "job ", "S": "step ", "K": "key "}


class Telling:
    """Names for the elements of a model, and the lines that tell it. `terms` are the elements to be told of."""

    def __init__(self, model: Any, terms: Mapping[str, Sequence[Term]], w: Vocabulary) -> None:
        self.model = model
        self.w = w
        self.none = self._value(w.none)
        self.elements: dict[str, dict[str, Term]] = {}
        for sort, found in terms.items():
            values = {self._value(term): term for term in found}
            self.elements[sort] = dict(sorted(values.items(), key=_order))
        self.names = {
            (sort, value): f"{_LETTERS[sort]}{value if sort in 'JS' else index}"
            for sort, values in self.elements.items()
            for index, value in enumerate(values)
        }
        self._keys: dict[str, str] = {}

    def _value(self, term: Term) -> str:
        if isinstance(term, bool | int):
            return str(term)
        return str(self.model.eval(term, model_completion=True))

    def name(self, sort: str, term: Term) -> str:
        """What an element is called."""
        value = self._value(term)
        if sort == "K":
            if value == self.none:
                return "no key"
            return f'"{self._keys.setdefault(value, chr(ord("a") + len(self._keys) % 26))}"'
        return self.names.get((sort, value), value) if sort in _LETTERS else value

    def lines(
        self,
        obligation: Obligation,
        action: Action | None,
        values: Mapping[str, Any],
        before: State,
        after: State,
        elements: Sequence[Term],
    ) -> Iterator[str]:
        """The whole telling."""
        denied = ", ".join(self.name(sort, term) for sort, term in zip(obligation.sorts, elements, strict=True))
        yield f"{obligation} fails{f' for {denied}' if denied else ''}"
        if action is not None:
            given = [
                f"{name} {self.name(signature, values[name])}"
                for name, signature in action.parameters.items()
                if ">" not in signature
            ]
            chosen = f" with {', '.join(given)}" if given else ""
            yield f"  {action.name}{chosen}"
        for name, (arguments, value) in TABLES.items():
            if name in GHOSTS:
                continue
            entries = list(self._entries(name, arguments, value, before, after))
            if entries:
                yield f"  {name.replace('_', ' ')} ({MEANINGS[name]})"
                yield from (f"    {entry}" for entry in entries)

    def _entries(self, name: str, arguments: str, value: str, before: State, after: State) -> Iterator[str]:
        """Entries that say something: what changes, and what is neither False nor none; of what means anything."""
        for terms in product(*(self.elements.get(sort, {}).values() for sort in arguments)):
            was, is_ = (self.name(value, getattr(state, name)(*terms)) for state in (before, after))
            if was == is_ and was in ("False", "no key", "ABSENT", "GONE"):
                continue
            if not any(self._matters(name, state, terms) for state in (before, after)):
                continue
            at = " ".join(self.name(sort, term) for sort, term in zip(arguments, terms, strict=True))
            told = was if was == is_ else f"{was} -> {is_}"
            yield f"{at}: {told}" if at else told

    def _matters(self, name: str, state: State, terms: Sequence[Term]) -> bool:
        """Whether the entry means anything: which pairs a job has is of no interest once it is gone."""
        matters = MATTERS.get(name)
        universe = {sort: tuple(values.values()) for sort, values in self.elements.items()}
        return matters is None or self._value(matters(self.w, state, universe, *terms)) == "True"


def _order(entry: tuple[str, Term]) -> tuple[int, str]:
    value = entry[0]
    return (int(value) if value.lstrip("-").isdigit() else 0, value)


class Proved(Protocol):
    """Who has found a counterexample: `parametric.Induction`, or `ranking.solving.Proof`."""

    @property
    def action(self) -> Action | None: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def before(self) -> State: ...
    @property
    def after(self) -> State: ...
    @property
    def w(self) -> Vocabulary: ...
    def named(self, obligation: Obligation) -> list[Term]:
        """The elements for which the obligation is denied."""
        ...

    def looked_at(self, obligation: Obligation) -> Mapping[str, Sequence[Term]]:
        """The elements that it has looked at, by sort."""
        ...


def told(model: Any, proof: Proved, obligation: Obligation) -> list[str]:
    """The lines of a counterexample that was found for elements of any number."""
    terms = {**proof.looked_at(obligation)}
    terms.pop("K")
    telling = Telling(model, terms, proof.w)
    return list(
        telling.lines(obligation, proof.action, proof.values, proof.before, proof.after, proof.named(obligation))
    )
