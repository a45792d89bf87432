"""Single values that JSON, or a store whose numbers are doubles, cannot represent.

Such a value is written as an object with one key, its tag: `{"$date": "2025-01-27"}`.
"""

import base64
import ipaddress
import math
import pathlib
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

_EXACT_INT = 2**53  # beyond it a double skips integers
_DECIMAL_BITS = 10_000  # Python refuses to print longer integers in decimal

# Values are only read if that takes time and memory in proportion to the length of their text.
# Beyond these limits, the tagged object is returned.
_INT_DIGITS = 4_300  # in decimal, which takes quadratic time to read; hex has no limit
_DECIMAL_EXPONENT = 999_999  # as in Python's own context; 1E+999999999 as an int takes a gigabyte
_FRACTION_BITS = 100_000  # of each half: what is read is reduced, in the square of the length
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")


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


def _decode_int(text: str) -> int:
    if len(text) > _INT_DIGITS and not text.lstrip("+-").startswith("0x"):
        raise ValueError("too many digits")
    return int(text, 0)


def _whole(body: Any) -> int:
    """An integer inside another value, with or without its tag."""
    if type(body) is dict:
        return _decode_int(body["$int"])
    if int(body) != body:
        raise ValueError("not an integer")
    return int(body)


def encode_real(value: float) -> Any:
    """A float where one is expected: a plain number, unless JSON cannot represent it."""
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
            return value.replace(tzinfo=_zone(zone))
        except (KeyError, OSError, ValueError):  # no such zone here: keep the offset
            return value
    return value


def _zone(key: str) -> ZoneInfo:
    # Not just any text: where the system has no such file, it would become a module's name.
    if not _ZONE.fullmatch(key):
        raise ValueError("not the name of a zone")
    return ZoneInfo(key)


def _encode_zone(value: ZoneInfo | timezone) -> Any:
    if isinstance(value, timezone):
        return _encode_wait(value.utcoffset(None))
    if not value.key:
        raise ValueError("a zone without a name")
    return value.key


def _decode_zone(body: Any) -> ZoneInfo | timezone | str:
    if not isinstance(body, str):
        return timezone(_decode_wait(body))
    try:
        return _zone(body)
    except (KeyError, OSError, ValueError):  # no such zone here
        return body


def _encode_wait(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _decode_wait(body: Any) -> timedelta:
    days, seconds, microseconds = body
    return timedelta(days, seconds, microseconds)


def _decode_decimal(text: str) -> Decimal:
    value = Decimal(text)
    if value.is_finite() and value and abs(value.adjusted()) > _DECIMAL_EXPONENT:
        raise ValueError("too large an exponent")
    return value


def _decode_fraction(body: Any) -> Fraction:
    numerator, denominator = map(_whole, body)
    if max(numerator.bit_length(), denominator.bit_length()) > _FRACTION_BITS:
        raise ValueError("too many digits")
    return Fraction(numerator, denominator)


def _encode_path(value: pathlib.PurePath) -> Any:
    text = _encode_str(str(value))
    return text if isinstance(value, pathlib.Path) else [type(value).__name__, text]


def _decode_path(body: Any) -> pathlib.PurePath:
    kind, text = ("Path", body) if not isinstance(body, list) else body
    return _PATHS[kind](text if isinstance(text, str) else _decode_str(text["$str"]))


_PATHS: dict[str, type[pathlib.PurePath]] = {
    "Path": pathlib.Path,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}
_ADDRESSES: dict[str, Callable[[str], Any]] = {
    cls.__name__: cls
    for cls in (
        ipaddress.IPv4Address,
        ipaddress.IPv6Address,
        ipaddress.IPv4Network,
        ipaddress.IPv6Network,
        ipaddress.IPv4Interface,
        ipaddress.IPv6Interface,
    )
}


def _decode_address(body: Any) -> Any:
    kind, text = body
    if not isinstance(text, str):  # a number is one too
        raise ValueError("not an address")
    return _ADDRESSES[kind](text)


def _decode_str(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape")


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
    timedelta: _tagged("$timedelta", _encode_wait),
    Decimal: _tagged("$decimal", str),
    UUID: _tagged("$uuid", str),
    complex: _tagged("$complex", lambda v: [repr(v.real), repr(v.imag)]),
    memoryview: _tagged("$bytes", lambda v: encode_bytes(v.tobytes())),
    Fraction: _tagged(
        "$fraction", lambda v: [_encode_int(v.numerator), _encode_int(v.denominator)]
    ),
    range: _tagged("$range", lambda v: [_encode_int(each) for each in (v.start, v.stop, v.step)]),
    ZoneInfo: _tagged("$zone", _encode_zone),
    timezone: _tagged("$zone", _encode_zone),
    **{
        cls: _tagged("$path", _encode_path)
        for cls in (
            pathlib.PosixPath,
            pathlib.WindowsPath,
            pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
        )
    },
    **{
        getattr(ipaddress, name): _tagged("$ip", lambda v: [type(v).__name__, str(v)])
        for name in _ADDRESSES
    },
}

DECODERS: dict[str, Callable[[Any], Any]] = {
    "$str": _decode_str,
    "$int": _decode_int,
    "$float": float,
    "$bytes": decode_bytes,
    "$bytearray": lambda body: bytearray(decode_bytes(body)),
    "$datetime": lambda body: _decode_moment(datetime, body),
    "$date": date.fromisoformat,
    "$time": lambda body: _decode_moment(time, body),
    "$timedelta": _decode_wait,
    "$decimal": _decode_decimal,
    "$uuid": UUID,
    "$complex": lambda body: complex(float(body[0]), float(body[1])),
    "$fraction": _decode_fraction,
    "$range": lambda body: range(*map(_whole, body)),
    "$zone": _decode_zone,
    "$path": _decode_path,
    "$ip": _decode_address,
}
