"""The page: what is in it, and in a real browser what it does."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kvproof.report.story import Story
from kvproof.report.timeline import timeline
from tests.desk import stories

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script id="story" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    loaded: dict[str, object] = json.loads(found.group(1))
    return loaded


def test_a_cell_is_written_once() -> None:
    data = data_of(timeline(stories.refuted()))
    cells = data["cells"]
    assert isinstance(cells, list)
    assert len(cells) == len({tuple(cell) for cell in cells})
    assert data["disputed"] == ["d0"]
    assert data["pictures"][0] == data["pictures"][1]  # type: ignore[index]


def test_the_page_asks_nothing_of_any_network() -> None:
    page = timeline(stories.refuted())
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest", page)


def test_markup_in_a_trace_stays_text() -> None:
    page = timeline(stories.hostile())
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert data_of(page)["sentence"] == stories.HOSTILE


DRIVER = """
const seen = [];
window.addEventListener("error", (event) => seen.push(String(event.message)));
window.addEventListener("load", () => {
  const result = {};
  try { %s } catch (error) { seen.push(String(error)); }
  result.errors = seen;
  const box = document.createElement("pre");
  box.id = "result";
  box.textContent = JSON.stringify(result);
  document.body.replaceChildren(box);
});
"""


@pytest.fixture
def browser(tmp_path: Path):
    """Opens a story in headless Chromium, runs a script in its page, and gives what the script put into `result`."""
    if BROWSER is None:
        if os.environ.get("KVPROOF_REQUIRE_BROWSER"):
            pytest.fail("KVPROOF_REQUIRE_BROWSER is set, and there is no chromium (apt-get install chromium)")
        pytest.skip("no chromium here (apt-get install chromium)")
    executable = BROWSER

    def run(story: Story, script: str, *also: str) -> dict[str, object]:
        page = tmp_path / "timeline.html"
        page.write_text(
            timeline(story).replace("<script>", f"<script>{DRIVER % script}</script>\n<script>", 1), encoding="utf-8"
        )
        flags = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1200,800",
            f"--user-data-dir={tmp_path}/p",
        )
        done = subprocess.run(
            [executable, *flags, *also, "--virtual-time-budget=20000", "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found is not None, done.stdout[-2000:] + done.stderr[-2000:]
        import html

        loaded: dict[str, object] = json.loads(html.unescape(found.group(1)))
        assert loaded["errors"] == []
        return loaded

    return run


KEY = 'const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));'
ROWS = (
    "const texts = (found) => [...found].map((one) => one.textContent);"
    'const rows = () => [...document.querySelectorAll("#step tr")].map((row) => texts(row.children));'
)


def test_it_opens_at_the_violation_with_both_sides(browser) -> None:
    seen = browser(
        stories.refuted(),
        ROWS
        + 'result.headline = by("headline").textContent; result.place = by("place").textContent; result.rows = rows();'
        'result.marked = texts(document.querySelectorAll("tr.parted.foremost td:first-child"));',
    )
    assert seen["headline"] == "REFUTED owners-account-for-references"
    assert seen["place"] == "step 3 of 3"
    assert seen["marked"] == ["d0"]
    rows = seen["rows"]
    assert isinstance(rows, list)
    assert rows[0] == ["", "before", "contract", "target"]
    assert rows[1] == [
        "d0",
        "d0: 1 reference, owned by x",
        "d0: 2 references, owned by x, job 1",
        "d0: 1 reference, owned by x, job 1",
    ]


def test_it_steps_by_key_button_and_slider(browser) -> None:
    seen = browser(
        stories.refuted(),
        KEY + 'result.places = []; const note = () => result.places.push(by("place").textContent);'
        'key("ArrowLeft"); note(); key("Home"); note(); key("ArrowLeft"); note(); by("on").click(); note();'
        'by("slider").value = 2; by("slider").dispatchEvent(new Event("input")); note(); key("End"); note();'
        'document.querySelectorAll(".head")[1].click(); note();',
    )
    assert seen["places"] == [f"step {step} of 3" for step in (2, 0, 0, 1, 2, 3, 1)]


def test_it_filters_by_name_and_a_job_is_not_another_that_begins_so(browser) -> None:
    seen = browser(
        stories.refuted(),
        'const bright = () => labels.filter((label) => !label.classList.contains("dim")).map((one) => one.textContent);'
        'const ask = (words) => { by("filter").value = words; by("filter").dispatchEvent(new Event("input"));'
        "return bright(); };"
        'result.job = ask("job 1"); result.both = ask("d0 w0"); result.none = ask("");'
        "labels[1].click(); result.clicked = bright(); labels[1].click(); result.again = bright().length;",
    )
    assert seen["job"] == ["job 1"]
    assert seen["both"] == ["d0", "w0 store"]
    assert isinstance(seen["none"], list)
    assert len(seen["none"]) == 6
    assert seen["clicked"] == ["d0"]
    assert seen["again"] == 6


def test_a_thousand_actions_do_not_lag(browser) -> None:
    seen = browser(
        stories.long(1000),
        "const started = performance.now(); for (let step = 0; step < 50; step++) go(step * 20);"
        'result.each = (performance.now() - started) / 50; result.cells = document.querySelectorAll(".cell").length;',
    )
    assert seen["cells"] == 3002
    assert isinstance(seen["each"], int | float)
    assert seen["each"] < 100, "milliseconds for one step"


def test_markup_in_a_trace_does_nothing(browser) -> None:
    seen = browser(stories.hostile(), "result.title = document.title; result.images = document.images.length;")
    assert seen["title"] != "owned"
    assert seen["images"] == 0


ON_PAPER = (
    "for (const rule of document.styleSheets[0].cssRules)"
    ' if (rule.media?.mediaText === "print") rule.media.mediaText = "all";'
)
"""What is said of paper holds of the screen too."""

SHOWN = "const shown = (place) => getComputedStyle(document.querySelector(place));"


def test_in_the_dark_it_is_dark(browser) -> None:
    script = SHOWN + 'result.paper = shown("body").backgroundColor; result.ink = shown("body").color;'
    light = browser(stories.refuted(), script)
    assert (light["paper"], light["ink"]) == ("rgb(255, 255, 255)", "rgb(28, 32, 36)")
    dark = browser(stories.refuted(), script, "--blink-settings=preferredColorScheme=0")
    assert (dark["paper"], dark["ink"]) == ("rgb(21, 24, 27)", "rgb(227, 230, 233)")


def test_on_paper_there_are_all_commands_and_no_buttons(browser) -> None:
    script = SHOWN + (
        'result.nav = shown("nav").display; result.commands = shown("#commands").display;'
        'result.texts = [...document.querySelectorAll("#commands li")].map((one) => one.textContent);'
        'result.lanes = shown(".grid").display;'
        'result.fits = document.querySelector(".grid").scrollWidth <= document.documentElement.clientWidth;'
    )
    screen = browser(stories.refuted(), script)
    assert (screen["nav"], screen["commands"]) == ("flex", "none")
    paper = browser(stories.refuted(), ON_PAPER + script)
    assert (paper["nav"], paper["commands"], paper["lanes"], paper["fits"]) == ("none", "block", "grid", True)
    texts = paper["texts"]
    assert isinstance(texts, list)
    assert len(texts) == 3
    many = browser(stories.long(100), ON_PAPER + script)
    assert (many["commands"], many["lanes"]) == ("block", "none")
