"""The diagram for pull requests."""

from kvproof.report.mermaid import mermaid
from tests.desk import stories


def test_who_did_what() -> None:
    story = stories.refuted()
    story = story._replace(steps=(*story.steps, story.steps[0]._replace(command="run w0 store", note="job 1 copied")))
    assert mermaid(story).splitlines() == [
        "```mermaid",
        "sequenceDiagram",
        "  participant C as client",
        "  participant E as engine",
        "  participant W0 as worker 0",
        "  C->>E: 1 submit x",
        "  E->>E: 2 schedule",
        "  Note right of E: admit x: d0",
        "  E->>E: 3 launch",
        "  Note right of E: job 1",
        "  W0->>W0: 4 run w0 store",
        "  Note right of W0: job 1 copied",
        "  Note over C,W0: owners-account-for-references: "
        "Device block 0 counts 1 reference and has 2 owners (x, job 1).",
        "```",
    ]


def test_a_long_story_is_shown_from_its_end() -> None:
    lines = mermaid(stories.long(200)).splitlines()
    assert "  Note over E: 120 earlier commands" in lines
    assert len(lines) < 200


def test_nothing_from_a_trace_is_markup() -> None:
    said = mermaid(stories.hostile())
    assert said.count("```") == 2
    assert not set("<>;`") & set(said.replace("->>", "").replace("```", ""))
