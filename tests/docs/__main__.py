"""Write what commands print into the pages that show it: `python -m tests.docs PAGE...`. Blocks with `...` are left."""

import sys
import tempfile
from pathlib import Path

from tests.docs.blocks import CONSOLE, SCRIPTS, blocks, typed
from tests.docs.not_run import is_of_make
from tests.docs.typing_page import ELLIPSIS, Desk


def main(names: list[str]) -> None:
    for name in names:
        page = Path(name)
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(_typed_again(text, Desk(Path(folder))))


def _typed_again(text: str, desk: Desk) -> str:
    lines = text.splitlines()
    written: list[str] = []
    done = 0
    for block in blocks(text):
        if block.kind not in CONSOLE + SCRIPTS or block.reason or is_of_make(block):
            continue
        ran = [(command, printed, desk.type(command, block.kind in SCRIPTS)) for command, printed in typed(block)]
        if block.kind in SCRIPTS:
            continue
        written += lines[done : block.line]
        for command, printed, seen in ran:
            written.append(f"$ {command}")
            written += printed if ELLIPSIS in printed else seen.lines
        done = block.line + len(block.lines)
    return "\n".join([*written, *lines[done:], ""])


if __name__ == "__main__":
    main(sys.argv[1:])
