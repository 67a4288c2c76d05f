"""Coverage of the machine: which guards have answered yes and no.

Recording replaces guards by slower ones, so it is done in small scopes.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType

from kvmodel.guards import GUARDS


@contextmanager
def recording() -> Iterator[dict[str, int]]:
    """Counts of `name/yes` and `name/no` for every guard of the machine, while the context lasts."""
    counts = {f"{name}/{answer}": 0 for name in GUARDS for answer in ("yes", "no")}
    originals = {id(question): name for name, question in GUARDS.items()}
    replaced: list[tuple[ModuleType, str, object]] = []
    for module_name, module in list(sys.modules.items()):
        if module_name != "kvmodel" and not module_name.startswith("kvmodel."):
            continue
        for attribute, value in list(vars(module).items()):
            name = originals.get(id(value))
            if name is not None:
                replaced.append((module, attribute, value))
                setattr(module, attribute, _recorder(GUARDS[name], name, counts))
    try:
        yield counts
    finally:
        for module, attribute, value in replaced:
            setattr(module, attribute, value)


def _recorder(question: Callable[..., bool], name: str, counts: dict[str, int]) -> Callable[..., bool]:
    yes, no = f"{name}/yes", f"{name}/no"

    @wraps(question)
    def asked(*args: object) -> bool:
        answer = question(*args)
        counts[yes if answer else no] += 1
        return answer

    return asked
