"""Where data sets lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from clocs_core.settings.places import data_root, dataset_folder


def test_data_lives_where_it_was_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given wins over CLOCS_DATA, which wins over the platform's own place."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "variable"))
    assert data_root(str(tmp_path / "given")) == tmp_path / "given"
    assert data_root(None) == tmp_path / "variable"
    monkeypatch.delenv("CLOCS_DATA")
    assert data_root(None).name == "clocs"


def test_a_folder_is_found_by_either_spelling_of_a_name(tmp_path):
    """People unpack ppg-bp as ppg_bp; where both are there the name itself is meant, and where neither is, too."""
    assert dataset_folder(tmp_path, "ppg-bp") == tmp_path / "ppg-bp"
    (tmp_path / "ppg_bp").mkdir()
    assert dataset_folder(tmp_path, "ppg-bp") == tmp_path / "ppg_bp"
    (tmp_path / "ppg-bp").mkdir()
    assert dataset_folder(tmp_path, "ppg-bp") == tmp_path / "ppg-bp"
