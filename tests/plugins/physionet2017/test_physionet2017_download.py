"""`clocs data download physionet2017`, from a server on this machine with recordings in the published form."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from unreliable_server import Behaviour, serve, sums_of

import clocs_plugins.physionet2017 as plugin
from clocs_core.cli import main

LABELS = {"A00001": "N", "A00002": "A", "A00003": "O", "A00004": "~"}


def archive() -> bytes:
    """training2017.zip: recordings with headers, and labels that were revised later."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for seed, record in enumerate(LABELS):
            samples = np.random.default_rng(seed).integers(-900, 900, 3000).astype("<i2")
            matrix = struct.pack("<5i", 30, 1, len(samples), 0, 4) + b"val\0" + samples.tobytes()
            signal = f"{record}.mat 16+24 1000/mV 16 0 {samples[0]} 0 0 ECG"
            file.writestr(f"training2017/{record}.mat", matrix)
            file.writestr(f"training2017/{record}.hea", f"{record} 1 300 {len(samples)}\n{signal}\n")
        file.writestr("training2017/REFERENCE.csv", "".join(f"{record},N\n" for record in LABELS))
    return buffer.getvalue()


def test_what_is_downloaded_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive and the revised labels come from two addresses, and must end where the reader looks for both."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    table = "".join(f"{record},{symbol}\n" for record, symbol in LABELS.items()).encode()
    pages = {"training2017.zip": Behaviour(archive(), drop=0.3), "REFERENCE-v3.csv": Behaviour(table)}
    pages["SHA256SUMS.txt"] = Behaviour(sums_of({name: page.body for name, page in pages.items()}))
    with serve(**pages) as site:
        monkeypatch.setattr(plugin, "HOME", site.url(""))
        assert main(["data", "download", "physionet2017"]) == 0
    assert f"2 of 2 files downloaded to {tmp_path / 'physionet2017'}." in capsys.readouterr().out
    found = plugin.scan(tmp_path / "physionet2017", plugin.RHYTHM, plugin.PhysioNet2017Options())
    assert {one.record: one.label for one in found.entries} == {"A00001": 0, "A00002": 1, "A00003": 2, "A00004": 3}
    assert plugin.load(found.entries[0], plugin.PhysioNet2017Options()).samples.shape == (1, 3000)
