"""Every command block of the documentation is typed, and prints what its page says, or says on the page why not."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import COMMANDS, CONSOLE, NOT_RUN, SCRIPTS, blocks, pages, typed
from tests.docs.not_run import OUTSIDE_OF_CI, UNTYPED, first_command, is_of_make, targets
from tests.docs.typing_page import ROOT, Desk, agrees

PAGES = pages(ROOT)
TYPED = [page for page in PAGES if any(block.kind in COMMANDS for block in blocks(page.read_text()))]


@pytest.mark.pages
@pytest.mark.parametrize("page", TYPED, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for block in blocks(page.read_text()):
        if block.kind not in COMMANDS or block.reason or is_of_make(block):
            continue
        for command, printed in typed(block):
            ran = desk.type(command, script=block.kind in SCRIPTS)
            where = f"{page.name}, block of line {block.line}: {command}\n" + "\n".join(ran.lines)
            if block.kind in CONSOLE:
                assert agrees(printed, ran.lines), where
            else:
                assert ran.status == 0, where


def test_what_is_not_typed_is_listed_with_its_reason_and_so_on_its_page() -> None:
    found = [(page.relative_to(ROOT).as_posix(), block) for page in PAGES for block in blocks(page.read_text())]
    untyped = {(page, first_command(block)): block.reason for page, block in found if block.reason}
    assert untyped.keys() == UNTYPED.keys()
    assert all(len(reason) > 20 for reason in untyped.values())


def test_what_pages_show_of_make_is_run_by_ci_or_listed_with_its_reason() -> None:
    shown = [block for page in PAGES for block in blocks(page.read_text()) if is_of_make(block) and not block.reason]
    made = {target for block in shown for target in targets(block)}
    ran = {
        word
        for line in re.findall(r"^make (.*)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
        for word in line.split()
    }
    assert made - ran == OUTSIDE_OF_CI.keys()
    assert {"check", "test", "bugs", "vllm"} <= made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_hides_in_a_block_of_another_kind(page: Path) -> None:
    for block in blocks(page.read_text()):
        typed_here = [
            line
            for line in block.lines
            if re.match(r"(?:\$ )?(?:kvproof|make|bash|pip|python\S*) (?!.*cannot run|\d)", line)
        ]
        assert block.kind in COMMANDS or not typed_here, f"{page.name}, block of line {block.line}: {typed_here}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_are_not_broken_and_others_are_whole_addresses(page: Path) -> None:
    """Those of the site mkdocs looks at too. What is behind an address elsewhere no test asks: CI has no network."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(?:[/?#][^\s<>\"]*)?", link), link
        elif not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), link


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
