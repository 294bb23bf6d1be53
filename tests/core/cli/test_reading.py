"""Flags about the input of a network are checked before anything is read."""

from __future__ import annotations

import pytest

from clocs_core.cli.reading import hertz, refuse_unwritable
from clocs_core.errors import SettingsError


@pytest.mark.parametrize("text", ["0", "-250", "nan", "inf", "fast"])
def test_a_rate_is_a_positive_number(text):
    assert (hertz("--sampling-rate", None), hertz("--sampling-rate", "250")) == (None, 250.0)
    with pytest.raises(SettingsError, match=f"--sampling-rate must be a positive number of Hz, got {text}"):
        hertz("--sampling-rate", text)


def test_a_recording_or_a_file_of_a_run_is_not_replaced(tmp_path):
    """The recording would be gone, or a finished run could not be compared any more."""
    recording, run = tmp_path / "a.npz", tmp_path / "run"
    run.mkdir()
    for file in (recording, run / "predictions.npz", run / "settings.toml"):
        file.touch()
    (tmp_path / "same.npz").symlink_to(recording)
    for path in (recording, tmp_path / "same.npz"):
        with pytest.raises(SettingsError, match="would replace the recording that is read"):
            refuse_unwritable(path, (".npz",), ("gone.npz", str(recording)))
    with pytest.raises(SettingsError, match="would replace a file that the run keeps"):
        refuse_unwritable(run / "predictions.npz", (".npz",))
    refuse_unwritable(run / "mine.npz", (".npz",), (str(recording),))
    refuse_unwritable(tmp_path / "predictions.npz", (".npz",), (str(recording),))


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    refuse_unwritable(tmp_path / "z.NPZ", (".npz",))
    with pytest.raises(SettingsError, match=r"expected a name that ends in \.csv or \.npz"):
        refuse_unwritable(tmp_path / "z.txt", (".csv", ".npz"))
    for path in (tmp_path, tmp_path / "not-there" / "z.npz"):
        with pytest.raises(SettingsError, match="is not a place for a file"):
            refuse_unwritable(path)
