"""The command line. `main` is the console script; `build_cli` makes the commands. Importing has no side effects."""

from clocs_core.cli.main import build_cli, main

__all__ = ["build_cli", "main"]
