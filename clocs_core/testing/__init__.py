"""Test plugins: checks that every kind of offer must pass, and synthetic signals to run them on.

A plugin's test is one line, with any test runner:

    @pytest.mark.parametrize("check", checks_of(OFFER, root=FIXTURE), ids=str)
    def test_the_offer_keeps_its_promises(check):
        check.run()

`checks_of_project(folder)` returns the checks of all plugins that a project's pyproject.toml names, as
`clocs plugins test` runs them. Nothing here imports pytest. A check that cannot run, because a data set has no files
here, raises `unittest.SkipTest`, which pytest and unittest both show as skipped, with the reason. Importing this module
imports no torch.
"""

from clocs_core.testing.checks import Check, ConformanceError, failures
from clocs_core.testing.kit import checks_of, checks_of_catalogue
from clocs_core.testing.plugins import checks_of_plugins
from clocs_core.testing.project import checks_of_project
from clocs_core.testing.synthetic import synthetic_batch, synthetic_record

__all__ = [
    "Check",
    "ConformanceError",
    "checks_of",
    "checks_of_catalogue",
    "checks_of_plugins",
    "checks_of_project",
    "failures",
    "synthetic_batch",
    "synthetic_record",
]
