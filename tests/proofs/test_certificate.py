"""The certificate fits the specification; what has changed since is proved again, and nothing else is."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.proofs.bugs import Alter, changing, without

import kvspecs
from kvmodel.contract import DISCIPLINES, Contract
from kvproof.engines import prove
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvproof.verdict import Verdict
from kvproof.worker import outcome
from kvspecs.proof import certificate, questions
from kvspecs.proof.actions import action_names, actions_of
from kvspecs.proof.instances import Pool
from kvspecs.proof.obligations import INITIAL, properties
from kvspecs.proof.parametric import Induction
from kvspecs.proof.proof import Selection
from kvspecs.proof.questions import Provable, Questions
from kvspecs.proof.ranking.solving import ONE_STATE, Proof, proofs
from kvspecs.proof.ranking.theorems import NAMES as THEOREMS

pytestmark = pytest.mark.proofs

FEW = ("ReportPart", "Wake", "FreeTwice")
"""Actions whose formulas are soon made."""

NOTES = """
import json, sys
from kvmodel.contract import Contract
from kvproof.engines import prove
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvspecs.proof import certificate, questions

asked = {}

def noting(*seeds):
    answer = REAL(*seeds)
    def ask(these):
        for goal in these.goals:
            asked.setdefault(goal.obligation.action, []).append(goal.obligation.name)
        return answer(these)
    return ask

REAL, questions.asking_z3 = questions.asking_z3, noting
options = {"certified": True, "actions": tuple(sys.argv[1:])}
job = Job("prove", "", "pinning", "all sizes", SCOPES["s1"], Contract("pinning"), options=options)
result = prove.run(job, lambda text: None, lambda: False)
kept = certificate.of("pinning")
print(json.dumps([result.verdict, result.counts, asked, kept is not None and kept.fits]))
"""
"""Proves these actions as `kvproof check` does, and tells who was asked what."""


class Going:
    """A flag that tells nobody to stop."""

    value = 0


def check(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(certificate, "FILE", kept)
    job = Job("prove", "", "pinning", "all sizes", SCOPES["s1"], Contract("pinning"), options={"certified": True})
    return outcome(job, lambda text: None, Going())


def test_it_is_of_this_specification() -> None:
    """If it is not: the specification or its prover has changed. `kvproof prove --certify` proves it and keeps it."""
    for discipline in DISCIPLINES:
        kept = certificate.of(discipline)
        assert kept is not None
        assert kept.fits, "run `kvproof prove --certify`"
        assert kept.seeds == (0, 1, 2, 3, 4)
        assert kept.safety == len(properties()) == 20
        assert kept.theorems == len(THEOREMS) == 5
        assert {action for action, _ in kept.asked} == {INITIAL, ONE_STATE, *action_names(discipline)}
        assert len(set(kept.asked.values())) > 1_600  # a few questions are the same for two actions


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_hash_of_an_obligation_is_that_of_every_other_run(discipline) -> None:
    kept = certificate.of(discipline)
    assert kept is not None
    for action in actions_of(discipline):
        if action.name in ("HandleOutput", *FEW):
            induction = Induction(discipline, action)
            for one in induction.questions(lambda obligation: True):
                for goal, digest in zip(one.goals, one.digests(), strict=True):
                    assert kept.asked[action.name, goal.obligation.name] == digest


def test_an_unchanged_specification_is_verified_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is an obligation made, which takes some seconds for all of them."""
    monkeypatch.setattr(questions, "asking_z3", None)
    monkeypatch.setattr(prove, "_proofs", None)
    result = check(certificate.FILE, monkeypatch)
    assert (result.verdict, result.detail) == (Verdict.PROVED, "certified")
    assert result.counts["safety"] == 20
    assert result.counts["certified"] == result.counts["obligations"]


Change = Callable[[Path], None]


def line(file: str, right: str, wrong: str) -> Change:
    """A line of the specification, or of its prover, is another one."""

    def change(proof: Path) -> None:
        text = (proof / file).read_text(encoding="utf-8")
        assert text.count(right) == 1
        (proof / file).write_text(text.replace(right, wrong), encoding="utf-8")

    return change


def entry(change: Callable[[dict[str, Any]], object]) -> Change:
    """What the certificate says of pinning is changed by hand."""

    def changed(proof: Path) -> None:
        kept = json.loads((proof / "certificate.json").read_bytes())
        change(kept["pinning"])
        (proof / "certificate.json").write_text(json.dumps(kept), encoding="utf-8")

    return changed


def proved_again(folder: Path, change: Change, *actions: str) -> Any:
    """In a changed copy of the specification: the verdict, the counts, what was asked, and whether the seal fits."""
    specs = Path(kvspecs.__file__).parent
    shutil.copytree(specs, folder / "kvspecs", ignore=shutil.ignore_patterns("__pycache__"))
    change(folder / "kvspecs" / "proof")
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-c", NOTES, *actions]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_a_changed_action_is_proved_again_and_no_other(tmp_path: Path) -> None:
    right = "all_of(differ(p.other, p.v), no(s.reported(p.j, p.other)))"
    wrong = "all_of(no(s.reported(p.j, p.other)), differ(p.other, p.v))"
    verdict, counts, asked, fits = proved_again(tmp_path, line("actions/completions.py", right, wrong), *FEW)
    assert verdict == "PROVED"
    assert not fits
    assert set(asked) == {"ReportPart"}
    assert counts["afresh"] == len(asked["ReportPart"])
    assert counts["certified"] > 20


def test_a_changed_comment_changes_no_obligation(tmp_path: Path) -> None:
    right = '"""`other` has yet to report it."""'
    verdict, counts, asked, fits = proved_again(tmp_path, line("actions/completions.py", right, '"""Not all."""'), *FEW)
    assert (verdict, asked, counts["afresh"], fits) == ("PROVED", {}, 0, False)


def test_it_is_not_trusted_over_an_obligation_that_has_become_wrong(tmp_path: Path) -> None:
    right, wrong = "pick(x == r, w.running, s.phase(x))", "pick(x == r, w.done, s.phase(x))"
    verdict, _, asked, _ = proved_again(tmp_path, line("actions/requests.py", right, wrong), *FEW)
    assert verdict == "COUNTEREXAMPLE_TO_INDUCTION"
    assert set(asked) == {"Wake"}


def test_a_fact_about_sets_that_is_assumed_in_all_of_them_is_part_of_each(tmp_path: Path) -> None:
    change = line("counting.py", "return implies(member(element), n >= 1)", "return implies(member(element), n > 0)")
    verdict, counts, asked, _ = proved_again(tmp_path, change, *FEW)
    assert (verdict, set(asked)) == ("PROVED", set(FEW))
    assert counts["afresh"] > 20
    assert counts["certified"] > 50  # the lemmas of liveness, which do not count


def test_the_values_of_an_enumeration_are_part_of_each(tmp_path: Path) -> None:
    """A formula that does not name the new view says something else all the same."""

    def change(proof: Path) -> None:
        line("symbols.py", '"FORGOTTEN", "GONE")', '"FORGOTTEN", "GONE", "LATE")')(proof)
        line("symbols.py", "forgotten, gone = VIEWS", "forgotten, gone, _ = VIEWS")(proof)

    _, counts, _, _ = proved_again(tmp_path, change, *FEW)
    assert counts["certified"] == 0
    assert counts["afresh"] > 50


def test_entries_that_were_edited_or_are_missing_are_proved_again(tmp_path: Path) -> None:
    def change(kept: dict[str, Any]) -> None:
        kept["safety"] = 19
        kept["asked"]["Wake"]["table-phase"] = "0" * 32
        del kept["asked"]["FreeTwice"]["refused-free"]

    verdict, counts, asked, fits = proved_again(tmp_path, entry(change), *FEW)
    assert (verdict, fits) == ("PROVED", False)
    assert asked == {"Wake": ["table-phase"], "FreeTwice": ["refused-free"]}
    assert counts["afresh"] == 2


def test_a_count_that_was_edited_breaks_the_seal() -> None:
    kept = certificate.of("fencing")
    assert kept is not None
    assert kept.fits
    assert not kept._replace(safety=19).fits


def test_another_property_in_the_catalogue_breaks_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = certificate.of("fencing")
    assert kept is not None
    monkeypatch.setattr(certificate, "SAFETY", certificate.SAFETY[:-1])
    assert not kept.fits


def digests(provable: Provable, change: Callable[[Questions], Questions] = lambda these: these) -> dict[str, str]:
    """By name of the obligation, the hash of what would be asked."""
    return {
        goal.obligation.name: digest
        for these in map(change, provable.questions(lambda obligation: True))
        for goal, digest in zip(these.goals, these.digests(), strict=True)
    }


def wake(alter: Alter | None = None) -> Induction:
    return Induction("pinning", next(action for action in actions_of("pinning") if action.name == "Wake"), alter)


def without_one_term(these: Questions) -> Questions:
    pool = Pool()
    pool.include(these.pool)
    sort = next(sort for sort, terms in pool.terms.items() if terms)
    pool.terms[sort].pop()
    return these._replace(pool=pool)


ASKED_ALIKE: dict[str, Callable[[Questions], Questions]] = {
    "an invariant is not assumed": lambda these: these._replace(assumed=these.assumed[1:]),
    "a fact about sets is not assumed": lambda these: these._replace(assumed=these.assumed[:-1]),
    "a term less is looked at": without_one_term,
}


@pytest.mark.parametrize("change", ASKED_ALIKE.values(), ids=ASKED_ALIKE)
def test_the_hash_is_of_all_that_is_assumed(change: Callable[[Questions], Questions]) -> None:
    before, after = digests(wake()), digests(wake(), change)
    assert before.keys() == after.keys()
    assert not before.items() & after.items()


def test_a_guard_is_part_of_every_obligation_of_its_action() -> None:
    """Of its lemmas of liveness too."""
    before, after = digests(wake()), digests(wake(without("awaits-nothing")))
    assert before.keys() == after.keys()
    assert not before.items() & after.items()
    of_wake = [proof for proof in proofs("pinning", Selection(actions=("Wake",))) if proof.action is not None]
    assert len(of_wake) > 5
    for proof in of_wake:
        altered = Proof("pinning", proof.lemma, proof.action, without("awaits-nothing"))
        assert digests(proof)
        assert not digests(proof).items() & digests(altered).items()


def test_an_update_is_part_of_the_obligations_that_speak_of_its_table() -> None:
    before = digests(wake())
    after = digests(wake(changing(device_refs=lambda w, s, p, t: lambda d: s.device_refs(d) + 1)))
    changed = {name for name in after if before.get(name) != after[name]}
    assert {"device-owned", "device-queue", "device-unowned"} <= changed
    assert "awaited-job" not in changed


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("TIMEOUT_MS = 60_000", "TIMEOUT_MS = 90_000"), ("z3.SimpleSolver()", 'z3.Tactic("smt").solver()')],
    ids=["timeout", "tactic"],
)
def test_how_the_solver_is_asked_is_part_of_every_obligation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str
) -> None:
    before = digests(wake())
    text = Path(questions.__file__).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (tmp_path / "questions.py").write_text(text.replace(right, wrong), encoding="utf-8")
    monkeypatch.setattr(questions, "__file__", str(tmp_path / "questions.py"))
    assert not before.items() & digests(wake()).items()


def test_what_was_proved_with_fewer_seeds_is_not_kept(tmp_path: Path) -> None:
    verdict, _, asked, fits = proved_again(tmp_path, entry(lambda kept: kept.update(seeds=[0, 1, 2])), *FEW)
    assert (verdict, set(asked), fits) == ("PROVED", set(FEW), False)


def test_another_version_of_the_solver_proves_all_of_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = certificate.of("pinning")
    assert kept is not None
    found = certificate.metadata.version
    monkeypatch.setattr(certificate.metadata, "version", lambda name: "5.4.2.0" if name == "z3-solver" else found(name))
    assert not kept.fits
    free_twice = next(action for action in actions_of("pinning") if action.name == "FreeTwice")
    these: list[Questions] = list(Induction("pinning", free_twice).questions(lambda obligation: True))
    assert not {digest for one in these for digest in one.digests()} & set(kept.asked.values())


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_file_that_was_cut_short_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    content = certificate.FILE.read_bytes()
    kept = tmp_path / "certificate.json"
    kept.write_bytes(content[: round(share * len(content))])
    result = check(kept, monkeypatch)
    assert result.verdict is Verdict.ERROR
    assert result.detail.startswith(f"certificate {kept} cannot be read (")
    assert result.detail.endswith("); write it again: kvproof prove --certify")
    assert "\n" not in result.detail


def test_without_z3_nothing_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise certificate.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(certificate.metadata, "version", missing)
    result = check(certificate.FILE, monkeypatch)
    assert result.verdict is Verdict.ERROR
    assert result.detail == "prove needs z3-solver, which is not installed; install kvproof with its dependencies"


def test_the_seal_is_of_every_module_from_which_obligations_are_made() -> None:
    code = "import sys, kvspecs.proof.proof, kvspecs.proof.ranking.solving\n"
    code += "print(*(m.__file__ for name, m in sys.modules.items() if name.startswith('kvspecs.proof')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = {Path(name) for name in ran.stdout.split()}
    assert len(used) > 25
    assert not {path.name for path in used} & certificate.NOT_PROVED_BY
    assert all(path.is_relative_to(certificate.FOLDER) for path in used)
