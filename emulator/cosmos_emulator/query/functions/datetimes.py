"""Dates and times: ISO 8601 strings in UTC, counted in ticks of 100 nanoseconds since 1970."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import UNDEFINED, number

_SECOND: Final = 10_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FORM: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?)?Z?"
)
_PARTS: Final = {
    name: part
    for part, names in {
        "year": ("year", "yyyy", "yy"),
        "month": ("month", "mm", "m"),
        "day": ("day", "dd", "d"),
        "hour": ("hour", "hh"),
        "minute": ("minute", "mi", "n"),
        "second": ("second", "ss", "s"),
        "millisecond": ("millisecond", "ms"),
        "microsecond": ("microsecond", "mcs"),
        "nanosecond": ("nanosecond", "ns"),
    }.items()
    for name in names
}
# Parts of fixed length, in nanoseconds: one of them is less than a tick.
_LENGTHS: Final = {
    "day": 86_400 * 10**9,
    "hour": 3_600 * 10**9,
    "minute": 60 * 10**9,
    "second": 10**9,
    "millisecond": 10**6,
    "microsecond": 10**3,
    "nanosecond": 1,
}


def read_datetime(text: str) -> int | None:
    """The ticks of a date and time; None if the text is not one."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(field or 0) for field in match.groups()[:6])
    fraction = int((match[7] or "").ljust(7, "0"))
    return _ticks(year, month, day, hour, minute, second, fraction)


def _ticks(
    year: int,
    month: int,
    day: int,
    hour: int = 0,
    minute: int = 0,
    second: int = 0,
    fraction: int = 0,
) -> int | None:
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH
    except (ValueError, OverflowError):
        return None
    if not 0 <= fraction < _SECOND:
        return None
    return (whole.days * 86_400 + whole.seconds) * _SECOND + fraction


def _calendar(ticks: int) -> tuple[datetime, int] | None:
    """The date and time in whole seconds, and the fraction; None outside the calendar."""
    seconds, fraction = divmod(ticks, _SECOND)
    try:
        return _EPOCH + timedelta(seconds=seconds), fraction
    except OverflowError:
        return None


def write_datetime(ticks: int | None) -> Any:
    if ticks is None or (moment := _calendar(ticks)) is None:
        return UNDEFINED
    whole, fraction = moment
    return f"{whole:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f".{fraction:07}Z"


def _read(text: Any) -> int | None:
    return read_datetime(text) if type(text) is str else None


def _part(name: Any) -> str | None:
    return _PARTS.get(name.lower()) if type(name) is str else None


def _shift(ticks: int, part: str, count: int) -> int | None:
    """Later by a number of parts; the last day of a month where the day does not exist."""
    if part in _LENGTHS:
        return ticks + count * _LENGTHS[part] // 100
    moment = _calendar(ticks)
    if moment is None:
        return None
    whole, fraction = moment
    months = whole.year * 12 + whole.month - 1 + count * (12 if part == "year" else 1)
    year, month = divmod(months, 12)
    clock = (whole.hour, whole.minute, whole.second, fraction)
    for day in range(whole.day, 27, -1):
        if (shifted := _ticks(year, month + 1, day, *clock)) is not None:
            return shifted
    return _ticks(year, month + 1, min(whole.day, 28), *clock)


def _add(part: Any, count: Any, text: Any) -> Any:
    name, ticks = _part(part), _read(text)
    if name is None or ticks is None or type(count) is not int:
        return UNDEFINED
    return write_datetime(_shift(ticks, name, count))


def _months(ticks: int) -> int:
    moment = _calendar(ticks)
    assert moment is not None
    return moment[0].year * 12 + moment[0].month - 1


def _difference(part: Any, start: Any, end: Any) -> Any:
    """How many boundaries of the part lie between the two."""
    name, first, last = _part(part), _read(start), _read(end)
    if name is None or first is None or last is None:
        return UNDEFINED
    if name in _LENGTHS:
        length = _LENGTHS[name]
        return last * 100 // length - first * 100 // length
    size = 12 if name == "year" else 1
    return _months(last) // size - _months(first) // size


def _bin(text: Any, part: Any, size: Any = 1, origin: Any = "1970-01-01T00:00:00") -> Any:
    name, ticks, start = _part(part), _read(text), _read(origin)
    if name is None or ticks is None or start is None or type(size) is not int or size < 1:
        return UNDEFINED
    if name in _LENGTHS:
        length = size * _LENGTHS[name]
        return write_datetime(start + (ticks - start) * 100 // length * length // 100)
    months = size * (12 if name == "year" else 1)
    bins = (_months(ticks) - _months(start)) // months
    begun = _shift(start, "month", bins * months)
    if begun is not None and begun > ticks:
        begun = _shift(start, "month", (bins - 1) * months)
    return write_datetime(begun)


def _from_parts(*parts: Any) -> Any:
    if not all(type(part) is int for part in parts):
        return UNDEFINED
    return write_datetime(_ticks(*parts))


def _value_of_part(part: Any, text: Any) -> Any:
    name, ticks = _part(part), _read(text)
    if name is None or ticks is None or (moment := _calendar(ticks)) is None:
        return UNDEFINED
    whole, fraction = moment
    fractions = {
        "millisecond": fraction // 10_000,
        "microsecond": fraction // 10,
        "nanosecond": fraction * 100,
    }
    return fractions[name] if name in fractions else getattr(whole, name)


def _to_ticks(text: Any) -> Any:
    ticks = _read(text)
    return UNDEFINED if ticks is None else number(float(ticks))


def _to_timestamp(text: Any) -> Any:
    ticks = _read(text)
    return UNDEFINED if ticks is None else ticks // 10_000


def _from_ticks(ticks: Any) -> Any:
    return write_datetime(ticks) if type(ticks) is int else UNDEFINED


def _from_timestamp(timestamp: Any) -> Any:
    return write_datetime(timestamp * 10_000) if type(timestamp) is int else UNDEFINED


_SPECIFIER: Final = re.compile(
    r"\\(?P<escaped>.)|'(?P<quoted>[^']*)'|(?P<run>y+|M+|d+|H+|h+|m+|s+|f+|F+|t+)|(?P<other>.)",
    re.DOTALL,
)


def _format(text: Any, form: Any) -> Any:
    ticks = _read(text)
    if ticks is None or type(form) is not str or (moment := _calendar(ticks)) is None:
        return UNDEFINED
    whole, fraction = moment

    def render(match: re.Match[str]) -> str:
        run = match["run"]
        if run is None:
            literal: str = match["escaped"] or match["quoted"] or match["other"] or ""
            return literal
        length = len(run)
        if run[0] in "fF":
            digits = f"{fraction:07}"[:length]
            return digits.rstrip("0") if run[0] == "F" else digits
        if run[0] == "t":
            return f"{whole:%p}"[:length]
        if run[0] in "Md" and length > 2:
            names = {"M": ("%b", "%B"), "d": ("%a", "%A")}[run[0]]
            return whole.strftime(names[length > 3])
        value = {
            "y": whole.year if length > 2 else whole.year % 100,
            "M": whole.month,
            "d": whole.day,
            "H": whole.hour,
            "h": whole.hour % 12 or 12,
            "m": whole.minute,
            "s": whole.second,
        }[run[0]]
        return f"{value:0{length}}"

    return _SPECIFIER.sub(render, form)


def _ago(now: int, part: Any, count: Any) -> Any:
    name = _part(part)
    if name is None or type(count) is not int:
        return UNDEFINED
    return write_datetime(_shift(now, name, -count))


def _clock(render: Callable[[int], Any]) -> Function:
    return fixed(render, 0)


FUNCTIONS: Final[dict[str, Function]] = {
    "DATETIMEADD": fixed(_add, 3),
    "DATETIMEBIN": Function(_bin, 2, 4),
    "DATETIMEDIFF": fixed(_difference, 3),
    "DATETIMEFORMAT": fixed(_format, 2),
    "DATETIMEFROMPARTS": Function(_from_parts, 3, 7),
    "DATETIMEPART": fixed(_value_of_part, 2),
    "DATETIMETOTICKS": fixed(_to_ticks, 1),
    "DATETIMETOTIMESTAMP": fixed(_to_timestamp, 1),
    "DAY": fixed(lambda text: _value_of_part("day", text), 1),
    "MONTH": fixed(lambda text: _value_of_part("month", text), 1),
    "TICKSTODATETIME": fixed(_from_ticks, 1),
    "TIMESTAMPTODATETIME": fixed(_from_timestamp, 1),
    "YEAR": fixed(lambda text: _value_of_part("year", text), 1),
}

# Called with the ticks of the request before their own arguments.
CLOCK_FUNCTIONS: Final[dict[str, Function]] = {
    "AGO": fixed(_ago, 2),
    "GETCURRENTDATETIME": _clock(write_datetime),
    "GETCURRENTDATETIMESTATIC": _clock(write_datetime),
    "GETCURRENTTICKS": _clock(lambda now: number(float(now))),
    "GETCURRENTTICKSSTATIC": _clock(lambda now: number(float(now))),
    "GETCURRENTTIMESTAMP": _clock(lambda now: now // 10_000),
    "GETCURRENTTIMESTAMPSTATIC": _clock(lambda now: now // 10_000),
    "NOW": _clock(write_datetime),
}
