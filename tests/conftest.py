"""Fixtures that every suite may use."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "claims(*names): run only on the stores that claim all of these"
    )
