"""Databases and containers: created, read and compared with their definitions."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from cosmosservice.account.definitions import VECTORS, ContainerDefinition, dimensions_of
from cosmosservice.account.failures import Failure
from cosmosservice.account.retries import REQUEST
from cosmosservice.errors import ConfigurationError, ContainerMismatchError

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient, DatabaseProxy

logger = logging.getLogger("cosmosservice")


async def create_database(client: CosmosClient, name: str) -> None:
    from azure.cosmos.exceptions import CosmosResourceExistsError

    with contextlib.suppress(CosmosResourceExistsError):  # another process was faster
        await client.create_database_if_not_exists(name)


async def create_shared_database(client: CosmosClient, name: str, throughput: int) -> None:
    """A database whose containers share its throughput; without any on a serverless account."""
    from azure.cosmos.exceptions import CosmosHttpResponseError

    try:
        await client.create_database_if_not_exists(name, offer_throughput=throughput)
        return
    except CosmosHttpResponseError as error:
        if error.status_code != 400:
            raise
    await create_database(client, name)


async def create_container(
    database: DatabaseProxy, name: str, definition: ContainerDefinition
) -> None:
    from azure.cosmos import PartitionKey
    from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError

    policies: dict[str, Any] = {}
    if definition.unique_key is not None:
        policies["unique_key_policy"] = definition.unique_key_policy
    if definition.vector_embedding_policy is not None:
        policies["vector_embedding_policy"] = dict(definition.vector_embedding_policy)
    refused: str | None = None
    try:
        await database.create_container_if_not_exists(
            name,
            PartitionKey(definition.partition_key),
            indexing_policy=dict(definition.indexing_policy),
            default_ttl=definition.default_ttl,
            **policies,
        )
    except CosmosResourceExistsError:
        pass  # another process was faster
    except CosmosHttpResponseError as error:
        if error.status_code != 400 or definition.vector_embedding_policy is None:
            raise
        refused = str(error.message or "")
    if refused is not None:
        raise ConfigurationError(_without_vectors(name, refused))


def _without_vectors(name: str, answer: str) -> str:
    """Why Azure refuses a container with a vector policy, and what to do."""
    refused = f"Cosmos DB does not create container {name!r} with a vector policy: "
    if "shared throughput" in answer:
        return refused + (
            "its database has shared throughput. Create the container with throughput of its own"
            " (deploy/database.bicep with vectorDimensions does), name another database, or use"
            " no embedder."
        )
    return refused + (
        "the account lacks the capability, or does not accept these dimensions. Enable it (it"
        " takes some minutes) with az cosmosdb update --name ACCOUNT --resource-group GROUP"
        " --capabilities EnableNoSQLVectorSearch, naming EnableServerless too if the account has"
        " it: the list replaces the old one. Or use no embedder."
    )


async def repeated(create: Callable[[], Awaitable[None]]) -> None:
    """Creates again after a failure that may pass. Where two processes create the same thing at
    once, some emulators answer one of them with 500."""
    for attempt in REQUEST:
        await REQUEST.pause(attempt)
        try:
            return await create()
        except Exception as error:
            if not Failure(error).transient or REQUEST.is_last(attempt):
                raise
    raise AssertionError("the last attempt returns or raises")


async def enforces_unique_key(
    database: DatabaseProxy, name: str, definition: ContainerDefinition
) -> bool:
    """Whether a second document with the same unique key is refused. Both expire in a minute, and
    are removed at once."""
    from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

    assert definition.unique_key is not None
    proxy, mark = database.get_container_client(name), secrets.token_hex(8)
    partition = f"unique key {mark}"
    fields = {definition.partition_key: partition, definition.unique_key: mark}
    same = {path.removeprefix("/"): value for path, value in fields.items()} | {"ttl": 60}
    ids = [f"{mark} {number}" for number in range(2)]
    try:
        for each in ids:
            await proxy.create_item({"id": each, **same}, no_response=True)
    except CosmosResourceExistsError:
        return True
    finally:
        for each in ids:
            with contextlib.suppress(CosmosResourceNotFoundError):
                await proxy.delete_item(each, partition)
    return False


async def update_container(
    database: DatabaseProxy, name: str, definition: ContainerDefinition
) -> list[str]:
    """Repairs the TTL setting and the indexing policy of an existing, usable container. Everything
    else stays. Returns what was wrong. Cosmos DB builds the index in the background, and queries
    may cost more until it is complete."""
    try:
        properties = await container_properties(database, name)
    except ContainerMismatchError:
        return []
    wrong = definition.advice(properties)
    usable = definition.wrong_partition_key(properties) is None
    if not wrong or not usable or definition.wrong_vectors(properties):
        return []
    # Not `replace_container`: it takes only some of the properties and resets the others.
    await database.client_connection.ReplaceContainer(
        f"dbs/{database.id}/colls/{name}", definition.repaired(properties), {}
    )
    return wrong


async def container_properties(database: DatabaseProxy, name: str) -> Mapping[str, Any]:
    """The container's properties. Raises ContainerMismatchError if it does not exist."""
    from azure.cosmos.exceptions import CosmosResourceNotFoundError

    try:
        return await database.get_container_client(name).read()
    except CosmosResourceNotFoundError:
        pass
    raise ContainerMismatchError(
        f"There is no container {name!r} in database {database.id!r}, or this identity may not"
        " see it. Create both with `cosmosservice init` or the Bicep file in deploy/; an identity"
        " of Entra ID cannot create them through the data plane."
    )


def check_container(
    name: str, definition: ContainerDefinition, properties: Mapping[str, Any]
) -> None:
    """Raises if the service could not work, and logs what only makes it more expensive."""
    wrong = definition.wrong_partition_key(properties)
    if wrong is not None:
        raise ContainerMismatchError(
            f"Container {name!r} has the partition key {wrong}; the service needs"
            f" {definition.partition_key} of version 2, which is fixed at creation. Name"
            " another container, or create this one again."
        )
    if definition.wrong_unique_key(properties):
        raise ContainerMismatchError(
            f"Container {name!r} lacks the unique key {definition.unique_key}, which is fixed at"
            " creation. Name another container, or create this one again."
        )
    if definition.wrong_vectors(properties):
        made_for = dimensions_of(properties.get(VECTORS))
        if made_for is None:
            raise ContainerMismatchError(
                f"Container {name!r} was created without a vector policy, which is fixed at"
                " creation. Name another container for a service with an embedder, or create this"
                " one again."
            )
        raise ContainerMismatchError(
            f"Container {name!r} was made for vectors of {made_for} dimensions; the embedder's"
            f" have {dimensions_of(definition.vector_embedding_policy)}. Name another container, or"
            " use the embedder it was made for."
        )
    for problem in definition.advice(properties):
        logger.warning("Container %r: %s", name, problem)
