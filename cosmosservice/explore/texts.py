"""Text as the page shows it: stored text cannot hide or reorder anything, or run scripts."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any, Final

# Control characters, and those that are invisible or change the direction of what follows. A new
# line and a tab may stay, and the joiners that emoji and some scripts are written with.
_HIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
LONGEST: Final = 20_000  # characters
_BRIEF: Final = 120
_MONTH: Final = 30 * 24 * 3600.0


def visible(text: str) -> str:
    """Hidden characters as their codes, such as `\\u202e`."""
    return _HIDDEN.sub(_code, text.replace("\r\n", "\n"))


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, longest: int = LONGEST) -> str:
    """Cuts long text. The raw document has all of it."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({len(text) - longest:,} more characters)"


def brief(text: str) -> str:
    """One line of the text, shown beside a folded block."""
    line = " ".join(text[: 4 * _BRIEF].split())
    return line if len(line) <= _BRIEF else f"{line[:_BRIEF].rstrip()} …"


def whole_text(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def value_text(value: Any, longest: int = LONGEST, indent: int | None = None) -> str:
    return shortened(whole_text(value, indent), longest)


def moment(timestamp: float) -> str:
    """Local time: the browser is on the same machine."""
    try:
        at = datetime.datetime.fromtimestamp(timestamp, datetime.UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
    return at.isoformat(" ", "seconds")[:19]


def instant(timestamp: float) -> str:
    """Machine-readable, so that the browser can keep `5 minutes ago` up to date."""
    try:
        return datetime.datetime.fromtimestamp(timestamp, datetime.UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


def size(count: int) -> str:
    """`512 bytes`, `1.5 KB`."""
    for large, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if count >= large:
            return f"{count / large:.3g} {unit}"
    return counted(count, "byte")


def compact(number: float) -> str:
    """`1.5k`, `20k`, `3M`: for a scale."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def ago(timestamp: float, now: float) -> str:
    """`5 minutes ago`; beyond a month the date."""
    seconds = now - timestamp
    if not 0 <= seconds < _MONTH:
        return moment(timestamp)[:16]
    for size, unit in ((24 * 3600, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def duration(seconds: float) -> str:
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 120:
        return f"{seconds:.1f} s"
    try:
        return str(datetime.timedelta(seconds=round(seconds)))
    except (OverflowError, ValueError):
        return str(seconds)


def counted(number: int, noun: str) -> str:
    """`1 session`, `2,000 sessions`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def natural(name: str) -> list[tuple[int, str]]:
    """Orders chart19 before chart109."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
