"""The packages can be imported, and importing them is cheap."""

import importlib


def test_packages_import() -> None:
    for name in ("cosmosservice", "cosmos_emulator"):
        assert importlib.import_module(name).__doc__
