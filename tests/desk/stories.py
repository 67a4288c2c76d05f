"""Stories to draw: one that was told by the engine, and one that is as long and as odd as a page must bear."""

from kvproof.report.story import Cell, Lane, Step, Story

LANES = (
    Lane("x", "request"),
    Lane("d0", "device block"),
    Lane("h0", "host block"),
    Lane("job 1", "job"),
    Lane("job 11", "job"),
    Lane("w0 store", "stream"),
)

BEFORE = {"x": Cell("WAITING", "waiting", "x WAITING"), "d0": Cell("free", "free", "d0: 0 references")}
HELD = {"x": Cell("RUNNING", "running", "x RUNNING"), "d0": Cell("x", "held", "d0: 1 reference, owned by x")}
STORED = HELD | {"job 1": Cell("store launched", "live", "job 1: store d0 -> h0; LIVE; launched")}
RIGHT = STORED | {"d0": Cell("x job 1", "held", "d0: 2 references, owned by x, job 1")}
WRONG = STORED | {"d0": Cell("x job 1 (1 counted)", "wrong", "d0: 1 reference, owned by x, job 1")}


def refuted() -> Story:
    """Three steps, at the last of which one reference is missing."""
    return Story(
        title="toy, pinning, s1",
        lanes=LANES,
        start=BEFORE,
        steps=(Step("submit x", "", BEFORE), Step("schedule", "admit x: d0", HELD), Step("launch", "job 1", RIGHT)),
        property="owners-account-for-references",
        sentence="Device block 0 counts 1 reference and has 2 owners (x, job 1).",
        facts=(("d0 references 2: x, job 1", "d0 references 1: x"),),
        reasons="Rule: kvmodel/rules/launch.py.",
        contract=RIGHT,
        target=WRONG,
    )


def long(steps: int) -> Story:
    """So many steps, each of which changes a request, a block and a stream."""
    told = []
    for number in range(steps):
        picture = {
            "x": Cell(f"RUNNING {number}", "running", f"x RUNNING, {number} computed"),
            "d0": Cell("x" if number % 2 else "free", "held" if number % 2 else "free", f"d0 at {number}"),
            "w0 store": Cell(f"job {number}", "ready", f"w0 store: job {number}"),
        }
        told.append(Step(f"run w0 store, {number}", f"job {number} copied", picture))
    return Story("toy, pinning, s7", LANES, BEFORE, tuple(told))


HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">'


def hostile() -> Story:
    """Markup wherever a trace or a target has text of its own."""
    cell = Cell(HOSTILE, "held\" onclick=\"document.title='owned'", HOSTILE)
    story = refuted()
    return story._replace(
        title=HOSTILE,
        start={"x": cell},
        steps=(Step(HOSTILE, HOSTILE, {"x": cell, "d0": cell}),),
        property=HOSTILE,
        sentence=HOSTILE,
        facts=((HOSTILE, HOSTILE),),
        reasons=HOSTILE,
        contract={"x": cell},
        target={"x": cell, "d0": cell},
    )
