"""The containers of all services. A new service adds its definitions here. Nothing else is needed
to create, verify, check or deploy them."""

from cosmosservice.artifacts.documents import ARTIFACTS_CONTAINER
from cosmosservice.memory.definition import MEMORIES_CONTAINER
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

CONTAINERS = (SESSIONS_CONTAINER, EVENTS_CONTAINER, MEMORIES_CONTAINER, ARTIFACTS_CONTAINER)
