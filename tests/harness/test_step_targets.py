"""Engines whose one call schedules a whole step: a sound one, sound ones that choose otherwise, and broken ones."""

import pytest
from tests.harness import broken_targets as broken
from tests.harness import permissive_targets as permissive
from tests.harness.fuzzing import fuzzed, fuzzed_in_turns
from tests.harness.step_target import StepKVOffload

from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.targets.kvoffload import Ledger
from kvproof.verdict import Verdict

BOTH, PINNING, FENCING = DISCIPLINES, ("pinning",), ("fencing",)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_kvoffload_as_a_step_target(discipline: Discipline) -> None:
    result = fuzzed_in_turns(StepKVOffload, discipline, 1000)
    assert (result.verdict, result.failure) == (Verdict.PASSED, None)
    compared = {name for name, count in result.counts.items() if name.startswith("field:") and count}
    fields = ["device_refs", "device_keys", "host_refs", "host_keys", "requests", "jobs", "runnable"]
    assert compared == {f"field:{name}" for name in fields}


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_fuzz_gets_to_everything(discipline: Discipline) -> None:
    """Also to what takes a long way: a block that is on the host alone, its load, and the end of that. In half of the
    commands that the plan gives, with a seed that does not give one of the modes much less than its share."""
    counts = fuzzed(Ledger, discipline, 3000, seed=1).counts
    never = {name for name, count in counts.items() if name.startswith("action:") and not count}
    assert never == {"action:Promote", "action:Die", "action:DeclareDead"}  # what this scope does not have
    assert {name for name, count in counts.items() if name.startswith("field:") and not count} == set()
    assert counts["action:Wake"] >= 5
    assert counts["action:Finish"] >= 50


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_fuzz_gets_to_what_comes_back_from_a_second_tier(discipline: Discipline) -> None:
    result = fuzzed(Ledger, discipline, 900, scope="cascades")
    assert (result.verdict, result.failure) == (Verdict.PASSED, None)
    assert result.counts["action:Promote"] >= 5
    assert {name for name, count in result.counts.items() if name.startswith("field:") and not count} == set()


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("target", permissive.ALL)
def test_other_legal_choices_raise_no_alarm(target: type[StepKVOffload], discipline: Discipline) -> None:
    result = fuzzed_in_turns(target, discipline, 500)
    assert (result.verdict, result.failure) == (Verdict.PASSED, None)


@pytest.mark.parametrize(
    ("target", "discipline", "broken_property", "seed"),
    [
        (permissive.TakesTheLastFreed, "pinning", "agrees-with-the-reference", 0),
        (permissive.UsesFewerHits, "pinning", "agrees-with-the-reference", 0),
        (permissive.LoadsLess, "fencing", "agrees-with-the-reference", 0),
        (permissive.StoresLess, "pinning", "every-full-block-is-stored-or-refused", 0),
        (permissive.FlushesMore, "fencing", "agrees-with-the-reference", 0),
        (permissive.FlushesOnce, "fencing", "agrees-with-the-reference", 0),
        (permissive.CopiesOneByOne, "fencing", "everything-drains", 1),  # 0 to 5 find it, and 1 soonest
    ],
)
def test_the_same_engines_held_to_the_reference_are_caught(
    target: type[StepKVOffload],
    discipline: Discipline,
    broken_property: str,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target, "exact", True)
    failure = fuzzed(target, discipline, 20_000, seed).failure
    assert failure is not None
    assert failure.property == broken_property


@pytest.mark.parametrize(
    ("target", "disciplines", "broken_property"),
    [
        (broken.StaleReferences, BOTH, "owners-account-for-references"),
        (broken.PinsNothing, PINNING, "owners-account-for-references"),
        (broken.DropsTheFence, FENCING, "fence-before-reuse"),
        (broken.HidesTheFence, FENCING, "fence-before-reuse"),
        (broken.FlushesNothing, FENCING, "fence-before-reuse"),
        (broken.OvertakesCompute, BOTH, "reads-what-was-written"),
        (broken.StoresBeforeCompute, PINNING, "reads-what-was-written"),
        (broken.HitsWhatIsNotCached, BOTH, "hits-are-prefix-closed"),
        (broken.AlwaysTrue, BOTH, "true-reset-serves-nothing-old"),
        (broken.AlwaysFalse, BOTH, "false-reset-has-a-cause"),
        (broken.ForgetsToAnswer, BOTH, "work-remaining-keeps-the-engine-stepping"),
        (broken.TwoLaunches, BOTH, "no-use-after-free"),
    ],
)
def test_broken_engines_and_lying_adapters_are_caught(
    target: type[StepKVOffload], disciplines: tuple[Discipline, ...], broken_property: str
) -> None:
    for discipline in disciplines:
        result = fuzzed(target, discipline, 20_000)
        assert result.verdict is Verdict.REFUTED
        assert result.failure is not None
        assert result.failure.property == broken_property
