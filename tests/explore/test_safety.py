"""Who may see the page, and who may change something through it."""

from __future__ import annotations

import logging

import aiohttp
import pytest
from google.genai import types

from cosmosservice import CosmosSessionService
from tests.explore.support import names, read
from tests.support.adk import event
from tests.support.raw import raw_store

PAGES = ["/", "/session", "/state", "/raw", "/user", "/artifact", "/activity"]
PATHS = [*PAGES, "/live", "/artifact/content", "/none"]


async def make(service):
    session = await service.create_session(
        app_name="shop", user_id="ada-xyzzy", session_id="first", state={"user:name": "Ada"}
    )
    for number in range(3):
        await service.append_event(session, event(f"message {number}", delta={"n": number}))
    await service.flush()
    return session


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_cookie_nothing_is_shown(visit, path):
    visitor = await visit()
    async with aiohttp.ClientSession() as stranger:
        for address in (path, f"{path}?key=wrong", "/open?key=wrong", "/open"):
            async with stranger.get(visitor.origin + address) as response:
                assert response.status == 403
                assert "cosmosservice explore" in await response.text()
                assert "Set-Cookie" not in response.headers


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(visit):
    visitor = await visit()
    async with aiohttp.ClientSession() as other, other.get(visitor.address) as response:
        cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert visitor.explorer.guard.secret not in cookie


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "0.0.0.0:{port}"]
)
async def test_another_name_for_this_machine_is_refused(visit, host):
    visitor = await visit()
    port = visitor.origin.rpartition(":")[2]
    status, text = await visitor.answer("/", headers={"Host": host.format(port=port)})
    assert (status, "only served to this machine" in text) == (403, True)
    status, _ = await visitor.answer("/", headers={"Host": f"localhost:{port}"})
    assert status in (200, 403)  # the cookie is that of 127.0.0.1


@pytest.mark.parametrize("path", ["/", "/static/explore.js", "/none", "/open"])
async def test_every_answer_forbids_scripts_of_others_frames_and_caches(visit, path):
    visitor = await visit()
    async with visitor.http.get(visitor.origin + path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
        kept = "no-cache" if path.startswith("/static") else "no-store"
        assert response.headers["Cache-Control"] == kept


async def test_it_listens_on_the_loopback_address_alone(visit):
    visitor = await visit()
    assert visitor.origin.startswith("http://127.0.0.1:")


async def test_it_only_reads_unless_writing_is_allowed(visit):
    visitor = await visit()
    session = await make(visitor.service)
    page = await visitor.get("/session", **names(session))
    assert "Fork" not in read(page)
    user = {"app": "shop", "user": "ada-xyzzy"}
    assert "Erase" not in read(await visitor.get("/user", **user))
    for path, parameters, form in (
        ("/fork", names(session), {"at": "1"}),
        ("/erase", user, {"confirm": "ada-xyzzy"}),
    ):
        status, text = await visitor.post(path, parameters, form)
        assert (status, "read-only" in text) == (403, True)
    assert len(await visitor.service.list_names()) == 1


async def test_looking_repairs_renews_and_completes_nothing(visit, emulator):
    """Not even work that the writing process has left undone."""
    writer = CosmosSessionService.embedded(emulator)
    session = await writer.create_session(
        app_name="shop", user_id="ada-xyzzy", session_id="first", ttl=3600
    )
    await writer.append_event(session, event("hello", delta={"k": 1, "user:k": 2}))
    visitor = await visit(dependants=True)
    page = read(await visitor.get("/session", **names(session)))
    assert "k new 1" in page
    assert "user:k 2" in page
    for path in PAGES:
        await visitor.answer(path, params=names(session) | {"name": "x", "memory": "hello"})
    await visitor.service.flush()
    reads = {"connect", "activity", "get_session", "get_session_at", "get_user_state"}
    reads |= {"iter_events", "iter_memories", "list_artifact_keys", "list_artifact_versions"}
    reads |= {"list_sessions", "search_memory", "usage"}
    assert set(visitor.meter.by_operation) <= reads
    await writer.close()


async def test_a_fork_has_the_history_up_to_the_event(visit):
    visitor = await visit(write=True)
    session = await make(visitor.service)
    page = await visitor.get("/session", **names(session), at=2)
    assert "Fork after event 2" in read(page)
    status, made = await visitor.post("/fork", names(session), {"at": "2"})
    assert status == 200  # of the page of the new session
    assert "message 1" in made
    assert "message 2" not in made
    assert len(await visitor.service.list_names()) == 2


async def test_a_user_is_erased_when_the_id_was_typed(visit, emulator):
    visitor = await visit(dependants=True, write=True)
    session = await make(visitor.service)
    memory, artifacts = visitor.dependants.memory, visitor.dependants.artifacts
    await memory.add_session_to_memory(session)
    where = {"app_name": "shop", "user_id": "ada-xyzzy", "session_id": "first"}
    await artifacts.save_artifact(
        **where, filename="bill", artifact=types.Part(text="message 1 of the bill")
    )
    user = {"app": "shop", "user": "ada-xyzzy"}
    assert "name" in read(await visitor.get("/user", **user))
    status, text = await visitor.post("/erase", user, {"confirm": "ada"})
    assert (status, "Nothing was erased." in text) == (400, True)
    assert "message 1" in await visitor.get("/session", **names(session))
    status, text = await visitor.post("/erase", user, {"confirm": "ada-xyzzy"})
    assert (status, "1 session, state, memories and artifacts" in read(text)) == (200, True)
    with raw_store(emulator) as raw:
        assert not raw.contains("message 1")
    assert await artifacts.list_artifact_keys(**where) == []
    found = await visitor.get("/user", **user, memory="message")
    assert "Nothing was found." in read(found)
    status, _ = await visitor.answer("/session", params=names(session))
    assert status == 404
    assert "State Empty." in read(await visitor.get("/user", **user))


async def test_forms_of_other_sites_change_nothing(visit):
    visitor = await visit(write=True)
    session = await make(visitor.service)
    for form, headers in (
        ({"token": ""}, {}),
        ({"token": "guessed"}, {}),
        ({}, {"Origin": "http://evil.example"}),
        ({}, {"Origin": "null"}),
    ):
        status, text = await visitor.post(
            "/fork", names(session), {"at": "1"} | form, headers=headers
        )
        assert (status, "Nothing was changed." in text) == (403, True)
    assert len(await visitor.service.list_names()) == 1


async def test_user_ids_and_secrets_reach_no_log(visit, caplog):
    caplog.set_level(logging.DEBUG)
    visitor = await visit(write=True)
    session = await make(visitor.service)
    await visitor.get("/session", **names(session))
    await visitor.answer("/session", params=names(session) | {"session": "none-xyzzy"})
    await visitor.post("/erase", {"app": "shop", "user": "ada-xyzzy"}, {"confirm": "no"})
    ours = [each for each in caplog.records if not each.name.startswith("asyncio")]
    logged = [each.getMessage() + str(each.exc_text) for each in ours]
    for text in logged:
        assert "xyzzy" not in text
        assert visitor.explorer.guard.secret not in text


async def test_a_page_that_fails_logs_nothing_of_its_content(visit, emulator, caplog):
    visitor = await visit()
    session = await make(visitor.service)
    emulator.faults.fail(403, operation="query", container="sessions")
    status, text = await visitor.answer("/", params={"user": "ada-xyzzy"})
    assert (status, "was refused (403)" in text) == (502, True)
    assert "xyzzy" not in caplog.text
    assert "message 1" in await visitor.get("/session", **names(session))
