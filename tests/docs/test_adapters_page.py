"""The page on adapters names what is there: of ours each file and each name that it says one has to provide."""

import re

from tests.docs.typing_page import ROOT

PAGE = (ROOT / "docs/explanation/adapters.md").read_text()


def test_of_kvproof_it_names_what_there_is() -> None:
    harness = ROOT / "harness/kvproof"
    files = set(re.findall(r"`((?:targets|obligations)/[a-z_]+\.py)`", PAGE))
    assert files == {"targets/target.py", "obligations/watched.py"}
    assert all((harness / file).is_file() for file in files)
    watched = (harness / "obligations/watched.py").read_text()
    assert all(f"def {name}(" in watched for name in ("books", "enabled"))
    assert "published" in watched
    assert "waits_for_compute" in (harness / "obligations/workers.py").read_text()


def test_only_the_targets_for_vllm_import_it() -> None:
    importing = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "harness").rglob("*.py")
        if re.search(r"^\s*(?:import|from) vllm\b", path.read_text(), re.MULTILINE)
    ]
    assert importing
    assert all(path.startswith("harness/kvproof/targets/vllm/") for path in importing)
