"""Times on the command line: how long a check may take before it is cut short, or a call until it is a hang."""

import re

from kvproof.usage import BadUsage

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"([+-]?)(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)")


def parse_budget(text: str) -> float:
    """Seconds that `60s`, `2m`, `1.5h` or `500ms` stand for. Raises BadUsage unless it is more than zero."""
    return parse_time("budget", text)


def parse_time(what: str, text: str) -> float:
    """The same of another flag, which errors call `what`."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise BadUsage(f"{what} {text!r:.40} is not a time; write 60s, 2m or 500ms")
    sign, number, unit = match.groups()
    seconds = float(number) * _UNITS[unit]
    if sign == "-" or seconds <= 0:
        raise BadUsage(f"{what} {text!r} is not more than zero; write 60s, 2m or 500ms")
    return seconds
