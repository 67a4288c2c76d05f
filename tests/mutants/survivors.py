"""The survivors that are known: equivalent.toml says why nothing can tell them from the original, open.toml lists those
that wait for a test. A survivor in neither fails the run, and so does an entry that is no survivor any more."""

import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.judging import Judged

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
OPEN = Path(__file__).with_name("open.toml")

Key = tuple[str, str, str, str]
"""Module, function, and the lines that differ: as `Mutant.key`."""


class Known(NamedTuple):
    """equivalent: by key, why it is; waiting: what no test tells from the original, although one could."""

    equivalent: dict[Key, str]
    waiting: frozenset[Key]


class BadEntry(Exception):
    """An entry of either file that cannot be what it should be."""


def known(equivalent: Path = EQUIVALENT, waiting: Path = OPEN) -> Known:
    """Both files. Raises BadEntry."""
    explained: dict[Key, str] = {}
    for entry in tomllib.loads(equivalent.read_text()).get("mutant", []):
        key, why = _key(entry, equivalent), entry.get("why", "")
        if not why.endswith("."):
            raise BadEntry(f"{equivalent.name}: {key[1]} of {key[0]} needs a sentence in `why`, with a full stop")
        if key in explained:
            raise BadEntry(f"{equivalent.name}: {key[1]} of {key[0]} has an entry twice: {key[3]!r}")
        explained[key] = why
    others = frozenset(_key(entry, waiting) for entry in tomllib.loads(waiting.read_text()).get("mutant", []))
    for key in others & explained.keys():
        raise BadEntry(f"{waiting.name}: {key[1]} of {key[0]} is in {equivalent.name} too: {key[3]!r}")
    return Known(explained, others)


def _key(entry: dict[str, str], file: Path) -> Key:
    try:
        return entry["module"], entry["function"], entry["was"], entry["now"]
    except KeyError as missing:
        raise BadEntry(f"{file.name}: an entry lacks {missing}: {entry}") from None


class Account(NamedTuple):
    """unknown: survivors that neither file has; stale: entries, of modules that were mutated, that are no survivors."""

    unknown: tuple[Judged, ...]
    stale: tuple[Key, ...]


def account(judged: Sequence[Judged], listed: Known) -> Account:
    entries = [*listed.equivalent, *listed.waiting]
    survivors = {each.mutant.key for each in judged if not each.noticed}
    modules = {each.mutant.module for each in judged}
    unknown = tuple(each for each in judged if not each.noticed and each.mutant.key not in set(entries))
    stale = tuple(key for key in entries if key[0] in modules and key not in survivors)
    return Account(unknown, stale)


class Score(NamedTuple):
    """Counts of mutants. total: all; equivalent: survivors that are explained; noticed: killed, or out of time."""

    module: str
    total: int
    noticed: int
    equivalent: int

    @property
    def before(self) -> float:
        """Per cent of all mutants that were noticed."""
        return 100 * self.noticed / self.total

    @property
    def after(self) -> float:
        """Per cent of those that can be noticed."""
        return 100 * self.noticed / (self.total - self.equivalent) if self.total > self.equivalent else 100.0


def scores(judged: Sequence[Judged], listed: Known) -> list[Score]:
    """One for each module, then one of all of them."""
    modules = list(dict.fromkeys(each.mutant.module for each in judged))
    rows = [(module, [each for each in judged if each.mutant.module == module]) for module in modules]
    return [_score(name, members, listed) for name, members in [*rows, ("all", list(judged))]]


def _score(name: str, judged: Sequence[Judged], listed: Known) -> Score:
    noticed = sum(each.noticed for each in judged)
    explained = sum(not each.noticed and each.mutant.key in listed.equivalent for each in judged)
    return Score(name, len(judged), noticed, explained)


def as_toml(keys: Iterable[Key]) -> str:
    """Entries of open.toml, in order."""
    names = ("module", "function", "was", "now")
    entries = []
    for key in sorted(set(keys)):
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in zip(names, key, strict=True)]
        entries.append("[[mutant]]\n" + "".join(lines))
    return "\n".join(entries)
