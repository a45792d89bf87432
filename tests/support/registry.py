"""The classes that an application has registered, for the time of a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from cosmosservice.data_converters import classes


@contextlib.contextmanager
def nothing_registered() -> Iterator[None]:
    """Begins with no class, and forgets those that are registered meanwhile."""
    with (
        patch.dict(classes._registered, clear=True),
        patch.dict(classes.event_subclasses, clear=True),
    ):
        yield
