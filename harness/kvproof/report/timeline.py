"""The timeline: one HTML page that holds a story and all that draws it, and asks nothing of any network."""

import html
import json
from importlib import resources

from kvproof.report.story import Cell, Picture, Story, disputed

_PAGE = resources.files("kvproof.report")


def timeline(story: Story) -> str:
    """The page. Everything that comes from a trace is data in it, and never markup."""
    data = json.dumps(_data(story), separators=(",", ":"), ensure_ascii=True)
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    page = _read("timeline.html")
    for mark, text in (
        ("%TITLE%", html.escape(f"kvproof: {story.property or 'no violation'}")),
        ("%STYLE%", _read("timeline.css")),
        ("%SCRIPT%", _read("timeline.js")),
        ("%DATA%", data),  # last: nothing in it is looked at again
    ):
        page = page.replace(mark, text, 1)
    return page


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _data(story: Story) -> dict[str, object]:
    """What the script draws. Cells repeat from step to step: each is in a table once, and pictures hold its index."""
    table: dict[Cell, int] = {}
    names = [lane.name for lane in story.lanes]

    def cells(picture: Picture | None) -> list[int] | None:
        if picture is None:
            return None
        return [table.setdefault(picture[name], len(table)) if name in picture else -1 for name in names]

    pictures = [cells(story.start), *(cells(step.picture) for step in story.steps)]
    contract, target = cells(story.contract), cells(story.target)
    return {
        "title": story.title,
        "lanes": [[lane.name, lane.group] for lane in story.lanes],
        "steps": [[step.command, step.note] for step in story.steps],
        "pictures": pictures,
        "property": story.property,
        "sentence": story.sentence,
        "facts": [list(fact) for fact in story.facts],
        "reasons": story.reasons,
        "contract": contract,
        "target": target,
        "disputed": list(disputed(story)),
        "cells": [list(cell) for cell in table],
    }
