"""An emulator, and services on it that are closed at the end."""

from __future__ import annotations

import pytest

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService


@pytest.fixture
def emulator():
    with Emulator() as made:
        yield made


@pytest.fixture
async def open_service(emulator):
    """Each call is another process, as far as the store can tell."""
    made = []

    def connect(**options) -> CosmosSessionService:
        made.append(CosmosSessionService.embedded(emulator, **options))
        return made[-1]

    yield connect
    for service in made:
        await service.close()


@pytest.fixture
def service(open_service):
    return open_service()
