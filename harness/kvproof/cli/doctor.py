"""`kvproof doctor`: what kvproof finds on this machine, and whether it will do."""

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from kvproof import __version__
from kvproof.cli.flags import Parser, configured_target
from kvproof.cli.planned import report
from kvproof.cli.progress import waiting_for
from kvproof.cores import cores
from kvproof.targets import registry
from kvproof.targets.hardware import cuda_devices, no_cuda
from kvproof.trace import store
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict, exit_status

LEAST_PYTHON = (3, 11)


class Finding(NamedTuple):
    """One thing that was looked at: PASSED, SKIPPED where its absence only leaves something out, or ERROR."""

    name: str
    found: str
    verdict: Verdict = Verdict.PASSED
    why: str = ""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("doctor", "Show versions, devices and folders, each with ok or with what is wrong.")
    parsed = parser.read(arguments)
    with waiting_for("looking at what is installed"):
        findings = [
            Finding("kvproof", __version__),
            _python(),
            _package("torch", "conform --device host, soak and fuzz on host need it"),
            _package("hypothesis", "fuzz needs it"),
            _package("z3-solver", "prove needs it"),
            _cuda(),
            _cores(),
            _targets(),
            _configured(),
            _failures(store.default_root()),
        ]
    width = max(len(finding.name) for finding in findings)
    second = max(len(finding.found) for finding in findings)
    lines = [f"{f.name:<{width}}  {f.found:<{second}}  {_word(f)}" for f in findings]
    results = [Result("doctor", "", None, "", f.name, f.verdict, 0.0, detail=f.why) for f in findings]
    report("\n".join(lines), (), results, parsed)
    return exit_status(results)


def _word(finding: Finding) -> str:
    if finding.verdict is Verdict.PASSED:
        return "ok"
    return f"{'limited' if finding.verdict is Verdict.SKIPPED else 'wrong'}: {finding.why}"


def _python() -> Finding:
    found = f"{platform.python_version()} {sys.executable}"
    if sys.version_info < LEAST_PYTHON:
        return Finding("python", found, Verdict.ERROR, f"kvproof needs {'.'.join(map(str, LEAST_PYTHON))} or newer")
    return Finding("python", found)


def _package(name: str, use: str) -> Finding:
    try:
        return Finding(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, "none", Verdict.ERROR, f"{use}; install kvproof with its dependencies")


def _cuda() -> Finding:
    reason = no_cuda()
    if reason:
        return Finding("cuda", "none", Verdict.SKIPPED, f"{reason}; rows for cuda are SKIPPED")
    if no_gates := no_cuda(gated=True):
        return Finding("cuda", cuda_devices(), Verdict.SKIPPED, f"{no_gates}; conform and fuzz on cuda are SKIPPED")
    return Finding("cuda", cuda_devices())


def _cores() -> Finding:
    count = cores()
    if count < 2:
        return Finding("cores", str(count), Verdict.SKIPPED, "check takes twice as long as on two")
    return Finding("cores", str(count))


def _targets() -> Finding:
    names = ", ".join(registry.families())
    if registry.OURS not in registry.families():
        return Finding("targets", names or "none", Verdict.ERROR, "kvoffload is not registered; reinstall kvproof")
    return Finding("targets", names)


def _configured() -> Finding:
    try:
        target = configured_target()
        if target is not None:
            registry.check_name(target)
            if not registry.is_ours(target):
                registry.load(target)
    except BadUsage as error:
        return Finding("target", "unusable", Verdict.ERROR, str(error))
    return Finding("target", target or f"{registry.OURS} (no [tool.kvproof])")


def _failures(root: Path) -> Finding:
    count = len(store.ids(root))
    found = f"{count} in {root}"
    place = root
    while not place.exists():
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK)):
        return Finding("failures", found, Verdict.ERROR, f"{place} cannot be written, so no trace can be kept")
    return Finding("failures", found)
