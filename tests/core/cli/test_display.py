"""The display of a command: plugins' warnings come last."""

from __future__ import annotations

import warnings

import pytest

from clocs_core import ClocsWarning, DataError
from clocs_core.cli.display import console_display


def warn_and_fail() -> None:
    with console_display() as show:
        for _ in range(2):
            warnings.warn("half of it is missing", ClocsWarning, stacklevel=1)
        show.say("reading")
        raise DataError("no")


def test_what_plugins_warn_of_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the bars and all that was said, where it is seen; also when the command fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(DataError):
            warn_and_fail()
    assert capsys.readouterr().err.splitlines() == ["reading", "Warning: half of it is missing"]
