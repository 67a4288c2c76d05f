"""`kvproof.conformance`: what other people's pytest files call."""

import re
import subprocess
import sys
import unittest

from hypothesis import settings
from tests.harness.broken_targets import AlwaysFalse, DropsTheFence
from tests.harness.step_target import StepKVOffload

import kvproof
from kvmodel.contract import Contract
from kvproof.scopes import SCOPES


def outcome(case: type[unittest.TestCase]) -> unittest.TestResult:
    case.settings = settings(case.settings, derandomize=True, database=None)  # type: ignore[attr-defined]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == 1
    return result


def message(result: unittest.TestResult) -> str:
    """Why the one test failed: what its exception says."""
    assert not result.errors
    text = result.failures[0][1]
    assert text.count("Traceback") == 1
    return text.partition("Nonconforming: ")[2]


def test_a_sound_target_passes() -> None:
    assert outcome(kvproof.conformance(StepKVOffload, max_examples=5)).wasSuccessful()


def test_a_violation_is_told_as_numbered_commands_and_what_differs() -> None:
    told = message(outcome(kvproof.conformance(AlwaysFalse, max_examples=20)))
    lines = told.splitlines()
    assert lines[0] == "false-reset-has-a-cause"
    assert re.fullmatch(r"  1 reset (invalidate|evict)", lines[2])
    assert lines[3] == "    contract  forbidden: the reset answers False although nothing from before it is left"
    assert re.fullmatch(r"    target    reset (invalidate|evict) preempt False", lines[4])
    assert lines[5:] == ["fingerprint 2cdeb4"]


def test_the_contract_is_the_one_that_is_given_or_the_targets_own() -> None:
    class Fencing(DropsTheFence):
        contract = Contract("fencing")

    scope = SCOPES["fuzz"]._replace(resets=0, losses=0)
    sound = kvproof.conformance(DropsTheFence, scope=scope, max_examples=5)
    assert outcome(sound).wasSuccessful()  # pinning has no fence
    for case in (
        kvproof.conformance(DropsTheFence, Contract("fencing"), scope),
        kvproof.conformance(Fencing, scope=scope),
    ):
        assert message(outcome(case)).startswith("fence-before-reuse\n")


def test_a_target_that_cannot_be_opened_fails_the_test() -> None:
    class Unable(StepKVOffload):
        def __init__(self, setting) -> None:
            raise OSError("no such engine")

    told = message(outcome(kvproof.conformance(Unable)))
    assert "The target failed with OSError before the first command: no such engine (test_conformance.py:" in told


def test_the_command_line_starts_without_hypothesis_and_torch() -> None:
    code = "import kvproof.cli, kvproof.plan, sys; print(sorted({'hypothesis', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_there_is_nothing_else_in_the_package() -> None:
    assert kvproof.__all__ == ["Reproduced", "__version__", "conformance", "reproduce"]
    assert not hasattr(kvproof, "conformity")
