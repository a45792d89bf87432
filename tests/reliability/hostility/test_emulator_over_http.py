"""The emulator's server with many clients, with misbehaving ones, and with ones that do not speak
HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from urllib.parse import urlsplit

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from cosmos_emulator.server import Server

CLIENTS = 50


@pytest.fixture
async def endpoint(emulator):
    server = Server(emulator)
    yield await server.start()
    await server.stop()


async def test_fifty_clients_at_once_lose_nothing_and_see_one_order(emulator, endpoint):
    """Each adds its own items and increments a shared number."""
    async with CosmosClient(endpoint, emulator.key) as client:
        database = await client.create_database("db")
        shared = await database.create_container("c", partition_key=PartitionKey("/pk"))
        await shared.create_item({"id": "count", "pk": "x", "n": 0})

        async def count_up(container):
            while True:
                found = await container.read_item("count", "x")
                condition = {
                    "etag": found["_etag"],
                    "match_condition": MatchConditions.IfNotModified,
                }
                with contextlib.suppress(exceptions.CosmosAccessConditionFailedError):
                    body = {"id": "count", "pk": "x", "n": found["n"] + 1}
                    await container.replace_item("count", body, **condition)
                    return

        async def work(number):
            async with CosmosClient(endpoint, emulator.key) as own:
                container = own.get_database_client("db").get_container_client("c")
                for part in range(4):
                    await container.create_item({"id": f"{number}-{part}", "pk": "x"})
                await count_up(container)
                wanted = f"SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, '{number}-')"
                return [each async for each in container.query_items(wanted, partition_key="x")]

        seen = await asyncio.gather(*(work(number) for number in range(CLIENTS)))
        assert seen == [[f"{n}-{part}" for part in range(4)] for n in range(CLIENTS)]
        assert (await shared.read_item("count", "x"))["n"] == CLIENTS
        stored = [
            each async for each in shared.query_items("SELECT c.id FROM c", partition_key="x")
        ]
        assert len(stored) == 4 * CLIENTS + 1


POST = b"POST /dbs HTTP/1.1\r\nHost: x\r\n"

RUDE = {
    "nothing": b"",
    "an empty line": b"\r\n\r\n",
    "half a request line": b"GET",
    "no version": b"GET /\r\n\r\n",
    "a version from the future": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "an unknown method": b"FROB / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method of a megabyte": b"A" * 1_000_000 + b" / HTTP/1.1\r\n\r\n",
    "a path of a megabyte": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header of a megabyte": b"GET / HTTP/1.1\r\nx: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "ten thousand headers": b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10_000 + b"\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "a header with NUL": b"GET / HTTP/1.1\r\nHost: x\r\nauthorization: a\0b\r\n\r\n",
    "bytes that are no text": b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
    "a broken escape": b"GET /dbs/%zz/colls/%f HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path out of the root": b"GET /dbs/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    "another scheme": b"GET ftp://x/dbs HTTP/1.1\r\nHost: x\r\n\r\n",
    "a negative length": b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "a length that is no number": b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "two lengths": (
        b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    ),
    "a length and chunks": (
        b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\n"
    ),
    "bad chunks": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    "less than promised": b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    "a terabyte promised": POST + b"Content-Length: 1099511627776\r\n\r\n{",
    "a greeting of TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 64,
    "noise": os.urandom(4096),
    "no authorization": b"GET /dbs HTTP/1.1\r\nHost: x\r\n\r\n",
}


def exchange(endpoint, sent):
    """Sends the bytes, closes its side of the connection, and reads the whole answer."""
    address = urlsplit(endpoint)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        answer = b""
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
        except TimeoutError:
            raise
        except OSError:
            pass  # it may disconnect at any moment
        return answer


@pytest.mark.parametrize("name", RUDE)
async def test_an_invalid_request_is_refused_and_the_server_goes_on(emulator, endpoint, name):
    answer = await asyncio.to_thread(exchange, endpoint, RUDE[name])
    if answer:
        status = int(answer.split(b" ", 2)[1])
        assert 400 <= status < 500
        assert b"Traceback" not in answer
    async with CosmosClient(endpoint, emulator.key) as client:
        assert [each async for each in client.list_databases()] == []


async def test_clients_that_idle_or_disconnect_do_not_block_others(emulator, endpoint):
    address = urlsplit(endpoint)
    idle = [socket.create_connection((address.hostname, address.port)) for _ in range(100)]
    try:
        for number, connection in enumerate(idle):
            connection.sendall(
                b"POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"[:number]
            )
        async with CosmosClient(endpoint, emulator.key) as client:
            await client.create_database("db")
            for connection in idle[::2]:
                connection.close()
            assert [each["id"] async for each in client.list_databases()] == ["db"]
    finally:
        for connection in idle:
            connection.close()
