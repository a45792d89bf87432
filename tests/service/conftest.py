"""These tests inspect the emulator's request log and inject faults, so they always use the
emulator."""

from __future__ import annotations

import pytest

from cosmosservice.account.retries import Retry
from tests.support.stores import CosmosStore


@pytest.fixture
async def open_service(connect_embedded):
    """Each call is another process, as far as the store can tell."""
    store = CosmosStore(connect_embedded)
    yield store.open
    await store.close()


@pytest.fixture
def no_pauses(monkeypatch):
    """The usual number of attempts, without the pauses between them."""
    monkeypatch.setattr(Retry, "seconds", lambda *_: 0.0)


@pytest.fixture
def service(open_service):
    return open_service()
