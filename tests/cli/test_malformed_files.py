"""Files from strangers: one sentence, exit 2, bounded memory, nothing written, nothing outside the folder touched."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.cli import malformed

from kvmodel.contract import Contract
from kvproof.job import Job
from kvproof.log.entry import BadLog
from kvproof.log.follow import Follower
from kvproof.log.lines import Lines
from kvproof.log.telling import told
from kvproof.scopes import SCOPES
from kvproof.trace import itf, store
from kvproof.trace.trace import BadTrace
from kvproof.verdict import Verdict
from kvproof.worker import outcome
from kvspecs.proof import certificate

BOUND = 512 * 1024 * 1024
"""What reading any file may take beside the interpreter, in bytes of address space."""


@cache
def traces() -> dict[str, bytes]:
    """The broken ones, by what is wrong with each."""
    return dict(malformed.broken_traces())


def is_one_sentence(err: str) -> bool:
    return err.startswith("kvproof: ") and err.count("\n") == 1 and err[:-1].isprintable() and len(err) < 2_100


class Going:
    """A flag that tells nobody to stop."""

    value = 0


def sentence_on(content: bytes) -> str:
    """What is said of a trace; empty: nothing is wrong with it."""
    try:
        itf.from_bytes(content, "t.itf.json")
    except BadTrace as error:
        return str(error)
    return ""


def test_there_are_many_and_each_is_refused_in_a_sentence() -> None:
    said = {name: sentence_on(content) for name, content in traces().items()}
    assert {name for name, sentence in said.items() if not sentence} == SOUND_AFTER_ALL
    assert all(20 < len(sentence) < 700 for sentence in said.values() if sentence)
    assert len(said) - len(SOUND_AFTER_ALL) > 600


def told_of_log(path: Path) -> tuple[bool, str]:
    """Whether a log is refused, and what is said of it; empty: all of it is explained."""
    try:
        log = Lines(path)
        follower = Follower("engine.log", log.header, log.failures())
        stuck = next((found for entry in log if (found := follower.take(entry)) is not None), None)
    except BadLog as error:
        return True, str(error)
    return False, "" if stuck is None else told(follower, stuck, 0).replace("\n", " ")


def test_a_log_with_a_wrong_value_is_refused_in_a_sentence_or_judged(tmp_path: Path) -> None:
    path, refused, judged = tmp_path / "engine.log", 0, 0
    for name, content in malformed.broken_logs():
        path.write_bytes(content)
        is_refused, said = told_of_log(path)
        refused, judged = refused + is_refused, judged + (not is_refused)
        assert said.isprintable(), name
        assert not is_refused or 20 < len(said) < 700, name
    assert (refused, judged) == (1680, 45)  # free texts, and records of which nothing is said


SOUND_AFTER_ALL = frozenset(
    f"#meta.kvproof.{place}"
    for place in (
        "scope_name: ''", "scope_name: 'no such word'", "target: ''", "target: 'no such word'", "device: ''",
        "device: 'no such word'", "engine: ''", "engine: 'no such word'", "commit: ''", "commit: 'no such word'",
        "property: None", "property: ''", "property: 'no such word'", "note: ''", "note: 'no such word'",
        "contract.environment: []", "scope.survivors: True", "scope.aborts: True", "scope.preempts: True",
        "scope.lookups: True", "scope.stops: True", "scope.repeats: True",
    )
)  # fmt: skip
"""Texts that are free, or switches."""


@pytest.mark.parametrize("verb", ["replay", "shrink", "show"])
def test_the_command_says_one_sentence_of_each(folder: Path, cli, verb: str) -> None:
    names = [name for name in traces() if name not in SOUND_AFTER_ALL]
    for name in names[:: 1 if verb == "replay" else 7]:
        (folder / "t.itf.json").write_bytes(traces()[name])
        ran = cli(verb, "t.itf.json", "--json", "report.json")
        assert (ran.status, ran.out) == (2, ""), name
        assert is_one_sentence(ran.err), name
    assert [path.name for path in folder.iterdir()] == ["t.itf.json"]


@pytest.mark.parametrize("name", malformed.NAMES)
def test_a_name_leads_nowhere_else(folder: Path, cli, name: str) -> None:
    store.save(store.default_root(folder), "7c1f9e", malformed.TRACE, "")
    before = sorted(folder.rglob("*"))
    for arguments in (("replay", name, "--prune"), ("shrink", name), ("show", name), ("validate", name)):
        ran = cli(*arguments)
        assert (ran.status, ran.out) == (2, "")
        assert is_one_sentence(ran.err)
    assert sorted(folder.rglob("*")) == before


def test_a_bundle_is_judged_by_its_trace_alone(folder: Path, cli) -> None:
    path = store.save(store.default_root(folder), "7c1f9e", malformed.TRACE, "")
    for name in (store.VERDICT_FILE, store.REPRO_FILE, store.TIMELINE_FILE, store.REPORT_FILE):
        (path.parent / name).write_bytes(b"\xff{" * 1000)
    assert "FIXED" in cli("replay", "7c1f9e").out
    path.unlink()
    path.symlink_to("/dev/zero")
    ran = cli("replay", "7c1f9e")
    assert (ran.status, is_one_sentence(ran.err)) == (2, True)
    assert "is not a regular file" in ran.err


@pytest.mark.parametrize("content", malformed.KNOWN)
def test_known_files(folder: Path, cli, content: bytes) -> None:
    (folder / "known.txt").write_bytes(content)
    ran = cli("check", "--known", "known.txt")
    assert (ran.status, ran.out, is_one_sentence(ran.err)) == (2, "", True)


@pytest.mark.parametrize("content", malformed.PYPROJECTS)
def test_pyprojects(folder: Path, cli, content: bytes) -> None:
    (folder / "pyproject.toml").write_bytes(content)
    ran = cli("check")
    assert (ran.status, ran.out, is_one_sentence(ran.err)) == (2, "", True)


@pytest.mark.parametrize("content", malformed.CERTIFICATES)
def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    kept = tmp_path / "certificate.json"
    kept.write_bytes(content)
    monkeypatch.setattr(certificate, "FILE", kept)
    job = Job("prove", "kvoffload", "pinning", "s1", SCOPES["s1"], Contract("pinning"), options={"certified": True})
    result = outcome(job, lambda text: None, Going())
    assert result.verdict is Verdict.ERROR
    assert result.detail.startswith(f"certificate {kept} ")
    assert result.detail.endswith("write it again: kvproof prove --certify")


@pytest.mark.parametrize("pipe", ["t.itf.json", "known.txt"])
def test_nobody_is_waited_for_at_the_other_end_of_a_pipe(folder: Path, cli, pipe: str) -> None:
    os.mkfifo(folder / pipe)
    ran = cli("replay", pipe) if pipe.startswith("t") else cli("check", "--known", pipe)
    assert (ran.status, "is not a regular file" in ran.err) == (2, True)


HUGE = {
    "empty records": "b'[' + b'{},' * 5_500_000 + b'{}]'",
    "records": "b'[' + b'{\"a\":1},' * 2_000_000 + b'{}]'",
    "lists": "b'[' + b'[],' * 5_500_000 + b'[]]'",
    "numbers": "b'[' + b','.join(b'%d.5' % n for n in range(1_700_000)) + b']'",
    "texts": "b'[' + b','.join(b'\"%x\"' % n for n in range(1_700_000)) + b']'",
    "keys": "b'{' + b','.join(b'\"%x\":0' % n for n in range(1_400_000)) + b'}'",
    "one text": "b'\"' + b'\\\\u1234' * 2_700_000 + b'\"'",
    "one wide text": "'\"'.encode() + '\\U0001f600'.encode() * 4_000_000 + b'\"'",
    "a command with a long name": "TEXT.replace(b'\"request\"', b'\"' + b'x' * 16_000_000 + b'\"')",
    "brackets": "b'[' * 16_700_000",
    "quotes": "b'\"' * 16_700_000",
    "backslashes": "b'\"' + b'\\\\' * 16_700_000",
}

READS = """
import resource
from tests.cli import malformed
from kvproof.trace import itf
from kvproof.trace.trace import BadTrace
TEXT = malformed.SOUND.encode()
content = {content}
assert 8_000_000 < len(content) <= itf.MAX_BYTES, len(content)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {bound}, used + {bound}))
try:
    itf.from_bytes(content, "t")
except BadTrace as error:
    print(len(str(error)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set by what /proc says of the process")
@pytest.mark.parametrize("name", HUGE)
def test_memory_is_bounded(name: str) -> None:
    """Each file is nearly as large as any that is read. The limit is one of the operating system's."""
    done = subprocess.run(
        [sys.executable, "-c", READS.format(content=HUGE[name], bound=BOUND)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert 10 < int(done.stdout) < 700


def test_what_a_trace_says_is_text_on_its_page_and_in_its_diagram(folder: Path, cli) -> None:
    markup = "</script><img src=x onerror=alert(1)>"
    text = malformed.SOUND.replace('"s1"', f'"{markup}"').replace('"a note"', f'"{markup}"')
    (folder / "t.itf.json").write_text(text)
    assert cli("show", "t.itf.json", "--html", "page.html").status == 0
    page = (folder / "page.html").read_text()
    assert markup not in page
    assert "<img" not in page
    assert page.count("</script>") == 2
