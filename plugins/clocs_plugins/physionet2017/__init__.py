"""PhysioNet/CinC Challenge 2017: one lead of a hand-held recorder, 9 to 61 s; normal, AF, other rhythm or noise."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from clocs_core import Dataset, Defaults, Entry, Listing, Record, Source, Task, hookimpl, option

RHYTHM = Task("rhythm", classes=("Normal", "AF", "Other", "Noisy"))
HOME = "https://physionet.org/files/challenge-2017/1.0.0/"


@attrs.frozen
class PhysioNet2017Options:
    """Options of the data set `physionet2017`: its labels were revised during and after the challenge."""

    labels: Literal["v3", "plain", "original"] = option("v3", "Preferred REFERENCE file of a folder.", reads=False)
    label_file: str = option("", "Label file to use instead, relative to the data folder.", reads=False)


def scan(root: Path, task: Task, options: PhysioNet2017Options) -> Listing:
    """List the recordings with their labels."""
    from clocs_plugins.physionet2017.recordings import list_recordings

    return list_recordings(root, task, options.labels, options.label_file)


def load(entry: Entry, options: PhysioNet2017Options) -> Record:
    """Read one recording."""
    from clocs_plugins.physionet2017.recordings import read_recording

    return read_recording(entry)


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the training set of the challenge, at its own 300 Hz, not normalised, as in the paper's appendix A.1."""
    return [
        Dataset(
            name="physionet2017",
            summary="PhysioNet/CinC 2017: one-lead ECGs of 8,528 people, four rhythms.",
            modality="ecg",
            tasks=(RHYTHM,),
            channels=("ECG",),
            scan=scan,
            load=load,
            options=PhysioNet2017Options,
            defaults=Defaults(normalise="none", split="64/16/20"),
            licence="ODC-By-1.0",
            sources=(
                Source("training2017.zip", HOME + "training2017.zip", sums=HOME + "SHA256SUMS.txt"),
                Source(
                    "training2017/REFERENCE-v3.csv", HOME + "REFERENCE-v3.csv", sums=HOME + "SHA256SUMS.txt"
                ),  # beside the recordings
            ),
        )
    ]
