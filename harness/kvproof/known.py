"""Violations that a project knows of and lives with for now, one id a line in the file that `--known` names.

# what we wait for
7c1f9e  reset frees under a store; issue 812, fixed in the next release
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvproof.bounded import Unfit, read_bounded
from kvproof.failure import FINGERPRINT_LENGTH
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

_ID = re.compile(rf"[0-9a-f]{{{FINGERPRINT_LENGTH}}}")
MAX_BYTES = 1024 * 1024


def read_known(path: Path) -> Mapping[str, str]:
    """Id -> the rest of its line. Raises BadUsage for a file that cannot be read or a line that begins with no id."""
    try:
        lines = read_bounded(path, MAX_BYTES).decode("utf-8").split("\n")
    except Unfit as error:
        raise BadUsage(f"known file {path} {error}; it has one id a line") from None
    except UnicodeDecodeError:
        raise BadUsage(f"known file {path} is not UTF-8 text; it has one id a line") from None
    known: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        if not words.replace("\t", " ").isprintable():
            raise BadUsage(f"known file {path} has {words!r:.40} in line {number}, which cannot be printed")
        identifier, _, reason = words.partition(" ")
        if not _ID.fullmatch(identifier):
            raise BadUsage(
                f"known file {path} has {identifier!r:.40} in line {number}, which is no id of a failure; "
                f"an id has {FINGERPRINT_LENGTH} hexadecimal digits, as in 7c1f9e"
            )
        if identifier in known:
            raise BadUsage(f"known file {path} has {identifier} in line {number} once more; list it once")
        known[identifier] = reason.strip()
    return known


def applied(results: Sequence[Result], known: Mapping[str, str], *, complete: bool) -> tuple[Result, ...]:
    """The results with what is known marked KNOWN, followed by one FIXED for each listed id that did not occur.

    `complete` says that this run would have found all that are listed: without it, and whenever something was cut
    short or failed, an absence means nothing, and nothing is called FIXED.
    """
    marked: list[Result] = []
    seen: set[str] = set()
    for result in results:
        failure = result.failure
        if result.verdict is Verdict.REFUTED and failure is not None and failure.fingerprint in known:
            seen.add(failure.fingerprint)
            reason = known[failure.fingerprint]
            detail = f"known violation {failure.fingerprint} of {failure.property}" + (f": {reason}" if reason else "")
            marked.append(dataclasses.replace(result, verdict=Verdict.KNOWN, detail=detail))
        else:
            marked.append(result)
    unclear = any(result.verdict in (Verdict.UNDETERMINED, Verdict.ERROR) for result in results)
    if complete and not unclear and results:
        for identifier, reason in known.items():
            if identifier not in seen:
                detail = f"{identifier} did not occur; take it off the list" + (f" ({reason})" if reason else "")
                marked.append(Result("known", results[0].target, None, "", None, Verdict.FIXED, 0.0, detail=detail))
    return tuple(marked)
