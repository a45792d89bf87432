"""Whatever users catch, receive and annotate is in the package's own namespace."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import cosmosservice
from cosmosservice import errors

PACKAGE = Path(cosmosservice.__file__).parent
OWN_CLASSES = {
    node.name
    for path in PACKAGE.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, ast.ClassDef)
}
PUBLIC_CLASSES = [
    value
    for name in cosmosservice.__all__
    if isinstance(value := getattr(cosmosservice, name), type)
]
SERVICES = [each for each in PUBLIC_CLASSES if not issubclass(each, Exception)]


def test_every_error_can_be_imported_from_the_package():
    defined = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and name[0] != "_"
    }
    assert "StaleSessionError" in defined
    assert defined <= set(cosmosservice.__all__)
    assert all(getattr(cosmosservice, name) is getattr(errors, name) for name in defined)


@pytest.mark.parametrize("kind", SERVICES, ids=lambda kind: kind.__name__)
def test_what_a_public_method_returns_can_be_imported_from_the_package(kind):
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        returned = str(inspect.signature(method).return_annotation)
        own = {word for word in re.findall(r"(?<![\w.])\w+", returned) if word in OWN_CLASSES}
        assert own <= set(cosmosservice.__all__), f"{kind.__name__}.{name} returns {returned}"


def test_every_public_name_is_there():
    for name in cosmosservice.__all__:
        assert getattr(cosmosservice, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        cosmosservice.Nonsense  # noqa: B018
