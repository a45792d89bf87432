"""The emulator's speed, compared with the SDK's own cost and between short and long partitions.

    python benchmarks/emulator_speed.py

Prints ratios within one run: they hold on any machine, but the rates do not. Targets: creates and
reads run at least at half the rate of a transport that stores nothing. The recent 50 of 10,000
items take at most three times as long as the recent 50 of 100.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from azure.core.pipeline.transport import AsyncHttpResponse, HttpRequest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_emulator import Emulator
from cosmos_emulator.transports import EmulatorAsyncTransport

OPERATIONS = 300
ROUNDS = 7
QUERY = "SELECT TOP 50 * FROM c ORDER BY c.seq DESC"


class NothingStored(EmulatorAsyncTransport):
    """Repeats its first answer for every item request. Other requests work as usual."""

    canned: AsyncHttpResponse | None = None

    async def send(self, request: HttpRequest, **kwargs: Any) -> AsyncHttpResponse:
        if "/docs" not in request.url:
            return await super().send(request, **kwargs)
        if self.canned is None:
            self.canned = await super().send(request, **kwargs)
        return self.canned


def item(item_id: str, seq: int = 0) -> dict[str, Any]:
    """About 1 KB, like an event of a conversation."""
    return {"id": item_id, "pk": "p", "seq": seq, "author": "user", "text": "word " * 170}


async def rate(operation: Callable[[int], Awaitable[Any]], first: int) -> float:
    started = time.perf_counter()
    for number in range(first, first + OPERATIONS):
        await operation(number)
    return OPERATIONS / (time.perf_counter() - started)


async def open_container(client: CosmosClient) -> ContainerProxy:
    database = await client.create_database_if_not_exists("db")
    return await database.create_container_if_not_exists("c", partition_key=PartitionKey("/pk"))


async def points(path: str) -> dict[str, float]:
    """The rates of creates and reads relative to those with nothing stored: medians of the
    rounds."""
    shares: dict[str, list[float]] = {"create": [], "read": []}
    nothing, real = Emulator(), Emulator(path)
    async with (
        CosmosClient(nothing.endpoint, nothing.key, transport=NothingStored(nothing)) as null_sdk,
        CosmosClient(real.endpoint, real.key, transport=real.async_transport()) as client,
    ):
        null, store = await open_container(null_sdk), await open_container(client)
        for container in (null, store):
            await container.create_item(item("one"))
            await container.read_item("one", "p")
        for number in range(ROUNDS):
            first = number * OPERATIONS
            base = await rate(lambda n: null.create_item(item(str(n))), first)
            mine = await rate(lambda n: store.create_item(item(str(n))), first)
            shares["create"].append(mine / base)
            base_read = await rate(lambda n: null.read_item(str(n), "p"), first)
            mine_read = await rate(lambda n: store.read_item(str(n), "p"), first)
            shares["read"].append(mine_read / base_read)
            print(f"  create {mine:.0f}/s of {base:.0f}/s,", end=" ")
            print(f"read {mine_read:.0f}/s of {base_read:.0f}/s")
    nothing.close()
    real.close()
    return {name: statistics.median(values) for name, values in shares.items()}


async def recent(path: str) -> float:
    """How many times as long the recent 50 take among 10,000 items as among 100."""
    emulator = Emulator(path)
    async with CosmosClient(
        emulator.endpoint, emulator.key, transport=emulator.async_transport()
    ) as client:
        container = await open_container(client)
        for key, count in (("short", 100), ("long", 10_000)):
            for start in range(0, count, 100):
                batch = [
                    ("create", ({**item(f"{n:06}", n), "pk": key},))
                    for n in range(start, min(start + 100, count))
                ]
                await container.execute_item_batch(batch, partition_key=key)

        async def read(key: str) -> float:
            started = time.perf_counter()
            found = [row async for row in container.query_items(QUERY, partition_key=key)]
            assert len(found) == 50, len(found)
            return time.perf_counter() - started

        times: dict[str, list[float]] = {"short": [], "long": []}
        for _ in range(30):
            for key, values in times.items():
                values.append(await read(key))
    emulator.close()
    short, long = statistics.median(times["short"]), statistics.median(times["long"])
    print(f"  recent 50 of 100: {short * 1000:.2f} ms, of 10,000: {long * 1000:.2f} ms")
    return long / short


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print("points, in memory")
        memory = await points(":memory:")
        print("points, in a file")
        file = await points(str(Path(folder) / "points.db"))
        print("queries, in a file")
        ratio = await recent(str(Path(folder) / "recent.db"))
    figures = {
        "python": sys.version.split()[0],
        "create, in memory / nothing stored": round(memory["create"], 2),
        "read, in memory / nothing stored": round(memory["read"], 2),
        "create, in a file / nothing stored": round(file["create"], 2),
        "read, in a file / nothing stored": round(file["read"], 2),
        "recent 50 of 10,000 / of 100": round(ratio, 2),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
