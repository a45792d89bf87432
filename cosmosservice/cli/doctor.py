"""Checks everything that a working setup needs, and says how to fix what is missing."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from cosmosservice.account.charges import RequestCharge
from cosmosservice.account.connection import AccountProperties, Connection
from cosmosservice.account.container import Container
from cosmosservice.account.definitions import VECTORS, ContainerDefinition, dimensions_of
from cosmosservice.account.failures import NotFound
from cosmosservice.account.options import ConnectionOptions
from cosmosservice.account.settings import Settings
from cosmosservice.cli import versions
from cosmosservice.cli.console import message_of
from cosmosservice.containers import CONTAINERS
from cosmosservice.errors import (
    AuthenticationError,
    ContainerMismatchError,
    CosmosServiceError,
    UnavailableError,
)
from cosmosservice.hosting.deadline import within
from cosmosservice.memory.definition import MEMORIES_CONTAINER

FAR_AWAY = 0.025  # seconds; inside a region a point read takes less than 10 ms
PROBES = 7
NOBODY = "cosmosservice-doctor"  # the id and partition of a document that does not exist


class Finding(NamedTuple):
    status: Literal["ok", "warn", "fail"]
    check: str
    found: str
    advice: str = ""


class _Stopwatch:
    """Records how long each request took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def request(self, charge: RequestCharge, seconds: float) -> None:
        self.seconds.append(seconds)


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Yields one finding after the other. Checks that depend on a failed one are left out."""
    yield Finding("ok", "settings", _described(settings))
    yield _versions()
    stopwatch = _Stopwatch()
    options = ConnectionOptions(ensure="never", allow_multiple_write_regions=True)
    try:
        connection = await Connection.open(settings, options, stopwatch)
    except CosmosServiceError as error:
        found = message_of(error)
        yield Finding("fail", "connection", found, _connection_advice(settings, error))
        return
    try:
        yield Finding("ok", "connection", "the account answers")
        for finding in _account(await connection.properties()):
            yield finding
        complete = True
        missing: set[ContainerDefinition] = set()
        async for finding in _containers(connection, settings, missing):
            complete = complete and finding.status != "fail"
            yield finding
        if complete:
            opened = [
                connection.existing(each, each.name(settings))
                for each in CONTAINERS
                if each not in missing
            ]
            for container in opened:
                yield await _access(container, settings)
            yield await _latency(opened[0], settings, stopwatch)
        if settings.artifact_blobs is not None:
            yield await _blobs(settings, settings.artifact_blobs.get_secret_value())
    finally:
        await connection.close()


def _described(settings: Settings) -> str:
    if settings.embedded_path is not None:
        way = f"the embedded emulator, in {settings.embedded_path}"
    else:
        way = f"{settings.endpoint} with {'a key' if settings.key else 'Entra ID'}"
    return f"{way}; database {settings.database}"


def _versions() -> Finding:
    found = ", ".join(f"{name} {each}" for name, each in versions.found().items())
    wanted = " ".join(f"'{each}'" for each in versions.wanted())
    if not wanted:
        return Finding("ok", "versions", found)
    return Finding("fail", "versions", found, f"Not supported. pip install {wanted}")


def _connection_advice(settings: Settings, error: CosmosServiceError) -> str:
    host = urlsplit(settings.endpoint).hostname
    if isinstance(error, UnavailableError) and "TLS" not in str(error):
        return (
            f"Check that {host} is spelled correctly and can be reached from here: name server,"
            " proxy, and the account's firewall (Networking in the portal)."
        )
    if not isinstance(error, AuthenticationError):
        return ""  # the message says what to do
    if error.advice:
        return error.advice
    if settings.key is not None:
        return (
            "Copy the account's primary key to COSMOSDB_KEY again. If the account refuses keys"
            " (disableLocalAuth), remove COSMOSDB_KEY: Entra ID is used then."
        )
    return (
        "Run `az login`, or give the app a managed identity (AZURE_CLIENT_ID for a user-assigned"
        " one), and assign it the role Cosmos DB Built-in Data Contributor:"
        " `cosmosservice init --print az`. A new assignment takes minutes."
    )


def _account(account: AccountProperties) -> Iterator[Finding]:
    if account.multiple_write_regions:
        yield Finding(
            "fail",
            "write regions",
            "the account accepts writes in several regions",
            "Two regions could give one sequence number to two events. Switch multi-region"
            " writes off: az cosmosdb update --enable-multiple-write-locations false.",
        )
    else:
        yield Finding("ok", "write regions", ", ".join(account.write_regions) or "one")
    weak = account.consistency in ("Eventual", "ConsistentPrefix")
    yield Finding(
        "warn" if weak else "ok",
        "consistency",
        account.consistency,
        "Another process may not see an event right after it was stored. Session, the default,"
        " is enough for one process; BoundedStaleness or Strong for several."
        if weak
        else "",
    )


async def _containers(
    connection: Connection, settings: Settings, missing: set[ContainerDefinition]
) -> AsyncIterator[Finding]:
    for definition in CONTAINERS:
        name = definition.name(settings)
        check = f"container {name}"
        try:
            properties = await connection.container_properties(name)
        except CosmosServiceError as error:
            missing.add(definition)
            status: Literal["warn", "fail"] = "warn" if definition.optional else "fail"
            yield Finding(status, check, *_missing(settings, name, error))
            continue
        wrong = definition.wrong_partition_key(properties)
        if wrong is not None:
            yield Finding(
                "fail",
                check,
                f"its partition key is {wrong}, not {definition.partition_key}",
                "A partition key is fixed at creation: name another container, or create it again.",
            )
            continue
        if definition.wrong_unique_key(properties):
            yield Finding(
                "fail",
                check,
                f"it lacks the unique key {definition.unique_key}",
                "A unique key is fixed at creation: name another container, or create it again.",
            )
            continue
        advice = definition.advice(properties)
        yield Finding(
            "warn" if advice else "ok",
            check,
            f"partition key {definition.partition_key}"
            + ("" if advice else ", indexing and TTL as they should be")
            + (_searched_by(properties) if definition is MEMORIES_CONTAINER else ""),
            " ".join([*advice, "`cosmosservice init --update` repairs it."] if advice else []),
        )


def _searched_by(properties: Mapping[str, Any]) -> str:
    """Whether the container can have vectors, which is fixed at creation."""
    dimensions = dimensions_of(properties.get(VECTORS))
    if dimensions is None:
        return "; for words only"
    return f"; for vectors of {dimensions} dimensions"


def _missing(settings: Settings, name: str, error: CosmosServiceError) -> tuple[str, str]:
    """What is missing, and what to do."""
    if not isinstance(error, ContainerMismatchError):
        return message_of(error), _connection_advice(settings, error)
    if settings.embedded_path is None:
        return (
            f"there is none in database {settings.database!r}, or this identity may not see it",
            "Create them with `cosmosservice init` or the Bicep file in deploy/. An identity of"
            " Entra ID cannot create them through the data plane.",
        )
    return (
        f"the file has no container {name!r} yet",
        "The services create their containers at the first use. `cosmosservice init` does it now.",
    )


async def _access(container: Container, settings: Settings) -> Finding:
    """Deletes a document that does not exist: that needs write access and changes nothing."""
    check = f"access to {container.name}"
    try:
        await container.delete(NOBODY, NOBODY)
    except NotFound:
        pass
    except AuthenticationError as error:
        return Finding("fail", check, message_of(error), _connection_advice(settings, error))
    except CosmosServiceError as error:
        return Finding("fail", check, message_of(error))
    return Finding("ok", check, "may read and write")


async def _blobs(settings: Settings, where: str) -> Finding:
    """Writes, reads and deletes an empty blob."""
    check = "blobs of artifacts"
    try:
        from cosmosservice.artifacts.blobs import BlobBodies

        blobs = BlobBodies.open(where, settings.artifact_container)
        try:
            with within(settings.timeout):
                await blobs.examine()
        finally:
            await blobs.close()
    except CosmosServiceError as error:
        return Finding(
            "fail",
            check,
            message_of(error),
            "Check COSMOSDB_ARTIFACT_BLOBS; the identity needs Storage Blob Data Contributor on"
            " the container (deploy/storage.bicep).",
        )
    return Finding("ok", check, "may write, read and delete")


async def _latency(container: Container, settings: Settings, stopwatch: _Stopwatch) -> Finding:
    stopwatch.seconds.clear()
    for _ in range(PROBES):
        try:
            await container.read(NOBODY, NOBODY)
        except NotFound:
            continue
        except CosmosServiceError as error:
            return Finding("fail", "latency", message_of(error))
    median = statistics.median(stopwatch.seconds)
    found = f"{median * 1000:.1f} ms for a point read (median of {PROBES})"
    if median > FAR_AWAY and settings.embedded_path is None:
        return Finding(
            "warn", "latency", found, "Run the agent in the region of the account's write region."
        )
    return Finding("ok", "latency", found)
