"""The options of `embedded` are typed by hand: the types must not miss an option."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import pytest

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)

# They name another store than the embedded one, or are about its client.
ELSEWHERE = {"endpoint", "credential", "uri", "client", "preferred_regions"}
ELSEWHERE |= {"allow_multiple_write_regions"}


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        (CosmosAccount, ELSEWHERE),
        (CosmosSessionService, ELSEWHERE | {"account", "client_options"}),
        (CosmosMemoryService, ELSEWHERE | {"account", "client_options"}),
        (CosmosArtifactService, ELSEWHERE | {"account", "client_options"}),
    ],
)
def test_embedded_has_every_option_that_concerns_it(kind, others):
    (options,) = get_args(_annotation(kind.embedded, "options"))
    parameters = {name for name in inspect.signature(kind).parameters if name[0] != "_"}
    assert set(options.__annotations__) == parameters - others


def _annotation(function, name):
    module = inspect.getmodule(function)
    return get_type_hints(function, {**vars(module), "Emulator": object})[name]
