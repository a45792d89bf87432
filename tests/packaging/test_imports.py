"""Importing the package is cheap: what it needs later is loaded later."""

from __future__ import annotations

import subprocess
import sys


def loaded(*program: str) -> set[str]:
    """The modules that the last lines of a program load in addition to those of the first."""
    *before, last = program
    script = "\n".join(
        [
            "import sys",
            *before,
            "before = set(sys.modules)",
            last,
            "print(*set(sys.modules) - before)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split()) - set(sys.stdlib_module_names)


def foreign(modules: set[str]) -> set[str]:
    """Packages that are neither ours nor in the standard library."""
    names = {module.split(".")[0] for module in modules}
    return names - {"cosmosservice"} - set(sys.stdlib_module_names)


def test_the_package_itself_loads_nothing():
    assert foreign(loaded("import cosmosservice")) == set()


def test_the_service_loads_neither_azure_nor_the_emulator_before_its_first_use():
    # We cannot avoid what ADK itself loads. Beyond that, only its exceptions are needed.
    modules = loaded(
        "import google.adk.sessions, google.adk.events",
        "from google.adk.sessions import base_session_service",
        "from cosmosservice import CosmosSessionService; CosmosSessionService.embedded()",
    )
    assert {module for module in modules if module.startswith("google.")} == {
        module for module in modules if module.startswith("google.adk.errors")
    }
    assert foreign(modules) - {"google"} <= {"dotenv"}
    assert "cosmosservice.sessions.store.store" not in modules
