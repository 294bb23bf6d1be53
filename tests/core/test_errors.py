"""Errors are what a caller expects them to be, and print their message as it was written."""

from __future__ import annotations

import pytest

from clocs_core import errors
from clocs_core.errors import ClocsError, DataNotFound, UnknownName, neighbours


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn = dict(line.split("── ", 1)[1].split()[:2] for line in (errors.__doc__ or "").splitlines() if "── " in line)
    drawn["DataNotFound"] = drawn["DataNotFound"].strip()
    kinds = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type)}
    found = {name: kind for name, kind in kinds.items() if issubclass(kind, ClocsError) and kind is not ClocsError}
    assert {name: f"({found[name].__bases__[1].__name__})" for name in found} == drawn


@pytest.mark.parametrize("kind", [UnknownName, DataNotFound])
def test_a_message_is_printed_without_quotes_or_numbers(kind: type[ClocsError]) -> None:
    """A LookupError would put it in quotes, an OSError would look for a number."""
    assert str(kind("No dataset 'x'.")) == "No dataset 'x'."


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("encodr", " Did you mean 'encoder'?"),
        ("encoder-of", " Did you mean 'encoder'?"),
        ("met", " Did you mean 'metric' or 'method'?"),
        ("zzz", " There is: encoder, method, metric."),
    ],
)
def test_neighbours_are_close_names_or_all(asked: str, answer: str) -> None:
    assert neighbours(asked, ["metric", "encoder", "method"]) == answer
    assert neighbours(asked, []) == ""


def test_a_name_that_is_nearly_the_one_asked_for_needs_no_second_guess() -> None:
    assert neighbours("epoch", ["notch", "epochs"]) == " Did you mean 'epochs'?"
