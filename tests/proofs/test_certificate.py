"""The certificate fits the specification, and is worth nothing for another one."""

from pathlib import Path

import pytest

from kvmodel.contract import DISCIPLINES
from kvspecs.proof import certificate
from kvspecs.proof.actions import actions_of
from kvspecs.proof.initial import Start
from kvspecs.proof.parametric import Induction
from kvspecs.proof.ranking.solving import proofs


def test_it_is_of_this_specification() -> None:
    """If it is not: the specification or its prover has changed. `kvproof prove --certify` proves it and keeps it."""
    for discipline in DISCIPLINES:
        kept = certificate.valid(discipline)
        assert kept is not None, "run `kvproof prove --certify`"
        assert kept.seeds == (0, 1, 2)
        assert kept.safety == 20
        assert kept.theorems == 5
        safety = sum(len(Induction(discipline, action).obligations) for action in actions_of(discipline))
        safety += len(Start(discipline).obligations)
        assert kept.obligations == safety + sum(len(proof.clauses) for proof in proofs(discipline))


def test_it_does_not_fit_another_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in certificate.FOLDER.rglob("*.py"):
        copy = tmp_path / path.relative_to(certificate.FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(certificate, "FOLDER", tmp_path)
    assert certificate.valid("pinning") is not None
    changed = tmp_path / "actions" / "launching.py"
    changed.write_text(changed.read_text(encoding="utf-8").replace("p.until >= first", "True"), encoding="utf-8")
    assert certificate.valid("pinning") is None
