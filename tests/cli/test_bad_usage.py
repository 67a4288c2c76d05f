"""Whatever a user gets wrong is one clear sentence on standard error, exit status 2, and nothing half-written."""

from pathlib import Path

import pytest

from kvproof.cli import VERBS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no verb given; use one of check, explore"),
        (("chekc",), "verb 'chekc' does not exist; use one of check"),
        (("--json", "-"), "verb '--json' does not exist"),
        (("check", "--fast"), "there is no flag or name --fast"),
        (("check", "s3"), "there is no flag or name s3"),
        (("check", "--disc", "pinning"), "there is no flag or name --disc"),
        (("check", "--target", "vlm"), "target 'vlm' does not exist; registered: kvoffload"),
        (("check", "--target", "no.such:Engine"), "cannot be imported (ModuleNotFoundError"),
        (("check", "--target", "json:Nothing"), "cannot be imported (AttributeError"),
        (("check", "--target", "json:dumps"), "and not a class"),
        (("check", "--target", "json:not a name"), "neither package.module:Class nor file.py:Class"),
        (("check", "--target", "nowhere.py:Engine"), "target file 'nowhere.py' does not exist"),
        (("check", "--target", ""), "target"),
        (("check", "--scope", "s99"), "scope 's99' does not exist; use one of s1"),
        (("check", "--scope", ""), "scope '' does not exist"),
        (("check", "--scope", "s1,host=0"), "host_blocks is 0; it must be between 1"),
        (("check", "--scope", "s1,device=0"), "device_blocks is 0; it must be between 1"),
        (("check", "--scope", "s1,host=-1"), "host_blocks is -1"),
        (("check", "--scope", "s1,host=many"), "host must be a number"),
        (("check", "--scope", "s1,hosts=2"), "'hosts=2', which is no size"),
        (("check", "--scope", "s1,host=2,host=3"), "gives host twice"),
        (("check", "--scope", "s1,lookups=maybe"), "lookups must be yes or no"),
        (("check", "--scope", "s1,prompts=abcdef"), "it could never finish"),
        (("check", "--scope", "s1,meanings=forget"), "meaning 'forget' does not exist"),
        (("check", "--scope", "s1,tiers=disk"), "tiers 'disk' does not exist; use all, device, host"),
        (("check", "--scope", "s1,tiers=host"), "tiers has host and meanings lacks evict"),
        (("check", "--budget", "-5s"), "budget '-5s' is not more than zero"),
        (("check", "--budget=-1m"), "budget '-1m' is not more than zero"),
        (("check", "--budget", "0s"), "budget '0s' is not more than zero"),
        (("check", "--budget", "60"), "budget '60' is not a time; write 60s"),
        (("check", "--budget", "soon"), "budget 'soon' is not a time"),
        (("check", "--budget"), "expected one argument"),
        (("check", "--seed", "-1"), "seed '-1' is not a number from 0"),
        (("check", "--seed", "1e3"), "seed '1e3' is not a number from 0"),
        (("check", "--seed", "9" * 30), "is not a number from 0"),
        (("check", "--discipline", "both"), "discipline 'both' does not exist; use pinning or fencing"),
        (("check", "--device", "tpu"), "device 'tpu' does not exist; use auto, ledger, host or cuda"),
        (("check", "--store-mode", "eagr"), "store mode 'eagr' does not exist"),
        (("check", "--deadline", "never"), "deadline 'never' does not exist; use none or expire"),
        (("check", "--depth", "3"), "depth '3' does not exist; use 1 or 2"),
        (("check", "--admission", "half"), "admission 'half' does not exist; use whole or partial"),
        (("check", "--reports", "mark"), "reports 'mark' does not exist; use per-job or marks"),
        (("check", "--require", "ledger"), "device 'ledger' cannot be required"),
        (("check", "--reset-reading", "loose"), "reset-reading 'loose' does not exist; use lenient or strict"),
        (
            ("check", "--reset-reading", "strict"),
            "target kvoffload is held to the machine, which reads a False strictly",
        ),
        (
            ("search", "--target", "engine.py:Engine", "--reset-reading", "lenient"),
            "target engine.py:Engine is held to",
        ),
        (("check", "--beyond-contract"), "target kvoffload promises to survive every fault that there is"),
        (("fuzz", "--target", "engine.py:Engine", "--beyond-contract"), "target engine.py:Engine declares no fault"),
        (("explore", "--beyond-contract"), "there is no flag or name --beyond-contract"),
        (("check", "--known", "missing.txt"), "known file missing.txt cannot be opened (No such file or directory)"),
        (("check", "--json", "no/such/folder/report.json"), "cannot be written; name a file in a folder that exists"),
        (("check", "--json", "."), "cannot be written"),
        # contradictions
        (("check", "--scope", "s1", "--scope", "s2"), "--scope is given twice"),
        (("check", "--discipline", "pinning", "--discipline", "fencing"), "--discipline is given twice"),
        (("check", "--all", "--scope", "s1"), "give one of them"),
        (
            ("check", "--target", "kvoffload-host", "--device", "ledger"),
            "is on device host, and --device asks for ledger",
        ),
        (("check", "--target", "engine.py:Engine", "--device", "host"), "has no devices to choose from"),
        (("check", "--target", "engine.py:Pins", "--discipline", "fencing"), "follows pinning, and --discipline asks"),
        (("soak", "--device", "ledger"), "the ledger device has none"),
        (("soak", "--target", "kvoffload-ledger"), "the ledger device has none"),
        (("soak", "--target", "engine.py:Engine"), "soak drives kvoffload's devices"),
        (("explore", "--device", "host"), "runs on no device"),
        (("explore", "--target", "engine.py:Engine"), "searches the machine alone"),
        # traces and lists
        (("replay",), "required: TRACE"),
        (("replay", "7c1f9e"), "trace '7c1f9e' does not exist"),
        (("replay", "../../etc/nothing"), "does not exist"),
        (("replay", "a\0b"), "does not exist"),
        (("replay", "x" * 5000), "does not exist"),
        (("replay", "engine.py"), "is not JSON"),
        (("replay", "engine.py", "--scope", "s1"), "there is no flag or name --scope"),
        (("shrink", "engine.py", "--out", "no/such/folder/trace"), "cannot be written"),
        (("list",), "required"),
        (("list", "engines"), "there are no 'engines' to list; use targets, scopes, properties"),
        (("doctor", "who"), "there is no flag or name who"),
    ],
)
def test_one_sentence(folder: Path, cli, arguments: tuple[str, ...], words: str) -> None:
    (folder / "engine.py").write_text("class Engine: pass\nclass Pins:\n    disciplines = ('pinning',)\n")
    before = sorted(folder.iterdir())
    ran = cli(*arguments)
    assert ran.status == 2
    assert ran.out == ""
    assert words in ran.err
    assert ran.err.startswith("kvproof: ")
    assert ran.err.count("\n") == 1
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(cli, verb: str) -> None:
    ran = cli(verb, "--help")
    assert ran.status == 0
    assert f"kvproof {verb}" in ran.out
    assert "--json" in ran.out
    assert ran.err == ""


def test_help_and_version(cli) -> None:
    assert all(verb in cli("--help").out for verb in VERBS)
    assert cli("--version").out == "kvproof 0.1.0\n"


def test_a_module_that_fails_while_it_is_imported_is_a_sentence(folder: Path, cli) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    ran = cli("check", "--target", "broken.py:Engine")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "kvproof: target broken.py:Engine cannot be imported (ZeroDivisionError: division by zero)\n"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[tool.kvproof\n", "cannot be read"),
        ("[tool.kvproof]\ntraget = 'x'\n", "settings in [tool.kvproof] that do not exist"),
        ("[tool.kvproof]\ntarget = 7\n", "has target 7"),
        ("[tool.kvproof]\ntarget = 'nowhere'\n", "target 'nowhere' does not exist"),
        ("tool = 1\n", "cannot be read"),
    ],
)
def test_a_wrong_setting_is_a_sentence(folder: Path, cli, settings: str, words: str) -> None:
    (folder / "pyproject.toml").write_text(settings)
    ran = cli("check")
    assert (ran.status, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("line", ["hello", "7c1f9", "7C1F9E", "../../x"])
def test_a_known_file_with_no_id_in_a_line(folder: Path, cli, line: str) -> None:
    (folder / "known.txt").write_text(f"# ours\n7c1f9e issue 812\n{line}\n")
    ran = cli("check", "--known", "known.txt")
    assert ran.status == 2
    assert "in line 3, which is no id of a failure" in ran.err
