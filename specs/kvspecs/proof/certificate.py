"""The certificate: which obligations were proved, by which solver, with which seeds. It is kept in the repository.

Each obligation is kept by the hash of what the solver was asked (`questions`): the formula that is denied, all that is
assumed, facts about finite sets included, the terms, the solver's version, and the code that asks. An obligation that
says something else, or is proved from something else, has another hash, and is proved again.

To make all these formulas takes some seconds. So there is a seal too: a hash of the modules from which they are made,
of the names of the properties, of the solver's version, and of all that the certificate says. While it fits, nothing
has changed, and none is made.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from kvmodel.contract import Discipline
from kvspecs.catalogue import SAFETY

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

SEEDS = (0, 1, 2, 3, 4)
"""Seeds of the solver with each of which an obligation is proved before it is kept."""

MAX_BYTES = 1024 * 1024

_AGAIN = "write it again: kvproof prove --certify"

Digests = Mapping[tuple[str, str], str]
"""By action and name of an obligation, the hash of what was asked."""


class BadCertificate(ValueError):
    """The kept file is none: one sentence says what is wrong and what to do."""


class NoSolver(RuntimeError):
    """There is no solver whose proofs a certificate could be about."""


class Certificate(NamedTuple):
    """What was proved of one discipline, with which seeds of the solver: safety properties, theorems of liveness, and
    the obligations of both. `asked` are those of them that need a solver; the others are left as they are by their
    action."""

    seeds: tuple[int, ...]
    safety: int
    theorems: int
    obligations: int
    asked: Digests
    seal: str = ""

    def sealed(self) -> "Certificate":
        """The same, about the modules as they are now. Raises NoSolver."""
        return self._replace(seal=_seal(self))

    @property
    def fits(self) -> bool:
        """Whether nothing has changed since it was sealed: neither what it is about, nor what it says. Raises
        NoSolver."""
        return self.seal == _seal(self)


def sources() -> str:
    """The hash of what obligations are made from and proved by. Raises NoSolver without z3."""
    try:
        version = metadata.version("z3-solver")
    except metadata.PackageNotFoundError:
        raise NoSolver("prove needs z3-solver, which is not installed; install kvproof with its dependencies") from None
    digest = hashlib.sha256("\0".join((version, *(each.name for each in SAFETY))).encode())
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name not in NOT_PROVED_BY:
            digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _seal(certificate: Certificate) -> str:
    said = json.dumps(_fields(certificate._replace(seal="")), sort_keys=True)
    return hashlib.sha256(f"{sources()}\0{said}".encode()).hexdigest()


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
            "seal": str(seal),
            "seeds": [*seeds],
            "safety": int(safety),
            "theorems": int(theorems),
            "obligations": int(obligations),
            "asked": dict(by_action),
        } if all(isinstance(seed, int) for seed in seeds) and all(map(_is_digests, by_action.values())):
            asked = {(action, one): digest for action, own in by_action.items() for one, digest in own.items()}
            return Certificate(tuple(seeds), safety, theorems, obligations, asked, seal)
    raise BadCertificate(f"certificate {FILE} says of {name!r:.40} what is no certificate; {_AGAIN}")


def _is_digests(own: object) -> bool:
    return isinstance(own, dict) and all(isinstance(digest, str) for digest in own.values())


def _fields(certificate: Certificate) -> dict[str, object]:
    """As it is written: obligations by action."""
    by_action: dict[str, dict[str, str]] = {}
    for (action, name), digest in sorted(certificate.asked.items()):
        by_action.setdefault(action, {})[name] = digest
    return {**certificate._asdict(), "asked": by_action}


def of(discipline: Discipline) -> Certificate | None:
    """What is kept of a discipline, if it was proved with all `SEEDS`; it need not fit. Raises BadCertificate."""
    found = read().get(discipline)
    return found if found is not None and found.seeds == SEEDS else None


def write(certificates: Mapping[Discipline, Certificate]) -> None:
    """Seal these certificates and keep them, beside those of other disciplines. Raises NoSolver."""
    try:
        others = read()
    except BadCertificate:  # it is replaced
        others = {}
    kept: dict[str, Certificate] = {**others, **{str(name): made.sealed() for name, made in certificates.items()}}
    text = json.dumps({name: _fields(kept[name]) for name in sorted(kept)}, indent=1) + "\n"
    unfinished = FILE.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(FILE)
