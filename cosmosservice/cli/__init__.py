"""The command `cosmosservice`."""

import sys


def main() -> None:
    try:
        from cosmosservice.cli.commands import cli
    except KeyboardInterrupt:
        sys.exit(130)  # as the commands themselves
    except ImportError as missing:
        if missing.name in ("click", "rich"):
            sys.exit(f"The command line needs {missing.name}: pip install 'cosmosservice[cli]'")
        from cosmosservice.cli import versions

        wanted = " ".join(f"'{each}'" for each in versions.wanted())
        if not wanted:
            raise
        found = ", ".join(f"{name} {each}" for name, each in versions.found().items())
        sys.exit(f"{found}: not supported. pip install {wanted}")
    cli(prog_name="cosmosservice")
