"""Why Cosmos DB refuses a request with 401 or 403, read from the words of its answer."""

from __future__ import annotations

import contextlib
import json
import re
from enum import Enum


class Refusal(Enum):
    """A reason, and what to do about it."""

    CLOCK = (
        "this machine's clock is off",
        "Set the clock: Cosmos DB accepts a difference of 15 minutes.",
    )
    FIREWALL = (
        "the account's firewall does not let this address in",
        "Allow the address (Networking in the portal, or allowedAddresses of deploy/main.bicep),"
        " or use a private endpoint.",
    )
    KEYS_DISABLED = (
        "the account accepts no keys",
        "Remove COSMOSDB_KEY, also from .env: Entra ID is used then.",
    )
    CONTROL_PLANE = (
        "Entra ID may not create databases and containers through the data plane",
        "Have somebody run what `cosmosservice init --print az` or `--print bicep` prints.",
    )
    ROLE = (
        "the identity lacks the role",
        "Assign it Cosmos DB Built-in Data Contributor: `cosmosservice init --print az`. A new"
        " assignment takes minutes.",
    )
    KEY = (
        "the key is wrong, or was regenerated",
        "Copy the account's primary key to COSMOSDB_KEY again.",
    )
    UNKNOWN = ("the key or the identity is not accepted, or may not do this", "")

    def __init__(self, reason: str, advice: str) -> None:
        self.reason = reason
        self.advice = advice


_WORDS = (
    ("not valid at the current time", Refusal.CLOCK),
    ("public internet", Refusal.FIREWALL),
    ("firewall", Refusal.FIREWALL),
    ("virtual network", Refusal.FIREWALL),
    ("Local Authorization is disabled", Refusal.KEYS_DISABLED),
    ("cannot be authorized by AAD token", Refusal.CONTROL_PLANE),
    ("RBAC", Refusal.ROLE),
    ("input authorization token can't serve the request", Refusal.KEY),
    ("MAC signature", Refusal.KEY),
)


def refusal_of(answer: str) -> Refusal:
    return next((reason for words, reason in _WORDS if words in answer), Refusal.UNKNOWN)


# What follows may name documents, and so users; or only the request.
_REST = re.compile(r"Server used the following payload|\bActivityId\b|[\r\n]")
_DOCUMENT = re.compile(r"(docs/)[^\]\s'\"]+")


_STATUS = re.compile(r"^Status code:.*\n+|^\(\w+\) ")


def quoted(answer: str) -> str:
    """Azure's own words, as an exception may repeat them: without ids of documents."""
    text = _STATUS.sub("", answer.strip())
    with contextlib.suppress(ValueError, TypeError, KeyError):  # the body, or its message
        text = str(json.loads(text)["message"])
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
        text = str(json.loads(text.removeprefix("Message:").splitlines()[0])["Errors"][0])
    text = _REST.split(text.strip(), maxsplit=1)[0].strip()
    return _DOCUMENT.sub(r"\1…", text)[:300].rstrip()
