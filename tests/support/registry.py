"""The classes that an application has registered, during a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from cosmosservice.data_converters import classes


@contextlib.contextmanager
def nothing_registered() -> Iterator[None]:
    """Starts without registered classes, and removes those that the test registers."""
    with (
        patch.dict(classes._registered, clear=True),
        patch.dict(classes.event_subclasses, clear=True),
    ):
        yield
