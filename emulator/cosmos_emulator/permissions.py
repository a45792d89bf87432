"""Resource tokens: what a permission allows its holder to do."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

from cosmos_emulator.catalog import Catalog
from cosmos_emulator.clock import Clock
from cosmos_emulator.errors import BadRequest, CosmosError, Forbidden, Unauthorized
from cosmos_emulator.messages import Document, Request
from cosmos_emulator.partition_keys import parse_header

LIFETIME_HEADER = "x-ms-documentdb-expiry-seconds"
LIFETIME = 3600  # seconds
SHORTEST, LONGEST = 10, 18_000
MODES = ("read", "all")
RANGES = "pkranges"


def check_definition(permission: Document) -> None:
    if str(permission.get("permissionMode")).lower() not in MODES:
        raise BadRequest("The permissionMode must be 'Read' or 'All'.")
    link = permission.get("resource")
    if not isinstance(link, str) or link.strip("/").split("/")[2:3] != ["colls"]:
        raise BadRequest("A permission needs the link of a container or of something in one.")


def lifetime_of(request: Request) -> int:
    """For how many seconds the tokens of the answer are to be valid."""
    text = request.headers.get(LIFETIME_HEADER, str(LIFETIME))
    if not text.isdecimal() or not SHORTEST <= int(text) <= LONGEST:
        raise BadRequest(
            f"The value '{text[:100]}' of the header {LIFETIME_HEADER} is invalid. It must be "
            f"between {SHORTEST} and {LONGEST}."
        )
    return int(text)


def _check_key(request: Request, granted: object) -> None:
    """A token for one partition key opens items under that key, and nothing else."""
    operates = request.segments[-2:-1] == ["operations"]
    if request.resource != "docs" and not operates:
        raise Forbidden("The permission is for the items of one partition key.")
    header = request.partition_key
    # As stored text: 1 and true are different keys.
    if header is None or parse_header(header) != parse_header(json.dumps(granted)):
        raise Forbidden("The permission is for another partition key.")


class ResourceTokens:
    """Issues tokens for permissions, and checks requests that carry one."""

    def __init__(self, secret: bytes, catalog: Catalog, clock: Clock) -> None:
        self._secret = secret
        self._catalog = catalog
        self._clock = clock

    def issue(self, permission: Document, lifetime: int) -> str:
        claims = {
            "resource": permission["resource"],
            "mode": permission["permissionMode"].lower(),
            "key": permission.get("resourcePartitionKey"),
            "expires": self._clock.now() + lifetime,
        }
        payload = base64.b64encode(json.dumps(claims).encode()).decode()
        return f"type=resource&ver=1&sig={self._sign(payload)};{payload};"

    def _sign(self, payload: str) -> str:
        digest = hmac.digest(self._secret, payload.encode(), hashlib.sha256)
        return base64.b64encode(digest).decode()

    def check(self, request: Request, signature: str) -> None:
        claims = self._claims(signature)
        granted = self._resolved(claims["resource"].strip("/").split("/"))
        asked = self._resolved(request.segments)
        reads = request.method == "GET" or request.operation in ("query", "query plan")
        if request.method == "GET" and (
            not asked or asked in (granted[:4], [*granted[:4], RANGES])
        ):
            return  # The SDK reads the account, the container and its ranges on its way to an item.
        if asked[: len(granted)] != granted or not (reads or claims["mode"] == "all"):
            raise Forbidden("Insufficient permissions provided in the authorization header.")
        if claims["key"] is not None:
            _check_key(request, claims["key"])

    def _claims(self, signature: str) -> Document:
        mac, _, rest = signature.partition(";")
        payload = rest.rstrip(";")
        if not hmac.compare_digest(mac.encode(), self._sign(payload).encode()):
            raise Unauthorized("The resource token is not valid.")
        try:
            claims: Document = json.loads(base64.b64decode(payload))
        except (binascii.Error, ValueError):
            raise Unauthorized("The resource token is not valid.") from None
        if claims["expires"] < self._clock.now():
            raise Forbidden("The resource token has expired.")
        return claims

    def _resolved(self, segments: list[str]) -> list[str]:
        """A link with the names of its database and container replaced by rids."""
        head = segments[:4] if segments[2:3] == ["colls"] else segments[:2]
        if len(head) % 2:
            return segments
        try:
            owner = self._catalog.owner(head)
        except CosmosError:
            return segments
        return [*(owner.self_link.strip("/").split("/") if owner else []), *segments[len(head) :]]
