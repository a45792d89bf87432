"""The command `cosmosservice`."""

import sys


def main() -> None:
    try:
        from cosmosservice.cli.commands import cli
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        sys.exit(f"The command line needs {missing.name}: pip install 'cosmosservice[cli]'")
    cli(prog_name="cosmosservice")
