"""The containers of all services. A new service adds its definitions here, and nothing else is
needed to create, verify, examine or deploy them."""

from cosmosservice.artifacts.documents import ARTIFACTS_CONTAINER
from cosmosservice.memory.definition import MEMORIES_CONTAINER
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

CONTAINERS = (SESSIONS_CONTAINER, EVENTS_CONTAINER, MEMORIES_CONTAINER, ARTIFACTS_CONTAINER)
