"""The page that `--html` names: the timeline of a story."""

from pathlib import Path

from kvproof.atomic import write_whole
from kvproof.report.story import Story
from kvproof.report.timeline import timeline
from kvproof.usage import BadUsage


def check_page(name: str | None) -> None:
    """Raises BadUsage if a page cannot be written there; asked before the work, and not after it."""
    if name is not None and (Path(name).is_dir() or not Path(name).parent.is_dir()):
        raise BadUsage(f"page {name!r:.200} cannot be written; name a file in a folder that exists")


def write_page(name: str, story: Story) -> None:
    """Write it, as a whole or not at all. Raises BadUsage."""
    try:
        write_whole(Path(name), timeline(story))
    except OSError as error:
        raise BadUsage(f"page {name} cannot be written ({error.strerror})") from None
