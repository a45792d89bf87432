"""Every kind of request that the services send, as the table in docs/azure.md lists them."""

from __future__ import annotations

import json
import os

from google.genai import types

from cosmosservice.account import charges, connection
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "ada"}
THIS = WHO | {"session_id": "s"}

KINDS = {
    ("", "read"),  # the account
    ("dbs", "read"),
    ("dbs", "create"),
    ("colls", "read"),
    ("colls", "create"),
    ("pkranges", "list"),
    ("docs", "create"),
    ("docs", "read"),
    ("docs", "replace"),
    ("docs", "delete"),
    ("docs", "batch"),
    ("docs", "query"),
    ("docs", "query plan"),
    ("docs", "change feed"),
}


async def test_nothing_else_is_sent_and_every_replace_is_conditional(cosmos, emulator, monkeypatch):
    sent = []

    def note_sent(request):
        charges.note_sent(request)
        sent.append(request.http_request)

    monkeypatch.setattr(connection, "note_sent", note_sent)
    account = cosmos.account()
    memory, artifacts = cosmos.memory(account=account), cosmos.artifacts(account=account)
    service = cosmos.sessions(account=account, ttl=3600)
    session = await service.create_session(**THIS, state={"user:a": 1, "app:b": 2})
    for text in ("hello", os.urandom(1_500_000).hex()):
        await service.append_event(session, event(text, delta={"k": text, "user:a": text[:9]}))
    await service.get_session(**THIS)
    await memory.add_session_to_memory(session)
    await memory.search_memory(**WHO, query="hello")
    for data in (b"x", os.urandom(1_000_000)):
        part = types.Part.from_bytes(data=data, mime_type="application/octet-stream")
        await artifacts.save_artifact(**THIS, filename="f", artifact=part)
    await artifacts.load_artifact(**THIS, filename="f")
    await service.list_sessions(app_name="app", user_id=None)
    watched = service.watch(app_name="app", since="beginning")
    await service.append_event(session, event("seen"))
    async for _ in watched:
        break
    await watched.aclose()
    await service.fork_session(**THIS, new_session_id="t")
    await service.repair_session(**THIS)
    await service.delete_session(**THIS)
    await service.restore_session(**THIS)
    await artifacts.delete_artifact(**THIS, filename="f")
    await service.purge_user(**WHO, include_state=True)

    assert {(each.resource, each.operation) for each in emulator.requests} == KINDS
    of_documents = [each for each in sent if "/docs" in each.url]
    replaced = [each for each in of_documents if each.method == "PUT"]
    assert replaced
    assert all("If-Match" in each.headers for each in replaced)
    assert all(each.headers["Prefer"] == "return=minimal" for each in replaced)
    written = [each for each in of_documents if "x-ms-documentdb-isquery" not in each.headers]
    batches = [each for each in written if "x-ms-cosmos-is-batch-request" in each.headers]
    operations = [json.loads(each.data) for each in batches]
    assert {len(each) for each in operations} == {2}
    kinds = {each["operationType"] for both in operations for each in both}
    assert kinds <= {"Create", "Replace", "Delete"}
