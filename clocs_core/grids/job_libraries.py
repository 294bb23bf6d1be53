"""Load once what every job of a grid needs, in the process that forks for them: forks.py.

Beside modules these are the templates of pages, whose compilation takes a third of a second, and Triton. Plugins of
other packages are left to the jobs: importing one may start a thread, which a fork would not have.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from clocs_core.plugins.host import installed_entry_points

_OWN = "clocs"  # the distribution of core and of its plugins
_MODULES = (
    "clocs_core.report.console",
    "clocs_core.workflows.several",
    "clocs_core.workflows.several_evaluations",
)  # with all that they import in turn
_TEMPLATES = ("page.html.jinja", "plain.html.jinja")


def load() -> None:
    """Load what jobs need. Nothing here starts a thread or calls CUDA, since neither survives a fork."""
    for name in _MODULES:
        import_module(name)
    for point in installed_entry_points():
        if point.dist is not None and point.dist.name == _OWN:
            with suppress(Exception):  # the job meets the same problem, and says so
                import_module(point.module)
    with suppress(ImportError):  # every run on a GPU needs it
        import_module("triton")
    from clocs_core.report.page import page_template

    for template in _TEMPLATES:
        page_template(template)
