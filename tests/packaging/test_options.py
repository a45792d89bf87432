"""The options of `embedded` are typed by hand: the types must not miss an option."""

from __future__ import annotations

import inspect
import re
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
        (CosmosSessionService, ELSEWHERE | {"account"}),
        (CosmosMemoryService, ELSEWHERE | {"account"}),
        (CosmosArtifactService, ELSEWHERE | {"account"}),
    ],
)
def test_embedded_has_every_option_that_concerns_it(kind, others):
    (options,) = get_args(_annotation(kind.embedded, "options"))
    parameters = {name for name in inspect.signature(kind).parameters if name[0] != "_"}
    assert set(options.__annotations__) == parameters - others


@pytest.mark.parametrize("kind", [CosmosSessionService, CosmosMemoryService, CosmosArtifactService])
def test_help_explains_every_option_of_the_account(kind):
    described = re.findall(r"^ +(\w+): \S", inspect.getdoc(kind.__init__), re.MULTILINE)
    options = [name for name in inspect.signature(CosmosAccount).parameters if name[0] != "_"]
    assert len(options) == 11
    assert described[-11:] == options
    assert {*options, "account"} <= inspect.signature(kind).parameters.keys()


@pytest.mark.parametrize("kind", [CosmosAccount, CosmosSessionService])
def test_a_misspelled_option_is_refused(kind):
    with pytest.raises(TypeError, match="unexpected keyword argument 'tiemout'"):
        kind(tiemout=3)


def _annotation(function, name):
    module = inspect.getmodule(function)
    return get_type_hints(function, {**vars(module), "Emulator": object})[name]
