"""What takes long to be imported is imported once, in the process from which those of the jobs are forked."""

import sys
from types import ModuleType

import pytest

from kvmodel.contract import Contract
from kvproof.job import Job
from kvproof.runner import preloaded
from kvproof.scopes import SCOPES

SHRINK = Job("shrink", "vllm-simple", "pinning", "s1", SCOPES["s1"], Contract("pinning"))


def test_vllm_is_if_this_process_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kvproof.targets.vllm.offloading", raising=False)
    monkeypatch.delitem(sys.modules, "kvproof.targets.vllm.simple", raising=False)
    assert preloaded([SHRINK]) == ["kvproof.worker", "kvproof.engines.shrink"]
    monkeypatch.setitem(sys.modules, "kvproof.targets.vllm.simple", ModuleType("kvproof.targets.vllm.simple"))
    assert preloaded([SHRINK]) == ["kvproof.worker", "kvproof.engines.shrink", "kvproof.targets.vllm.simple"]
