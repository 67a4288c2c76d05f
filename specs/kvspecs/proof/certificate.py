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
        "compilation",
        "concretisation",
        "counterexample",
        "finite",
        "interpreter",
        "second_opinion",
        "witnesses",
    )
)
"""Modules of this package that have no part in an obligation or its proof."""


MAX_BYTES = 64 * 1024

_AGAIN = "write it again: kvproof prove --certify"


class BadCertificate(ValueError):
    """The kept file is none: one sentence says what is wrong and what to do."""


class Certificate(NamedTuple):
    """What was proved of one discipline, with which seeds of the solver: safety properties, theorems of liveness, and
    the obligations of both."""

    key: str
    safety: int
    theorems: int
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
    """The certificates by discipline; none if there is no file. Raises BadCertificate."""
    if not FILE.is_file():
        return {}
    try:
        with FILE.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadCertificate(f"has more than {MAX_BYTES:,} bytes")
        kept: object = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise BadCertificate(f"certificate {FILE} cannot be read ({error!s:.100}); {_AGAIN}") from None
    if not isinstance(kept, dict):
        raise BadCertificate(f"certificate {FILE} is no record of disciplines; {_AGAIN}")
    return {str(name): _certificate(name, fields) for name, fields in kept.items()}


def _certificate(name: object, fields: object) -> Certificate:
    match fields:
        case {
            "key": str(key),
            "safety": int(safety),
            "theorems": int(theorems),
            "obligations": int(obligations),
            "seeds": [*seeds],
        } if all(isinstance(seed, int) for seed in seeds):
            return Certificate(key, safety, theorems, obligations, tuple(seeds))
    raise BadCertificate(f"certificate {FILE} says of {name!r:.40} what is no certificate; {_AGAIN}")


def valid(discipline: Discipline) -> Certificate | None:
    """The certificate of a discipline, if it is about the specification as it is now. Raises BadCertificate."""
    found = read().get(discipline)
    return found if found is not None and found.key == key() else None


def write(certificates: Mapping[Discipline, Certificate]) -> None:
    """Keep these certificates, beside those of other disciplines."""
    try:
        others = read()
    except BadCertificate:  # it is replaced
        others = {}
    kept: dict[str, Certificate] = {**others, **{str(name): made for name, made in certificates.items()}}
    text = json.dumps({name: kept[name]._asdict() for name in sorted(kept)}, indent=2) + "\n"
    FILE.write_text(text, encoding="utf-8")
