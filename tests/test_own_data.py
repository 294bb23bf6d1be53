"""docs/own-data.md, followed: a folder of files in each format becomes a report by the command of the page."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import made_files
import numpy as np
import pytest
from doc_commands import shown

from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")

QUICK = "--out run --epochs 1 --embedding-dim 8 -o resamples=10 --workers 1 --device cpu"
NAMES_PATIENTS = (".dcm",)  # its files say who it is, so that the table has labels only


@pytest.mark.slow
@pytest.mark.parametrize("ending", made_files.WRITERS)
def test_a_folder_of_files_becomes_a_report_by_the_command_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
):
    """Two recordings of each of twelve patients, slow or fast."""
    (tmp_path / "recordings").mkdir()
    rows = ["file,label" if ending in NAMES_PATIENTS else "file,patient,label"]
    for number in range(24):
        patient, label = f"p{number // 2}", "slow" if number // 2 % 2 else "fast"
        samples = made_files.wave(100, hertz=1 + (label == "fast"), seed=number)
        path = tmp_path / "recordings" / f"r{number}{ending}"
        if ending in NAMES_PATIENTS:
            made_files.write_dicom(path, samples, 100, patient)
        else:
            made_files.WRITERS[ending](path, samples, 100)
        rows.append(f"r{number},{label}" if ending in NAMES_PATIENTS else f"r{number},{patient},{label}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    wanted = "recordings --labels" if ending in NAMES_PATIENTS else "recordings --patients"
    (command,) = [line for line, pages in shown().items() if "own-data.md" in pages and wanted in line]
    assert main(shlex.split(f"{command} {QUICK}")[1:]) == 0
    assert (tmp_path / "run" / "report.html").exists()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["scores"]
    held = tmp_path / "recordings" / f"r3{ending}"
    named = ["--channels", "0,1"] if ending == ".mat" else []
    assert main(["embed", "run", "--input", str(held), *named, "--out", "z.npz"]) == 0
    assert np.load(tmp_path / "z.npz")["embedding"].shape[1] == 8
