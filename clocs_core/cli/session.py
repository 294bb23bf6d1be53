"""What a command is given: the catalogue and the host of this process."""

from __future__ import annotations

import attrs
import click

from clocs_core.plugins.catalogue import Catalogue
from clocs_core.plugins.host import Host


@attrs.frozen(eq=False)
class Session:
    """The offers of all plugins, and the host that calls their hooks."""

    catalogue: Catalogue
    host: Host


pass_session = click.make_pass_decorator(Session)
