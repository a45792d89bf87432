"""How long a point read takes while another client's query keeps the emulator busy.

    python benchmarks/emulator_stalls.py [--seconds 3]

For each query: the median of point reads while it runs again and again, divided by the median of
those alone just before; in process, and over HTTP with the emulator in a process of its own.
Target: at most 3.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from typing import Any

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_emulator import Emulator

FOUR = "JOIN a IN c.n JOIN b IN c.n JOIN d IN c.n JOIN e IN c.n"
QUERIES = {
    "LIKE '%a%a%a%b%', 100,000 characters": "SELECT VALUE 1 FROM c WHERE c.t LIKE '%a%a%a%b%'",
    "RegexMatch (a+)+$": "SELECT VALUE 1 FROM c WHERE RegexMatch(c.t, '(a+)+$')",
    "JOIN of 60^4 rows, counted": f"SELECT VALUE COUNT(1) FROM c {FOUR}",
    "JOIN of 60^4 rows, page by page": f"SELECT VALUE 1 FROM c {FOUR} WHERE a < 0",
    "OR × 20,000": "SELECT * FROM c WHERE "
    + " OR ".join(f"c.n = {n}" for n in range(20_000)),
    "IN × 100,000": f"SELECT * FROM c WHERE c.n IN ({','.join(map(str, range(100_000)))})",
    "IN × 10,000": f"SELECT * FROM c WHERE c.n IN ({','.join(map(str, range(10_000)))})",
    "REPLACE in REPLACE × 14": "SELECT VALUE "
    + "REPLACE(" * 14 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 14 + " FROM c",
    "nested 10,000 deep": "SELECT VALUE " + "[" * 10_000 + "]" * 10_000 + " FROM c",
    "a scan of 20,000 documents": "SELECT VALUE SUM(c.seq) FROM c WHERE LENGTH(c.text) % 7 = 3",
}  # fmt: skip


async def fill(client: CosmosClient) -> ContainerProxy:
    database = await client.create_database_if_not_exists("db")
    container = await database.create_container_if_not_exists("c", PartitionKey("/pk"))
    body = {"pk": "heavy", "t": "a" * 100_000, "n": list(range(60))}
    await container.upsert_item({"id": "heavy", **body})
    await container.upsert_item({"id": "one", "pk": "p", "text": "word " * 170})
    for start in range(0, 20_000, 100):
        await container.execute_item_batch(
            [
                ("upsert", ({"id": f"{n}", "pk": "many", "seq": n, "text": "word " * 50},))
                for n in range(start, start + 100)
            ],
            partition_key="many",
        )
    return container


async def reads(container: ContainerProxy, seconds: float) -> list[float]:
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        await container.read_item("one", "p")
        times.append(time.perf_counter() - started)
    return times


async def again_and_again(container: ContainerProxy, text: str) -> None:
    key = "many" if "c.seq" in text else "heavy"
    while True:
        await asyncio.sleep(0)  # in process a brief query never lets others have the loop
        try:
            async for _ in container.query_items(text, partition_key=key):
                pass
        except CosmosHttpResponseError as error:
            if error.status_code != 400:
                raise


async def measure(reader: CosmosClient, other: CosmosClient, seconds: float) -> dict[str, str]:
    container = await fill(reader)
    busy = other.get_database_client("db").get_container_client("c")
    found = {}
    for name, text in QUERIES.items():
        alone = statistics.median(await reads(container, seconds))
        querying = asyncio.ensure_future(again_and_again(busy, text))
        await asyncio.sleep(0.1)
        times = await reads(container, seconds)
        if querying.done():
            querying.result()
        querying.cancel()
        await asyncio.gather(querying, return_exceptions=True)
        median, longest = statistics.median(times), max(times)
        found[name] = f"{median / alone:4.1f} × {alone * 1000:.2f} ms (max {longest * 1000:.0f} ms)"
        print(f"  {name:38} {found[name]}", flush=True)
    return found


async def in_process(seconds: float) -> None:
    print("in process, two clients on one event loop")
    with Emulator() as emulator:

        def client() -> CosmosClient:
            transport: Any = emulator.async_transport()
            return CosmosClient(emulator.endpoint, emulator.key, transport=transport)

        async with client() as reader, client() as other:
            await measure(reader, other, seconds)


def over_http(seconds: float) -> None:
    print("over HTTP, the emulator in a process of its own")
    command = [sys.executable, "-m", "cosmos_emulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        endpoint, key = (server.stdout.readline().split()[1] for _ in range(2))
        try:
            asyncio.run(clients(endpoint, key, seconds))
        finally:
            server.terminate()


async def clients(endpoint: str, key: str, seconds: float) -> None:
    async with CosmosClient(endpoint, key) as reader, CosmosClient(endpoint, key) as other:
        await measure(reader, other, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="point reads beside long queries")
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    asyncio.run(in_process(seconds))
    over_http(seconds)


if __name__ == "__main__":
    main()
