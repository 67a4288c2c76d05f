"""The memory of a second host tier: files that are mapped into memory, in a temporary folder of their own.

What is written there goes through the page cache to the disk when the system likes; nothing is ever synchronised, since
nothing is to be found there after the process.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kvoffload.kv_tensors import Tensor, torch


class MappedFiles:
    """Files in one temporary folder. OSError where none can be made; the folder goes with `close`, or with this."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="kvoffload-second-")

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    def words(self, name: str, shape: Sequence[int]) -> Tensor:
        """A new file of 64-bit words, all zero, as a tensor of this shape: what is written to it is in the file."""
        path = self.folder / name
        size = math.prod(shape)
        path.touch(exist_ok=False)
        return torch.from_file(str(path), shared=True, size=size, dtype=torch.int64).view(*shape)

    def close(self) -> None:
        """Remove the files and their folder. Tensors that still map them stay usable. Idempotent."""
        self._folder.cleanup()
