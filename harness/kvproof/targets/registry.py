"""Which class the name of a target stands for: an entry point, `package.module:Class`, or `file.py:Class`.

Entry points are in the group `kvproof.targets`. Entries `name-device` for several devices make a family: the name alone
then means the entry for the device that `--device` chose.
"""

import importlib
import importlib.util
import inspect
import re
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from kvproof.usage import BadUsage

GROUP = "kvproof.targets"
OURS = "kvoffload"
"""The family of the implementation in this repository, which is the target unless another one is named."""

MACHINE = "machine"
"""The reference machine itself: what explore judges, and what its traces name as their target."""

DEVICES = ("ledger", "host", "cuda")
"""Devices of kvoffload. Where nothing says which, a single target is opened on the first that it has."""

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class UnknownTarget(BadUsage):
    """No class can be had for this name; the message says why, and which names there are."""


@cache
def registered() -> dict[str, EntryPoint]:
    """Every entry point of the group by name, in alphabetical order."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def families() -> dict[str, tuple[str, ...]]:
    """Every registered name with the devices that it can be used with; an entry without a device has none."""
    found: dict[str, tuple[str, ...]] = {}
    for name in registered():
        family, dash, device = name.rpartition("-")
        if dash and device in DEVICES:
            found[family] = (*found.get(family, ()), device)
        else:
            found[name] = ()
    return {name: tuple(d for d in DEVICES if d in devices) for name, devices in found.items()}


def is_ours(spec: str) -> bool:
    """Whether this is the implementation in this repository; every other target is a foreign one."""
    return spec == OURS or spec.removeprefix(f"{OURS}-") in DEVICES


def check_name(spec: str) -> None:
    """Raises UnknownTarget unless the name could be one; imports nothing."""
    if ":" in spec:
        module, _, attribute = spec.rpartition(":")
        if not attribute.isidentifier() or not (module.endswith(".py") or _MODULE.fullmatch(module)):
            raise UnknownTarget(f"target {spec!r:.100} is neither package.module:Class nor file.py:Class")
    elif spec not in families() and spec not in registered():
        names = ", ".join(families()) or "none"
        raise UnknownTarget(
            f"target {spec!r:.100} does not exist; registered: {names}; "
            "any other is written package.module:Class or file.py:Class"
        )


def to_type(spec: str) -> str:
    """What people type after `--target` for it. An engine that only wrote a log may be called anything: an adapter of
    it has to be named."""
    try:
        check_name(spec)
    except UnknownTarget:
        return "MODULE:CLASS"
    return spec


_lent: dict[str, type[Any]] = {}


def lend(spec: str, target_class: type[Any]) -> None:
    """In this process the name stands for this class, which is there already and need not be imported again."""
    _lent[spec] = target_class


def load(spec: str, device: str = "") -> type[Any]:
    """The class of a target. Raises UnknownTarget, also for a module that fails while it is imported.

    A module is looked for in the current folder first, as `python -m` does.
    """
    if spec in _lent:
        return _lent[spec]
    check_name(spec)
    try:
        if ":" in spec:
            place, _, attribute = spec.rpartition(":")
            found = getattr(_module_of_file(Path(place)) if place.endswith(".py") else _module(place), attribute)
        else:
            found = _entry(spec, device).load()
    except BadUsage:  # UnknownTarget, and what a target says of its own of where it cannot run
        raise
    except Exception as error:  # anything may happen while a foreign module is imported
        raise UnknownTarget(f"target {spec} cannot be imported ({_one_line(error)})") from error
    if not isinstance(found, type):
        raise UnknownTarget(f"target {spec} is {found!r:.60}, and not a class")
    if inspect.isabstract(found):
        raise UnknownTarget(f"target {spec} is not filled in yet: {_abstract_methods(found)}")
    return found


def _entry(spec: str, device: str) -> EntryPoint:
    entries = registered()
    if spec in entries:
        return entries[spec]
    devices = families()[spec]
    chosen = device or devices[0]
    if chosen not in devices:
        raise UnknownTarget(f"target {spec} has no device {chosen!r}; it has {', '.join(devices)}")
    return entries[f"{spec}-{chosen}"]


def _module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UnknownTarget(f"target file {str(path)!r:.200} does not exist")
    name = f"kvproof_target_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UnknownTarget(f"target file {path} is no Python module")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the file may import its neighbours
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look classes up by module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _abstract_methods(target: type[Any]) -> str:
    """The methods that a class still declares as abstract, as they stand in its file."""
    names: list[str] = sorted(target.__abstractmethods__, key=lambda name: _line_of(getattr(target, name)))
    count = f"{len(names)} method{'' if len(names) == 1 else 's'}"
    verb = "is" if len(names) == 1 else "are"
    return f"{count} {verb} marked @abstractmethod ({', '.join(names)}); fill each in and remove its mark"


def _line_of(method: object) -> int:
    code = getattr(method, "__code__", None)
    return 0 if code is None else code.co_firstlineno


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text:.200}" if text else type(error).__name__
