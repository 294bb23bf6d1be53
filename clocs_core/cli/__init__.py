"""The command line. `main` is the console script; `build_cli` makes the commands, nothing happens at import."""

from clocs_core.cli.main import build_cli, main

__all__ = ["build_cli", "main"]
