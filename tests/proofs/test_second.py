"""What cvc5 has answered is kept by the question, and is not asked again."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.test_prove import need_cvc5

pytestmark = pytest.mark.proofs

ABOUT = ("--discipline", "fencing", "--action", "FreeTwice")


@pytest.fixture(autouse=True)
def cvc5() -> None:
    need_cvc5(bool(os.environ.get("KVPROOF_REQUIRE_CVC5")))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "cvc5.jsonl"


def test_the_questions_are_asked_in_slices(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without time nothing is asked; what was answered then is not asked again."""
    from tests.proofs.second import main

    arguments = (*ABOUT, "--kept", str(kept))
    assert main((*arguments, "--seconds", "0")) == 1
    assert lines(capsys)[0] == "fencing FreeTwice: 7 to be asked"
    assert main(arguments) == 0
    assert lines(capsys)[0] == "fencing FreeTwice: 7 proved"
    assert main((*arguments, "--seconds", "0")) == 0
    assert lines(capsys)[0] == "fencing FreeTwice: 7 proved"


def test_what_it_gave_up_on_is_named(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.proofs.second import main

    arguments = (*ABOUT, "--kept", str(kept))
    main(arguments)
    lines(capsys)
    first, *others = kept.read_text(encoding="utf-8").splitlines()
    question, verdict = json.loads(first)
    assert verdict == "proved"
    kept.write_text("\n".join([json.dumps([question, "unknown"]), *others]) + "\n", encoding="utf-8")
    assert main(arguments) == 1
    named, *counts = lines(capsys)
    assert named.startswith("fencing unknown: FreeTwice: ")
    assert counts == [
        "fencing FreeTwice: 6 proved, 1 unknown",
        "6 proved, 1 unknown; at most 10,000,000 units of cvc5's work for each",
    ]
