"""A hash of all of an engine's state, by which a search knows that it has been there before."""

import io
import pickle
import types
from hashlib import sha256
from typing import Any

from kvproof.obligations.books import Unreadable


class _Digester(pickle.Pickler):
    """Writes down everything that is reachable, but for what decides nothing: settings, code, statistics, times."""

    def persistent_id(self, thing: Any) -> str | None:
        kind = type(thing)
        if kind is float or isinstance(thing, _CODE):
            return kind.__name__
        if kind.__module__.startswith(("vllm.config", "logging", "threading", "_thread")) or kind.__name__ in _IDLE:
            return kind.__name__
        return kind.__name__ if kind.__name__.endswith(("Stats", "Metrics")) else None


_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type)
_IDLE = frozenset({"StructuredOutputManager", "SamplingParams", "KVCacheConfig", "MultiModalRegistry"})
"""Parts of vLLM that do nothing in what is done here."""


def digest(*parts: Any) -> bytes:
    """A hash of all that these objects hold, whatever it is. Raises Unreadable where something cannot be read."""
    written = io.BytesIO()
    try:
        _Digester(written, protocol=5).dump(parts)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Unreadable(f"the state of this vllm cannot be written down: {error}") from error
    return sha256(written.getvalue()).digest()
