"""Versions of packages: those that are installed, and a word for those that are not."""

from __future__ import annotations

import numpy as np

from clocs_core.versions import version_of


def test_an_installed_package_has_its_own_version() -> None:
    assert version_of("numpy") == np.__version__


def test_a_package_that_is_not_installed_is_no_error() -> None:
    """A checkout on the path of Python has no version; its results must still be written."""
    assert version_of("clocs-plugin-of-nobody") == "unknown"
