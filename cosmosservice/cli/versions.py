"""Whether the installed versions of google-adk and azure-cosmos are tested ones."""

from __future__ import annotations

from importlib.metadata import requires, version

from packaging.requirements import Requirement

PACKAGES = ("google-adk", "azure-cosmos")


def found() -> dict[str, str]:
    return {name: version(name) for name in ("cosmosservice", *PACKAGES)}


def wanted() -> list[str]:
    """The versions to install instead. Empty if the installed ones are tested."""
    required = map(Requirement, requires("cosmosservice") or ())
    return [
        f"{each.name}{each.specifier}"
        for each in required
        if each.name in PACKAGES and not each.specifier.contains(version(each.name), True)
    ]
