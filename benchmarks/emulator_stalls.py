"""How long a point read takes while another client's query keeps the emulator busy.

    python benchmarks/emulator_stalls.py [--reads 900] [--only "IN ×"] [--http] [--processor]

For each query: the median of point reads while it runs again and again, divided by the median of
those alone, in three turns; in process, where both clients share an event loop, and over HTTP,
where emulator, reader and the client that queries are processes of their own. Target: at most 3.

With --processor a read takes what reader and emulator have of the processors meanwhile: on a busy
machine (Linux), instead of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_emulator import Emulator

TURNS = 3
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


Clock = Callable[[], float]


async def reads(container: ContainerProxy, count: int, clock: Clock) -> list[float]:
    times = []
    for _ in range(count):
        started = clock()
        await container.read_item("one", "p")
        times.append(clock() - started)
    return times


def processor_time(*others: int) -> Clock:
    """The processor time of this process and of others, by their ids."""
    ids = [time.CLOCK_PROCESS_CPUTIME_ID, *((~process << 3) | 2 for process in others)]
    return lambda: sum(map(time.clock_gettime, ids))


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


Querying = Callable[[str], AbstractAsyncContextManager[None]]


async def measure(
    reader: CosmosClient, querying: Querying, clock: Clock, options: argparse.Namespace
) -> None:
    container = await fill(reader)
    for name, text in QUERIES.items():
        if options.only not in name:
            continue
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(TURNS):
            alone += await reads(container, options.reads // TURNS, clock)
            async with querying(text):
                beside += await reads(container, options.reads // TURNS, clock)
        ratio = statistics.median(beside) / statistics.median(alone)
        print(
            f"  {name:38} {ratio:4.1f} × (alone {_times(alone)}; beside {_times(beside)})",
            flush=True,
        )


def _times(times: list[float]) -> str:
    median, p95 = (1000 * statistics.quantiles(times, n=20)[at] for at in (9, 18))
    return f"p50 {median:.2f}, p95 {p95:.2f}, max {1000 * max(times):.0f} ms"


async def in_process(options: argparse.Namespace) -> None:
    print("in process, two clients on one event loop")
    with Emulator() as emulator:

        def client() -> CosmosClient:
            transport: Any = emulator.async_transport()
            return CosmosClient(emulator.endpoint, emulator.key, transport=transport)

        async with client() as reader, client() as other:
            busy = other.get_database_client("db").get_container_client("c")

            @contextlib.asynccontextmanager
            async def querying(text: str) -> AsyncIterator[None]:
                task = asyncio.ensure_future(again_and_again(busy, text))
                await asyncio.sleep(0.1)
                yield
                if task.done():
                    task.result()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

            clock = processor_time() if options.processor else time.perf_counter
            await measure(reader, querying, clock, options)


def over_http(options: argparse.Namespace) -> None:
    print("over HTTP, the emulator and both clients in processes of their own")
    command = [sys.executable, "-m", "cosmos_emulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        endpoint, key = (server.stdout.readline().split()[1] for _ in range(2))
        try:
            clock = processor_time(server.pid) if options.processor else time.perf_counter
            asyncio.run(beside_another_process(endpoint, key, clock, options))
        finally:
            server.terminate()


async def beside_another_process(
    endpoint: str, key: str, clock: Clock, options: argparse.Namespace
) -> None:
    spawned = multiprocessing.get_context("spawn")

    @contextlib.asynccontextmanager
    async def querying(text: str) -> AsyncIterator[None]:
        begins = spawned.Event()
        process = spawned.Process(target=query_forever, args=(endpoint, key, text, begins))
        process.start()
        while not begins.is_set():
            assert process.is_alive(), "the other client has ended"
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        yield
        assert process.is_alive(), "the other client has ended"
        process.kill()
        process.join()

    async with CosmosClient(endpoint, key) as reader:
        await measure(reader, querying, clock, options)


def query_forever(endpoint: str, key: str, text: str, begins: Any) -> None:
    async def run() -> None:
        async with CosmosClient(endpoint, key) as client:
            container = client.get_database_client("db").get_container_client("c")
            await container.read_item("one", "p")
            begins.set()
            await again_and_again(container, text)

    asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(description="point reads beside long queries")
    parser.add_argument("--reads", type=int, default=900, help="beside each query, and alone")
    parser.add_argument("--only", default="", help="only queries whose name has this")
    parser.add_argument("--http", action="store_true", help="only over HTTP")
    parser.add_argument("--processor", action="store_true", help="processor time, not time")
    options = parser.parse_args()
    if not options.http:
        asyncio.run(in_process(options))
    over_http(options)


if __name__ == "__main__":
    main()
