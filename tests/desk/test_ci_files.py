"""The action, the workflow and the hook: sound by their published schemas, and what they run does what they say."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvproof.cli import main
from tests.harness.changed_file import written

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOW = ROOT / "docs/how-to/kvproof-workflow.yml"
HOOK = ROOT / "docs/how-to/kvproof-pre-commit.yaml"

yaml = pytest.importorskip("ruamel.yaml", reason="check-jsonschema brings it, which is a package for development")


def loaded(path: Path) -> Any:
    return yaml.YAML(typ="safe").load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "schema", "says_wrong"),
    [
        (ACTION, "vendor.github-actions", ("composite", "compost")),
        (WORKFLOW, "vendor.github-workflows", ("runs-on", "run-on")),
    ],
    ids=["action", "workflow"],
)
def test_it_fits_the_published_schema(path: Path, schema: str, says_wrong: tuple[str, str], tmp_path: Path) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    assert subprocess.run([*check, str(path)], capture_output=True, text=True).returncode == 0
    broken = tmp_path / path.name
    broken.write_text(path.read_text(encoding="utf-8").replace(*says_wrong))
    assert subprocess.run([*check, str(broken)], capture_output=True, text=True).returncode == 1


def test_the_workflow_is_short_on_a_push_and_long_by_schedule_or_label() -> None:
    workflow = loaded(WORKFLOW)
    assert set(workflow["on"]) == {"push", "pull_request", "schedule", "workflow_dispatch"}
    assert "labeled" in workflow["on"]["pull_request"]["types"]
    smoke, long = workflow["jobs"]["smoke"], workflow["jobs"]["long"]
    assert "push" in smoke["if"]
    assert "schedule" in long["if"]
    assert "labels.*.name, 'kvproof'" in long["if"]
    assert [job["steps"][-1]["with"]["arguments"] for job in (smoke, long)] == ["--scope s1", "--all"]
    assert workflow["permissions"] == {"contents": "read"}


def test_the_action_keeps_the_bundle_as_an_artefact() -> None:
    action = loaded(ACTION)
    last = action["runs"]["steps"][-1]
    assert last["if"] == "failure()"
    assert last["with"]["path"].split() == [".kvproof/failures", "kvproof.json", "kvproof.xml"]
    assert last["with"]["include-hidden-files"] is True


def test_no_input_of_the_action_is_pasted_into_a_script() -> None:
    """What somebody writes into an input is an argument, and never part of a program."""
    scripts = [step["run"] for step in loaded(ACTION)["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)


def ran(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's own script, as GitHub runs it."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    for name, words in (("kvproof", "-m kvproof"), ("python", "")):
        (binaries / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
        (binaries / name).chmod(0o755)
    script = loaded(ACTION)["runs"]["steps"][1]["run"]
    given = dict.fromkeys(("TARGET", "ARGUMENTS", "BUDGET", "KNOWN"), "") | inputs
    environment = {
        **os.environ,
        **given,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(folder / "output"),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


FAILS_IN_ONE_MODE = """
            if self.setting.contract[1:4] == ("eager", "all", 1):
                raise OSError("disk full; rm -rf $HOME")
"""
"""That of the product search: of the runs of fuzz, which take all modes in turn, few have a failure to shrink."""


def test_the_action_fails_as_kvproof_does_and_says_the_verdict(tmp_path: Path) -> None:
    target = written(tmp_path, perform=FAILS_IN_ONE_MODE)
    red = ran(tmp_path, TARGET=target, ARGUMENTS="--scope s1 --seed 7")
    assert red.returncode == 1
    assert (tmp_path / "output").read_text() == "verdict=REFUTED\n"
    assert (tmp_path / "kvproof.xml").is_file()
    (kept,) = (tmp_path / ".kvproof/failures").iterdir()
    assert (kept / "timeline.html").is_file()

    (tmp_path / "known.txt").write_text(f"{kept.name}\n")
    (tmp_path / "output").unlink()
    assert ran(tmp_path, TARGET=target, ARGUMENTS="--scope s1", KNOWN="known.txt").returncode == 0
    assert (tmp_path / "output").read_text() == "verdict=PASSED\n"
    assert ran(tmp_path, TARGET=target, ARGUMENTS="--scope s1", BUDGET="1ms").returncode == 3


def test_arguments_may_stand_on_several_lines(tmp_path: Path) -> None:
    target = written(tmp_path, perform="raise OSError('disk full')")
    assert ran(tmp_path, TARGET=target, ARGUMENTS="--scope s1\n--budget 1ms\n").returncode == 3


def test_what_cannot_begin_is_not_executed_and_has_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "kvproof.json").write_text('{"verdict": "PROVED"}')
    assert ran(tmp_path, TARGET="$(touch injected)", ARGUMENTS="`touch injected`").returncode == 2
    assert not (tmp_path / "injected").exists()
    assert not (tmp_path / "output").exists()


def test_the_hook_runs_kvproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (hook,) = loaded(HOOK)["repos"][0]["hooks"]
    assert (hook["pass_filenames"], hook["language"], hook["stages"]) == (False, "system", ["pre-push"])
    command, *arguments = shlex.split(hook["entry"])
    assert command == "kvproof"
    monkeypatch.chdir(tmp_path)
    written(tmp_path, perform="raise OSError('disk full')")
    (tmp_path / "pyproject.toml").write_text('[tool.kvproof]\ntarget = "engine.py:Engine"\n')
    assert main(arguments) == 1


def test_the_how_to_links_to_both() -> None:
    links = re.findall(r"\]\(([\w./-]+\.ya?ml)\)", (ROOT / "docs/how-to/ci.md").read_text(encoding="utf-8"))
    assert links == [WORKFLOW.name, HOOK.name]
