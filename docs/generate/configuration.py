"""The reference of settings and options, from the settings model and the service's signature."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic_core import PydanticUndefined

from cosmosservice import CosmosAccount
from cosmosservice.account.settings import Settings, variable
from docs.generate.pages import table


def settings() -> str:
    rows = [
        [f"`{variable(name)}`", _setting_default(name, field), _cell(field.description or "")]
        for name, field in Settings.model_fields.items()
    ]
    return table(["variable", "default", "what it is"], rows)


def _setting_default(name: str, field: Any) -> str:
    if field.default is PydanticUndefined:
        return "must be set"
    return "none" if field.default is None else f"`{field.default}`"


def account_options() -> str:
    return _options(CosmosAccount, _parameters(CosmosAccount))


def service_options(service: type) -> str:
    """Those that are neither the account nor an account's."""
    own = {
        name: parameter
        for name, parameter in _parameters(service).items()
        if name not in {"account", *_parameters(CosmosAccount)}
    }
    return _options(service, own)


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(kind).parameters
    return {name: each for name, each in parameters.items() if not name.startswith("_")}


def _options(kind: type, parameters: dict[str, inspect.Parameter]) -> str:
    descriptions = _descriptions(kind.__init__)
    rows = []
    for name, parameter in parameters.items():
        description = descriptions.get(name) or Settings.model_fields[name].description or ""
        rows.append([f"`{name}`", _default(name, parameter.default), _cell(description)])
    return table(["option", "default", "what it does"], rows)


def _default(name: str, value: Any) -> str:
    if name in Settings.model_fields:
        return f"`{variable(name)}`"
    if isinstance(value, int) and not isinstance(value, bool) and value % 1024**2 == 0:
        return f"{value // 1024**2} MB"
    return "none" if value is None else f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def _descriptions(function: Any) -> dict[str, str]:
    """The descriptions below `Args:` of a docstring."""
    _, _, text = (inspect.getdoc(function) or "").partition("Args:\n")
    text = re.sub(r"\n {4,}", " ", text)  # a line that goes on
    return dict(re.findall(r"^ +(\w+): (.*)$", text, re.MULTILINE))


def _cell(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text[:1].upper() + text[1:]
