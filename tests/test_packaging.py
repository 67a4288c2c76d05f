"""What the packages promise about themselves."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import kvproof

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_one() -> None:
    assert PROJECT["version"] == kvproof.__version__ == metadata.version("kvproof")


def test_the_model_imports_the_standard_library_only() -> None:
    imported: set[str] = set()
    for path in sorted((ROOT / "model" / "kvmodel").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                assert node.module is not None
                imported.add(node.module.partition(".")[0])
    assert imported
    assert imported <= {"kvmodel", *sys.stdlib_module_names}


def test_everything_that_is_installed_is_pinned() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower() for requirement in wanted}
    assert names <= pinned


def test_what_needs_no_torch_does_not_import_it() -> None:
    code = (
        "import sys; from kvproof.cli import main; main(['--help']); main(['list', 'properties']); "
        "import kvproof.engines.explore; "
        "sys.exit(str(sorted({'torch', 'hypothesis', 'numpy'} & set(sys.modules))) if 'torch' in sys.modules else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
