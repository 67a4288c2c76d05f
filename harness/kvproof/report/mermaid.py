"""A story as a Mermaid sequence diagram, for the comment of a pull request: GitHub draws it."""

import re

from kvproof.report.story import Story

MOST_STEPS = 80
"""Longer stories are shown from their end: a diagram with more is not drawn, or not read."""

_UNSAFE = re.compile(r"[;#<>&\"'`\\{}\[\]]")


def mermaid(story: Story) -> str:
    """The diagram, in a fenced block, without a line break at its end. Client, engine and each worker take part."""
    workers = sorted({lane.name.partition(" ")[0] for lane in story.lanes if lane.group == "stream"})
    lines = ["```mermaid", "sequenceDiagram", "  participant C as client", "  participant E as engine"]
    lines += [f"  participant {worker.upper()} as worker {worker[1:]}" for worker in workers]
    hidden = max(len(story.steps) - MOST_STEPS, 0)
    if hidden:
        lines.append(f"  Note over E: {hidden} earlier commands")
    for number, step in enumerate(story.steps[hidden:], start=hidden + 1):
        verb, *rest = step.command.split(" ")
        by_worker = next((worker.upper() for worker in workers if worker in rest), "")
        if verb == "run" and by_worker:
            arrow = f"{by_worker}->>{by_worker}"
        elif by_worker:
            arrow = f"{by_worker}->>E"
        elif verb in ("submit", "abort", "reset", "preempt", "free"):
            arrow = "C->>E"
        else:
            arrow = "E->>E"
        lines.append(f"  {arrow}: {number} {_safe(step.command)}")
        if step.note:
            side = by_worker if verb == "run" and by_worker else "E"
            lines.append(f"  Note right of {side}: {_safe(step.note)}")
    if story.property is not None:
        lines.append(f"  Note over C,{(workers or ['e'])[-1].upper()}: {_safe(f'{story.property}: {story.sentence}')}")
    return "\n".join([*lines, "```"])


def _safe(text: str) -> str:
    """Without what means something to Mermaid, to HTML or to the fence around it."""
    return _UNSAFE.sub("", text.replace("->", "to").replace('"', "")).replace("\n", " ")
