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


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    refuse_unwritable(tmp_path / "z.NPZ", (".npz",))
    with pytest.raises(SettingsError, match=r"expected a name that ends in \.csv or \.npz"):
        refuse_unwritable(tmp_path / "z.txt", (".csv", ".npz"))
    for path in (tmp_path, tmp_path / "not-there" / "z.npz"):
        with pytest.raises(SettingsError, match="is not a place for a file"):
            refuse_unwritable(path)
