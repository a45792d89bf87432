"""`python -m benchmarks.artifacts`: artifacts beside ADK's own services and the bare SDKs.

A round trip to Cosmos DB (the emulator, in a process of its own) and to Blob Storage (Azurite)
costs 5 ms. Times are compared with samples that were taken next to them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import random
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from azure.storage.blob.aio import ContainerClient
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from google.genai import types
from rich.console import Console
from rich.table import Table

from benchmarks import servers
from benchmarks.cosmos import KEY, over_http
from benchmarks.measure import Effort, Lane, Timing, clock, compare, precise_loop
from benchmarks.proxy import Proxy
from benchmarks.stand import ROUND_TRIP
from cosmosservice import CosmosArtifactService
from cosmosservice.account.charges import RequestCharge
from cosmosservice.artifacts.keys import ArtifactKey
from cosmosservice.artifacts.store import ArtifactStore
from cosmosservice.hosting.operation import Unbounded
from tests.blobs.azurite import running

WHO = {"app_name": "bench", "user_id": "ada"}
KB, MB = 1024, 1024 * 1024
NUMBERS = itertools.count()
OURS, BLOBS = "cosmosservice", "cosmosservice, blobs"


def who(label: str) -> dict[str, str]:
    """Each lane has a session of its own, so that services do not find each other's documents."""
    return WHO | {"session_id": label}


def part(size: int) -> types.Part:
    """New bytes each time, so that they are never stored already."""
    data = random.Random(next(NUMBERS)).randbytes(size)
    return types.Part(inline_data=types.Blob(data=data, mime_type="image/png"))


def timed(work: Callable[[], Awaitable[Any]]) -> Lane:
    async def lane() -> float:
        start = clock()
        await work()
        return clock() - start

    return lane


class Saves:
    """Saves to the same name repeatedly. Generating the bytes is not timed."""

    def __init__(self, label: str, service: Any, size: int) -> None:
        self.who, self.service, self.size = who(label), service, size
        self.name = f"f{next(NUMBERS)}"

    async def __call__(self) -> float:
        made = part(self.size)
        start = clock()
        await self.service.save_artifact(**self.who, filename=self.name, artifact=made)
        return clock() - start


class FirstLoad:
    """Loads a name as a process does that has not seen it before. Forgetting it is not timed."""

    def __init__(self, label: str, service: CosmosArtifactService, name: str) -> None:
        self.service = service
        self.load = timed(partial(service.load_artifact, **who(label), filename=name))
        self.key = ArtifactKey.named(**who(label), filename=name)

    async def __call__(self) -> float:
        async def forget(store: ArtifactStore) -> None:
            store.versions.forget(self.key)

        await self.service.in_store(Unbounded("load_artifact"), forget)
        return await self.load()


class Bench:
    def __init__(self, stack: AsyncExitStack, effort: Effort) -> None:
        self.stack, self.effort = stack, effort
        self.charges: list[RequestCharge] = []
        self.services: dict[str, Any] = {}

    async def open(self) -> None:
        proxy = Proxy()
        await proxy.start()
        self.stack.push_async_callback(proxy.stop)
        folder = self.stack.enter_context(servers.scratch())
        azurite = self.stack.enter_context(running(folder))
        cosmos = self.stack.enter_context(servers.emulator())
        port = await proxy.route(cosmos.port, ROUND_TRIP)
        blob_port = await proxy.route(urlsplit(azurite.endpoint).port or 0, ROUND_TRIP)
        near = azurite.behind(blob_port)
        options: dict[str, Any] = {
            "endpoint": f"http://127.0.0.1:{port}/",
            "credential": KEY,
            "database": "bench",
            "on_request_charge": self.charges.append,
        }
        self.services = {
            OURS: CosmosArtifactService(**options),
            BLOBS: CosmosArtifactService(**options, blobs=near.connection_string),
            "FileArtifactService": FileArtifactService(root_dir=folder / "files"),
            "InMemoryArtifactService": InMemoryArtifactService(),
        }
        for name in (OURS, BLOBS):
            await self.services[name].__aenter__()
            self.stack.push_async_callback(self.services[name].__aexit__, None, None, None)
            await self.services[name].list_artifact_keys(**who(name))
        client = over_http(port)
        await client.__aenter__()
        self.stack.push_async_callback(client.close)
        self.container = client.get_database_client("bench").get_container_client("artifacts")
        self.bare_blobs = ContainerClient.from_connection_string(
            near.connection_string, "artifacts"
        )
        self.stack.push_async_callback(self.bare_blobs.close)

    # --- the bare SDKs

    async def stored_version(self) -> dict[str, Any]:
        """A version document of 1 KB, in the form that the service stores."""
        await self.services[OURS].save_artifact(
            **who("sample"), filename="sample", artifact=part(KB)
        )
        text = "SELECT * FROM c WHERE c.filename = 'sample'"
        (found,) = [each async for each in self.container.query_items(text)]
        return {name: value for name, value in found.items() if not name.startswith("_")}

    def bare_create(self, document: dict[str, Any]) -> Lane:
        async def create() -> None:
            name = f"bare-{next(NUMBERS)}"
            body = document | {"id": name, "claim": name, "document_type": "bare"}
            await self.container.create_item(body, no_response=True)

        return timed(create)

    def bare_upload(self, size: int) -> Lane:
        async def lane() -> float:
            data = part(size).inline_data.data  # type: ignore[union-attr]
            start = clock()
            await self.bare_blobs.upload_blob(f"bare{next(NUMBERS)}", data)
            return clock() - start

        return lane

    async def bare_download(self, size: int) -> Lane:
        name = f"bare{next(NUMBERS)}"
        await self.bare_blobs.upload_blob(name, part(size).inline_data.data)  # type: ignore[union-attr]

        async def download() -> None:
            await (await self.bare_blobs.download_blob(name)).readall()

        return timed(download)

    # --- workloads

    async def saves(self, size: int, **bare: Lane) -> dict[str, Timing]:
        lanes: dict[str, Lane] = {
            name: Saves(name, each, size) for name, each in self.services.items()
        }
        return await compare(bare | lanes, self.effort)

    async def loads(self, size: int, **bare: Lane) -> dict[str, Timing]:
        lanes: dict[str, Lane] = {}
        for label, service in self.services.items():
            name = f"f{next(NUMBERS)}"
            await service.save_artifact(**who(label), filename=name, artifact=part(size))
            lanes[label] = timed(partial(service.load_artifact, **who(label), filename=name))
            if label == BLOBS:
                lanes[f"{label}, first load"] = FirstLoad(label, service, name)
        return await compare(bare | lanes, self.effort)

    async def units(self, label: str, size: int) -> tuple[float, float]:
        """Request units of a save and of a load."""
        service, found = self.services[label], []
        self.charges.clear()
        await service.save_artifact(**who(label), filename=f"u{size}", artifact=part(size))
        found.append(sum(each.request_units for each in self.charges))
        self.charges.clear()
        await service.load_artifact(**who(label), filename=f"u{size}")
        found.append(sum(each.request_units for each in self.charges))
        return found[0], found[1]


async def measure(console: Console, *, quick: bool) -> None:
    async with AsyncExitStack() as stack:
        bench = Bench(stack, Effort(1, 3) if quick else Effort(3, 7))
        await bench.open()
        document = await bench.stored_version()
        read = timed(lambda: bench.container.read_item(document["id"], document["scope"]))
        create = bench.bare_create(document)
        show(console, "save 1 KB", await bench.saves(KB, **{"bare create": create}))
        show(console, "load 1 KB", await bench.loads(KB, **{"bare read": read}))
        for size in (MB, 20 * MB):
            name = f"{size // MB} MB"
            if size > MB:
                bench.effort = Effort(1, 3) if quick else Effort(3, 6)
            up = {"bare upload_blob": bench.bare_upload(size)}
            down = {"bare download_blob": await bench.bare_download(size)}
            show(console, f"save {name}", await bench.saves(size, **up))
            show(console, f"load {name}", await bench.loads(size, **down))
        table = Table("request units", "save", "load", title="Request units")
        for label, size in itertools.product((OURS, BLOBS), (KB, 64 * KB, 256 * KB, MB, 20 * MB)):
            saved, loaded = await bench.units(label, size)
            table.add_row(f"{label}, {size // KB:,} KB", f"{saved:,.1f}", f"{loaded:,.1f}")
        console.print(table)


def show(console: Console, title: str, timings: dict[str, Timing]) -> None:
    first = next(iter(timings))
    table = Table("", "median ms", f"by {first}", title=title)
    for name, timing in timings.items():
        table.add_row(name, f"{timing.seconds * 1000:,.1f}", f"{timing.by(timings[first]):.2f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    console = Console(width=100 if not os.isatty(1) else None)
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(measure(console, quick=options.quick))


if __name__ == "__main__":
    main()
