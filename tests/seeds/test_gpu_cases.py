"""What `tests/gpu` plays is what is written here."""

import json

from tests.gpu.cases import FILE
from tests.seeds.driving import CASES
from tests.seeds.write_gpu_cases import all_cases


def test_the_cases_of_the_gpu_suite_are_these() -> None:
    expected = all_cases()
    assert FILE.read_text(encoding="utf-8") == expected, "write them anew: python -m tests.seeds.write_gpu_cases"
    left_out = {name for name, case in CASES.items() if case.scope.deaths or case.scope.second_blocks}
    assert CASES.keys() - json.loads(expected).keys() == left_out
    assert len(CASES) >= 59
