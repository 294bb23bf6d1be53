"""Pass the session to a command."""

from __future__ import annotations

import click

from clocs_core.plugins.session import Session

pass_session = click.make_pass_decorator(Session)
