"""What the environment says about the way to the store."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

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
    """Lets nobody through, and notes who asked for what."""

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
    """The SDK alone fails there: a request cannot have two kinds of credentials."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with connect_http() as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, event("x"))


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
