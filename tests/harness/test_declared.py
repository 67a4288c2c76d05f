"""What a target declares of its engine is all that it is asked for."""

from typing import ClassVar

import pytest

from kvmodel.contract import Contract
from kvproof import plan
from kvproof.engines import fuzz
from kvproof.job import Job
from kvproof.plan import Selection
from kvproof.scopes import parse_scope
from kvproof.targets.declared import declared_contract, declared_disciplines, narrowed, undeclared
from kvproof.targets.kvoffload import Ledger
from kvproof.verdict import Verdict


class Plain:
    """Declares nothing."""


class Declaring(Ledger):
    """Takes one kind of reset, and has one contract."""

    disciplines = ("fencing",)
    contract = Contract("fencing", depth=2)
    meanings = ("evict",)
    survivors = False
    asked: ClassVar[set[str]] = set()

    def perform(self, command):
        if command.verb == "reset":
            self.asked.add(" ".join(map(str, command.args)))
        return super().perform(command)


def test_what_declares_nothing_is_asked_for_everything() -> None:
    assert declared_disciplines(Plain) == ("pinning", "fencing")
    assert declared_contract(Plain) is None
    assert narrowed(Plain, "fuzz") == "fuzz"
    assert undeclared(Plain, parse_scope("fuzz")[1], Contract("pinning", "lazy")) == ""


def test_a_scope_is_narrowed_to_the_resets_that_there_are() -> None:
    assert narrowed(Declaring, "fuzz") == "fuzz,meanings=evict,survivors=no"
    assert narrowed(Declaring, "s1") == "s1,resets=0"
    assert narrowed(Declaring, "s1,resets=0") == "s1,resets=0"


@pytest.mark.parametrize(
    ("scope", "contract", "reason"),
    [
        ("s1,meanings=evict", Contract("fencing", depth=2), ""),
        ("s1", Contract("fencing", depth=2), "declares no reset that means invalidate"),
        ("s1,resets=0", Contract("fencing"), "declares other modes"),
        ("s1,meanings=evict,survivors=yes", Contract("fencing", depth=2), "declares no reset that keeps survivors"),
        ("s1,meanings=evict,survivors=yes,resets=0", Contract("fencing", depth=2), ""),
    ],
)
def test_what_is_not_declared_is_a_reason_to_skip(scope: str, contract: Contract, reason: str) -> None:
    assert undeclared(Declaring, parse_scope(scope)[1], contract) == reason


def test_the_plan_asks_for_no_more() -> None:
    planned = plan.build(Selection(f"{__name__}:Declaring", engines=("fuzz",), disciplines=("fencing",)))
    (job,) = planned.jobs
    assert (job.scope_name, job.contract) == ("fuzz,meanings=evict,survivors=no", Contract("fencing", depth=2))


def test_fuzz_keeps_to_the_modes_and_resets_that_are_declared() -> None:
    name, scope = parse_scope("fuzz,meanings=evict,survivors=no")
    Declaring.asked.clear()
    contract, options = Contract("fencing", depth=2), {"commands": 1000}
    job = Job("fuzz", f"{__name__}:Declaring", "fencing", name, scope, contract, options=options)
    result = fuzz.run(job, lambda text: None, lambda: False)
    assert (result.verdict, result.detail) == (Verdict.PASSED, result.detail)
    assert Declaring.asked == {"evict preempt"}
    assert result.counts["action:Report"] > 0
    assert result.counts["action:ReportMark"] == 0  # as turns of the modes would bring about


def test_a_target_from_elsewhere_is_fuzzed_for_longer_since_no_search_may_see_all_of_it() -> None:
    name = f"{Declaring.__module__}:{Declaring.__name__}"
    for target, commands in (("kvoffload", 2000), (name, 3000)):
        jobs = plan.build(Selection(target=target, engines=("fuzz",))).jobs
        assert {job.options["commands"] for job in jobs} == {commands}
