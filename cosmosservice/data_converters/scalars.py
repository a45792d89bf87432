"""Single values that JSON, or a store whose numbers are doubles, cannot hold as they are.

Such a value travels as an object with one key, its tag: `{"$date": "2025-01-27"}`.
"""

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

_EXACT_INT = 2**53  # beyond it a double skips integers
_DECIMAL_BITS = 10_000  # Python refuses to print longer integers in decimal


def well_formed(text: str) -> bool:
    """Whether `text` has no lone surrogate, so that it can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_bytes(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode("ascii")


def decode_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _encode_str(value: str) -> Any:
    # JSON escapes would not do: "\ud83d\ude00" means one character there, two in Python.
    return value if well_formed(value) else {"$str": value.encode("unicode_escape").decode("ascii")}


def _encode_int(value: int) -> Any:
    if -_EXACT_INT <= value <= _EXACT_INT:
        return value
    return {"$int": str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)}


def encode_real(value: float) -> Any:
    """A float where a float is expected: a plain number unless JSON has none for it."""
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
        return {"$float": repr(value)}
    return value


def _encode_float(value: float) -> Any:
    # 1.0 would come back as 1.
    real = encode_real(value)
    return {"$float": value} if real is value and value.is_integer() else real


def _encode_moment(value: datetime | time) -> Any:
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    if zone or value.fold:
        return [value.isoformat(), zone, value.fold]
    return value.isoformat()


def _decode_moment(kind: type[datetime] | type[time], body: Any) -> datetime | time:
    if isinstance(body, str):
        return kind.fromisoformat(body)
    text, zone, fold = body
    value = kind.fromisoformat(text).replace(fold=fold)
    if zone:
        try:
            return value.replace(tzinfo=ZoneInfo(zone))
        except (KeyError, OSError, ValueError):  # no such zone here: keep the offset
            return value
    return value


def _tagged(tag: str, encode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: {tag: encode(value)}


def _as_it_is(value: Any) -> Any:
    return value


ENCODERS: dict[type, Callable[[Any], Any]] = {
    str: _encode_str,
    int: _encode_int,
    float: _encode_float,
    bool: _as_it_is,
    type(None): _as_it_is,
    bytes: _tagged("$bytes", encode_bytes),
    bytearray: _tagged("$bytearray", encode_bytes),
    datetime: _tagged("$datetime", _encode_moment),
    date: _tagged("$date", date.isoformat),
    time: _tagged("$time", _encode_moment),
    timedelta: _tagged("$timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    Decimal: _tagged("$decimal", str),
    UUID: _tagged("$uuid", str),
    complex: _tagged("$complex", lambda v: [repr(v.real), repr(v.imag)]),
}

DECODERS: dict[str, Callable[[Any], Any]] = {
    "$str": lambda body: body.encode("ascii").decode("unicode_escape"),
    "$int": lambda body: int(body, 0),
    "$float": float,
    "$bytes": decode_bytes,
    "$bytearray": lambda body: bytearray(decode_bytes(body)),
    "$datetime": lambda body: _decode_moment(datetime, body),
    "$date": date.fromisoformat,
    "$time": lambda body: _decode_moment(time, body),
    "$timedelta": lambda body: timedelta(*body),
    "$decimal": Decimal,
    "$uuid": UUID,
    "$complex": lambda body: complex(float(body[0]), float(body[1])),
}
