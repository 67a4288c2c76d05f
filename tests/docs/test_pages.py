"""Every command block of the documentation is typed, and prints what its page says, or says on the page why not."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import COMMANDS, CONSOLE, NOT_RUN, SCRIPTS, blocks, pages, typed
from tests.docs.typing_page import ROOT, Desk, agrees

PAGES = pages(ROOT)
MOST_NOT_RUN = 12
"""So many blocks of all pages may be left out, each for a reason that its page gives."""


@pytest.mark.pages
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for block in blocks(page.read_text()):
        if block.kind not in COMMANDS or block.reason:
            continue
        for command, printed in typed(block):
            ran = desk.type(command, script=block.kind in SCRIPTS)
            where = f"{page.name}, block of line {block.line}: {command}\n" + "\n".join(ran.lines)
            if block.kind in CONSOLE:
                assert agrees(printed, ran.lines), where
            else:
                assert ran.status == 0, where


def test_few_blocks_are_left_out() -> None:
    left_out = [block for page in PAGES for block in blocks(page.read_text()) if block.reason]
    assert 0 < len(left_out) <= MOST_NOT_RUN
    assert all(len(block.reason) > 20 for block in left_out)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_hides_in_a_block_of_another_kind(page: Path) -> None:
    """The README's blocks are not labelled; make check and make test, which it shows, are what CI runs."""
    for block in blocks(page.read_text()):
        typed_here = [
            line for line in block.lines if re.match(r"(?:\$ )?(?:kvproof|make|pip|python\S*) (?!.*cannot run)", line)
        ]
        assert block.kind in COMMANDS or not typed_here, f"{page.name}, block of line {block.line}: {typed_here}"


def test_blocks_are_found_with_their_reasons() -> None:
    text = f"Words.\n\n```console\n$ a\nb\n$ c\n```\n{NOT_RUN}it takes hours.\n\n```sh\nd\n```\n```python\ne\n```\n"
    found = blocks(text)
    assert [(block.kind, block.line, block.reason) for block in found] == [
        ("console", 3, ""),
        ("sh", 10, "it takes hours."),
        ("python", 13, ""),
    ]
    assert typed(found[0]) == [("a", ("b",)), ("c", ())]
    with pytest.raises(ValueError, match="the block of line 1 is not closed"):
        blocks("```sh\na\n")


@pytest.mark.parametrize(
    ("printed", "seen", "right"),
    [
        (("PASSED in 9.5 s",), ("PASSED in 11 s",), True),
        (("a", "...", "d"), ("a", "b", "c", "d"), True),
        (("a", "...", "d"), ("a", "d"), True),
        (("a", "d"), ("a", "b", "d"), False),
        (("a",), ("a", "b"), False),
        ((), ("error",), False),
        (("3 commands",), ("4 commands",), False),
    ],
)
def test_page_and_screen_agree_line_by_line(printed: tuple[str, ...], seen: tuple[str, ...], right: bool) -> None:
    assert agrees(printed, seen) is right


def test_a_command_that_prints_something_else_is_seen(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.type("mkdir new; cd new; echo 'in it'").lines == ("in it",)
    assert desk.type("basename $PWD; exit 3") == (3, ("new",))
    assert desk.type("echo $?") == (0, ("3",))
    assert desk.type("false\necho never", script=True) == (1, ())
    assert desk.type("kvproof --version").lines == ("kvproof 0.1.0",)
