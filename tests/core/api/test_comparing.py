"""Runs, compared in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_runs import ARGUMENTS

import clocs_core as clocs

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def test_runs_are_compared_in_memory_and_from_folders(run: clocs.Run, data: clocs.Recordings, tmp_path: Path) -> None:
    other = clocs.pretrain("simclr", data, out=tmp_path / "other", **ARGUMENTS)
    found = clocs.compare([run, other], progress=False)
    assert "run.method" in found.settings["setting"]
    assert {row["b"] for row in found.differences} == {"B (simclr)"}
    assert clocs.compare([run, tmp_path / "other"], progress=False).record.differences == found.record.differences
    assert "<table>" in found._repr_html_()
    with pytest.raises(clocs.SettingsError, match="`runs` holds 1; give two or more"):
        clocs.compare([run])
