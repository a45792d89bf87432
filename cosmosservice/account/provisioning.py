"""Databases and containers: created, read and compared with their definitions."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.errors import ContainerMismatchError

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient, DatabaseProxy

logger = logging.getLogger("cosmosservice")


async def create_database(client: CosmosClient, name: str) -> None:
    from azure.cosmos.exceptions import CosmosResourceExistsError

    with contextlib.suppress(CosmosResourceExistsError):  # another process was faster
        await client.create_database_if_not_exists(name)


async def create_container(
    database: DatabaseProxy, name: str, definition: ContainerDefinition
) -> None:
    from azure.cosmos import PartitionKey
    from azure.cosmos.exceptions import CosmosResourceExistsError

    policies: dict[str, Any] = {}
    if definition.unique_key is not None:
        policies["unique_key_policy"] = definition.unique_key_policy
    if definition.vector_embedding_policy is not None:
        policies["vector_embedding_policy"] = dict(definition.vector_embedding_policy)
    if definition.full_text_policy is not None:
        policies["full_text_policy"] = dict(definition.full_text_policy)
    with contextlib.suppress(CosmosResourceExistsError):  # another process was faster
        await database.create_container_if_not_exists(
            name,
            PartitionKey(definition.partition_key),
            indexing_policy=dict(definition.indexing_policy),
            default_ttl=definition.default_ttl,
            **policies,
        )


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
    if not wrong or definition.wrong_partition_key(properties) is not None:
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
            f" {definition.partition_key}, which is fixed at creation. Name another container, or"
            " create this one again."
        )
    if definition.wrong_unique_key(properties):
        raise ContainerMismatchError(
            f"Container {name!r} lacks the unique key {definition.unique_key}, which is fixed at"
            " creation. Name another container, or create this one again."
        )
    for problem in definition.advice(properties):
        logger.warning("Container %r: %s", name, problem)
