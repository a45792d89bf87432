"""An example of each document, read from the embedded emulator as the service stored it."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from typing import Any

from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosSessionService
from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

Document = dict[str, Any]

NAMES = (
    "session", "user_state", "app_state", "adk_event", "tombstone", "restored", "stub", "chunk",
    "large", "purged", "state_value", "large_state",
)  # fmt: skip

_MOMENT = 1_700_000_000.25
# What differs from run to run: shown as if it had been stored at that moment.
_FIXED: Document = {
    "created_at": "2023-11-14T22:13:20.250000Z",
    "updated_at": "2023-11-14T22:13:24.500000Z",
    "upload": "9f86d081884c7d65",
    "value": "2c26b46b68ffc68f",
    "expires_at": _MOMENT + 3960,
    "events_renewed_at": _MOMENT,
}
_INCARNATION = "6f1c0a9d3b52"
_EXPIRING = _INCARNATION + "t3600"


def events_container() -> str:
    return _policy(EVENTS_CONTAINER)


def sessions_container() -> str:
    return _policy(SESSIONS_CONTAINER)


def _policy(definition: ContainerDefinition) -> str:
    return _json(
        {
            "partitionKey": {"paths": [definition.partition_key]},
            "defaultTtl": definition.default_ttl,
            "indexingPolicy": definition.indexing_policy,
        }
    )


def example(name: str) -> str:
    return _json(_examples()[name])


@cache
def _examples() -> dict[str, Document]:
    return {name: _steady(body) for name, body in asyncio.run(_stored()).items()}


async def _stored() -> dict[str, Document]:
    async with CosmosSessionService.embedded() as service:

        async def documents(session_id: str) -> dict[str, Document]:
            """The newest document of each type."""
            await service.flush()
            text = "SELECT * FROM c WHERE c.session_id = @session OR NOT IS_DEFINED(c.session_id)"
            found: dict[str, Document] = {}
            for container in ("sessions", "events"):
                for body in await service.in_store(
                    Unbounded("docs"),
                    lambda store, name=container: getattr(store, name).query(
                        f"{text} ORDER BY c.id", {"session": session_id}
                    ),
                ):
                    found[body["document_type"]] = body
            return found

        names = {"app_name": "shop", "user_id": "ada"}
        first = await service.create_session(
            **names, session_id="first", state={"cart": [], "user:language": "en"}
        )
        await service.append_event(first, _said("user", "Tea, please.", 1))
        delta = {"cart": ["tea"], "user:name": "Ada", "app:open": True}
        await service.append_event(first, _said("waiter", "Here you are.", 2, delta))
        found = await documents("first")
        wanted = ("session", "user_state", "app_state", "adk_event")
        result = {name: found[name] for name in wanted}

        await service.delete_session(**names, session_id="first")
        await service.restore_session(**names, session_id="first")
        found = await documents("first")
        result |= {name: found[name] for name in ("tombstone", "restored")}

        await service.purge_session(**names, session_id="first")
        found = await documents("first")
        result |= {"stub": found["stub"], "purged": found["session"]}

        large = await service.create_session(**names, session_id="large")
        await service.append_event(large, _said("user", "tea " * 800_000, 3))
        found = await documents("large")
        result |= {"large": found["adk_event"], "chunk": found["chunk"]}

        book = await service.create_session(
            **names, session_id="book", state={"title": "Tea", "book": "tea " * 20_000}, ttl=3600
        )
        found = await documents(book.id)
        return result | {"large_state": found["session"], "state_value": found["state_value"]}


def _said(author: str, text: str, number: int, delta: Document | None = None) -> Event:
    return Event(
        id=f"event-{number}",
        author=author,
        invocation_id="turn-1",
        timestamp=_MOMENT + number,
        content=types.Content(
            role="user" if author == "user" else "model", parts=[types.Part(text=text)]
        ),
        actions=EventActions(state_delta=delta or {}),
    )


def _steady(body: Document) -> Document:
    own = {name: value for name, value in body.items() if not name.startswith("_")}
    text = json.dumps(own, ensure_ascii=False)
    incarnation = body.get("incarnation", _INCARNATION)
    text = text.replace(incarnation, _EXPIRING if "t" in incarnation else _INCARNATION)
    text = re.sub(r"\b1\d{15}\b", "1700000002250000", text)  # stamps
    text = re.sub(r'"create-\w+"', f'"create-{_INCARNATION}"', text)
    return _fixed(json.loads(text))


def _fixed(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _fixed(inner, key) for key, inner in value.items()}
    if name == "timestamp" and value > _MOMENT + 10:
        return _MOMENT + 4
    if name == "id" and value.startswith("value-"):
        return re.sub(r"-\w+-\w+-(\w+)$", rf"-{_EXPIRING}-{_FIXED['value']}-\1", value)
    if name == "last_update_time" and value > _MOMENT + 10:
        return _MOMENT
    if name == "id" and value.count("-") == 3:  # of a chunk
        return re.sub(r"-\w+-\w+-", f"-{_INCARNATION}-{_FIXED['upload']}-", value)
    if name == "event_id" and value.startswith(("tombstone-", "restored-")):
        return re.sub(r"-\w+$", "-" + "0f" * 8, value)
    if name in ("data", "sha256"):
        return f"{value[:3]}…"
    return _FIXED.get(name, value)


def _json(body: Document) -> str:
    return f"```json\n{_pretty(body)}\n```"


def _pretty(value: Any, indent: str = "") -> str:
    """What fits into a line is on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (indent and len(indent + line) <= 88):
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        inner = [f"{json.dumps(key)}: {_pretty(each, deeper)}" for key, each in value.items()]
    else:
        inner = [_pretty(each, deeper) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return first + ",".join(f"\n{deeper}{each}" for each in inner) + f"\n{indent}{last}"
