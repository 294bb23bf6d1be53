"""Names and kinds of a new plugin."""

from __future__ import annotations

import pytest

from clocs_core import ClocsError
from clocs_core.scaffold.naming import DEFAULT_KINDS, LONGEST, choose_kinds, name_plugin


@pytest.mark.parametrize(
    ("distribution", "package", "plugin"),
    [
        ("clocs-plugin-eeg", "clocs_plugin_eeg", "eeg"),
        ("clocs-eeg", "clocs_eeg", "eeg"),
        ("Sleep.Lab--Belts", "sleep_lab_belts", "sleep-lab-belts"),
        ("clocsy", "clocsy", "clocsy"),
    ],
)
def test_all_names_follow_from_the_name_of_the_distribution(distribution: str, package: str, plugin: str) -> None:
    names = name_plugin(distribution)
    assert (names.distribution, names.package, names.plugin) == (distribution, package, plugin)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a b", "cannot be the name of a distribution"),
        ("", "cannot be the name of a distribution"),
        ("eeg-", "cannot be the name of a distribution"),
        ("../eeg", "cannot be the name of a distribution"),
        ("ée", "cannot be the name of a distribution"),
        ("3d-eeg", "would be imported as '3d_eeg', which Python cannot"),
        ("lambda", "would be imported as 'lambda', which Python cannot"),
        ("clocs", "says nothing of what the plugin is about"),
        ("clocs-plugin", "says nothing of what the plugin is about"),
        ("e" * (LONGEST + 1), f"has {LONGEST + 1} characters, expected at most {LONGEST}"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(name: str, problem: str) -> None:
    """pip, Python and the command line have rules of their own for names; all are told of before a file is written."""
    with pytest.raises(ClocsError) as caught:
        name_plugin(name)
    assert problem in str(caught.value)


def test_kinds_are_chosen_in_the_order_of_the_hooks_and_a_method_brings_its_parts() -> None:
    assert choose_kinds([]) == DEFAULT_KINDS
    assert choose_kinds(["metric,loss", "dataset"]) == ("dataset", "loss", "metric")
    assert choose_kinds(["method"]) == ("views", "encoder", "loss", "method")
    assert choose_kinds(["grid"]) == ("dataset", "views", "encoder", "loss", "method", "grid")
    with pytest.raises(ClocsError, match=r"A plugin has no kind of part 'encodr'. Did you mean 'encoder'\?"):
        choose_kinds(["encodr"])
