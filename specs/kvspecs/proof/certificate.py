"""The certificate: that this specification was proved, by this solver. It is kept in the repository.

Its key is a hash of every module from which obligations are made and by which they are proved, and of the solver's
version. When any of them changes the key does not fit, and the certificate says nothing: everything is proved afresh.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from kvmodel.contract import Discipline

FOLDER = Path(__file__).parent
FILE = FOLDER / "certificate.json"

NOT_PROVED_BY = frozenset(
    f"{name}.py"
    for name in (
        "abstraction",
        "bounded",
        "certificate",
        "concretisation",
        "counterexample",
        "finite",
        "interpreter",
        "ranking",
        "witnesses",
    )
)
"""Modules of this package that have no part in an obligation or its proof."""


class Certificate(NamedTuple):
    """What was proved of one discipline, with which seeds of the solver."""

    key: str
    safety: int
    obligations: int
    seeds: tuple[int, ...]


def key() -> str:
    """The hash of what the proofs are made from. Raises PackageNotFoundError without z3."""
    digest = hashlib.sha256(metadata.version("z3-solver").encode())
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name not in NOT_PROVED_BY:
            digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def read() -> Mapping[str, Certificate]:
    """The certificates by discipline; none if there is no file."""
    if not FILE.is_file():
        return {}
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Certificate(c["key"], c["safety"], c["obligations"], tuple(c["seeds"])) for name, c in kept.items()}


def valid(discipline: Discipline) -> Certificate | None:
    """The certificate of a discipline, if it is about the specification as it is now."""
    found = read().get(discipline)
    return found if found is not None and found.key == key() else None


def write(certificates: Mapping[Discipline, Certificate]) -> None:
    """Keep these certificates, beside those of other disciplines."""
    kept: dict[str, Certificate] = {**read(), **{str(name): made for name, made in certificates.items()}}
    text = json.dumps({name: kept[name]._asdict() for name in sorted(kept)}, indent=2) + "\n"
    FILE.write_text(text, encoding="utf-8")
