"""Tests of the session service. Many look into the emulator; the others run on any store."""

from __future__ import annotations

import pytest

from cosmosservice.account.retries import Retry


@pytest.fixture
def no_pauses(monkeypatch):
    """The usual number of attempts, without the pauses between them."""
    monkeypatch.setattr(Retry, "seconds", lambda *_: 0.0)


@pytest.fixture
def service(open_service):
    return open_service()
