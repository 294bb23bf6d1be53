"""The commands and offers of a fresh installation, whatever else this machine has installed."""

from __future__ import annotations

from clocs_core.cli.main import build_cli
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import open_session

session = open_session(
    [point for point in installed_entry_points() if point.dist is not None and point.dist.name == "clocs"]
)
cli = build_cli(session)
cli.context_settings["terminal_width"] = 80  # whatever the width of the terminal where the site is built
