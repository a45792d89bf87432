"""Environment settings that affect the connection to the store."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from cosmosservice import CosmosSessionService
from cosmosservice.errors import AuthenticationError
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "user"}
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def refusing_proxy(asked):
    """Refuses everybody, and records who asked for what."""

    async def refuse(reader, writer):
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_proxy_of_the_environment_is_used(connect_http, http_emulator, monkeypatch):
    endpoint, _ = http_emulator
    asked = []
    async with refusing_proxy(asked) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        service = connect_http()
        with pytest.raises(AuthenticationError):
            await service.create_session(**WHO)
        await service.close()
    assert asked
    assert all(endpoint in line for line in asked)


async def test_a_host_that_needs_no_proxy_is_reached_without(connect_http, monkeypatch):
    asked = []
    async with refusing_proxy(asked) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with connect_http() as service:
            await service.create_session(**WHO)
    assert not asked


async def test_what_netrc_says_of_the_host_is_not_sent(connect_http, monkeypatch, tmp_path):
    """The bare SDK fails here: a request cannot have two kinds of credentials."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with connect_http() as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, event("x"))


@asynccontextmanager
async def counting_way_to(endpoint, opened):
    """Another endpoint of the same store. Records every connection."""
    port = urlsplit(endpoint).port

    async def passed_on(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def connect(reader, writer):
        opened.append(writer.get_extra_info("peername"))
        onward, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(passed_on(reader, back), passed_on(onward, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    server.close()


async def test_a_connection_is_used_again_after_a_minute_but_not_much_later(
    http_emulator, monkeypatch
):
    """A model may think longer than aiohttp keeps a connection by default."""
    endpoint, key = http_emulator
    opened, idle = [], 0

    def now():
        return time.monotonic() + idle

    async with counting_way_to(endpoint, opened) as way:
        monkeypatch.setattr("aiohttp.connector.monotonic", now)
        service = CosmosSessionService(endpoint=way, credential=key, database="tests")
        async with service:
            session = await service.create_session(**WHO)
            await service.append_event(session, event("first"))
            before = len(opened)
            idle = 50
            await service.append_event(session, event("after 50 seconds"))
            assert len(opened) == before
            idle = 50 + 70
            await service.append_event(session, event("after 70 seconds"))
            assert len(opened) == before + 1


async def test_no_thread_is_asked_before_a_request(connect_http, monkeypatch):
    async with connect_http() as service:
        session = await service.create_session(**WHO)
        loop, asked = asyncio.get_running_loop(), []
        in_thread = loop.run_in_executor
        monkeypatch.setattr(
            loop, "run_in_executor", lambda *work: (asked.append(work), in_thread(*work))[1]
        )
        await service.append_event(session, event("x"))
    assert asked == []


async def test_a_large_body_raises_no_warning(connect_http, recwarn):
    """aiohttp warns of large strings, in the application's name."""
    async with connect_http() as service:
        session = await service.create_session(**WHO)
        for text in ("x" * 1_900_000, "ß" * 900_000):
            await service.append_event(session, event(text, delta={"large": text}))
        found = await service.get_session(**WHO, session_id=session.id)
        assert found.state["large"] == "ß" * 900_000
    assert [each for each in recwarn if issubclass(each.category, ResourceWarning)] == []
