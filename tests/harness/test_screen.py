"""Which scopes a cell of the screen names: it stays as narrow as it can and names no scope that it was not at."""

import pytest

from kvproof.report.screen import scope_range


@pytest.mark.parametrize(
    ("names", "label", "shown"),
    [
        ((), "", ""),
        ((), "small scopes", ""),
        (("s2",), "", "s2"),
        (("s1", "s2", "s3"), "", "s1-s3"),
        (("s1", "s3"), "", "s1,s3"),
        (("s1", "s2,duplicates=1"), "small scopes", "small scopes"),
        (("s1,second=1,resets=0",), "", "s1,second=1,resets=0"),
        (("s2", "s1,second=1,resets=0"), "", "s2 and 1 written out"),
        (("s1", "s2", "s1,second=1", "s2,deaths=1"), "", "s1,s2 and 2 written out"),
    ],
)
def test_scopes_are_named_shortly(names: tuple[str, ...], label: str, shown: str) -> None:
    assert scope_range(names, label) == shown
