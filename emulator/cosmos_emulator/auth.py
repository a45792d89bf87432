"""Authentication: master keys, and Entra ID tokens as far as they can be checked offline."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterator
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from urllib.parse import unquote

from cosmos_emulator.clock import Clock
from cosmos_emulator.errors import Forbidden, Unauthorized
from cosmos_emulator.messages import Request
from cosmos_emulator.permissions import ResourceTokens

# The key of Microsoft's emulators: public, the same everywhere.
EMULATOR_KEY = (
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

# Resources that an Entra ID token may change: only those of the data plane.
DATA_PLANE = {"docs", "sprocs", "triggers", "udfs", "conflicts"}

# What clients quote in a token.
_QUOTED = {"%3D": "=", "%3d": "=", "%26": "&", "%2B": "+", "%2b": "+", "%2F": "/", "%2f": "/"}

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MAX_SKEW = 15 * 60  # seconds between the date of a request and the server's time


@lru_cache(maxsize=64)
def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return None


def _unquoted(token: str) -> str:
    """As `unquote`, but fast for what tokens hold."""
    text = token
    for quoted, mark in _QUOTED.items():
        text = text.replace(quoted, mark)
    return unquote(token) if "%" in text else text


def secret(key: str) -> bytes:
    """The bytes of a master key."""
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the key of an Emulator must be base64") from None


class Authenticator:
    """Checks the `authorization` header of requests against one master key."""

    def __init__(self, secret: bytes, tokens: ResourceTokens, clock: Clock) -> None:
        self._secret = secret
        self._tokens = tokens
        self._clock = clock

    def check(self, request: Request) -> None:
        token = request.headers.get("authorization")
        if not token:
            raise Unauthorized(
                "Required Header authorization is missing. Ensure a valid Authorization token is "
                "passed."
            )
        # type=…&ver=…&sig=…, where the signature may hold any character
        kind, _, rest = _unquoted(token).partition("&")
        kind, signature = kind.removeprefix("type="), rest.partition("sig=")[2]
        if kind == "master":
            self._check_master(request, signature)
        elif kind == "aad":
            self._check_entra(request, signature)
        elif kind == "resource":
            self._tokens.check(request, signature)
        else:
            raise Unauthorized("The authorization token has an unknown type.")

    def _check_master(self, request: Request, signature: str) -> None:
        date = request.headers.get("x-ms-date") or request.headers.get("date")
        if not date:
            raise Unauthorized(
                "The authorization token is not valid at the current time. Please provide a valid "
                "x-ms-date or date header."
            )
        given = signature.encode()
        for link in _links(request):
            if hmac.compare_digest(given, self._sign(request, link, date)):
                self._check_date(date)
                return
        raise Unauthorized(
            "The input authorization token can't serve the request. The wrong key is being "
            "used or the expected payload is not built as per the protocol."
        )

    def _check_date(self, date: str) -> None:
        """A signature is good for 15 minutes before and after its date."""
        signed = _seconds(date)
        if signed is None:
            raise Unauthorized(f"The date header '{date[:40]}' is not a date in RFC 1123 form.")
        now = time.time() + self._clock.skew  # this machine's: clients sign with it
        if abs(now - signed) > MAX_SKEW:
            start, end, current = (
                formatdate(moment, usegmt=True)
                for moment in (signed - MAX_SKEW, signed + MAX_SKEW, now)
            )
            raise Forbidden(
                "The authorization token is not valid at the current time. Please create another "
                f"token and retry (token start time: {start}, token expiry time: {end}, current "
                f"server time: {current})."
            )

    def _sign(self, request: Request, link: str, date: str) -> bytes:
        text = f"{request.method.lower()}\n{request.resource}\n{link}\n{date.lower()}\n\n"
        return base64.b64encode(hmac.digest(self._secret, text.encode(), hashlib.sha256))

    @staticmethod
    def _check_entra(request: Request, signature: str) -> None:
        if signature.count(".") != 2:
            raise Unauthorized("The Entra ID token is not a JSON web token.")
        reads = request.method == "GET" or request.operation in ("query", "query plan")
        if not reads and request.resource not in DATA_PLANE:
            raise Forbidden(
                f"Request blocked by Auth: the given token cannot {request.operation} "
                f"{request.resource} in the data plane.",
                substatus=5300,
            )


def _links(request: Request) -> Iterator[str]:
    """The links that a client may have signed: by name, or only the rid in lower case."""
    parts = request.segments
    if "operations" in parts[-2:]:
        parts = parts[:-2]
    elif len(parts) % 2:
        parts = parts[:-1]
    yield "/".join(parts)
    if parts:
        yield parts[-1].lower()
