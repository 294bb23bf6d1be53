"""Cardiology: the public test set of Hannun et al. 2019, one lead of 328 patients with a rhythm for every sample."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from clocs_core import Dataset, Defaults, Entry, Framing, Listing, Record, Source, Task, hookimpl, option
from clocs_plugins.cardiology.rhythms import CLASSES, WINDOW

ZIP = "CARDIOL_MAY_2017.zip"
SHA256 = "d142fa49f8be435a431741d5b9bba30a28a597ad5cec159bf9414ebaced384dd"


@attrs.frozen
class CardiologyOptions:
    """Options of the data set `cardiology`. The CLOCS paper drops sudden bradycardia; the set's authors call it AVB."""

    sudden_brady: Literal["drop", "avb"] = option(
        "drop", "Frames of sudden bradycardia: drop (CLOCS) or avb (Hannun).", reads=False
    )


def scan(root: Path, _task: Task, options: CardiologyOptions) -> Listing:
    """List the recordings with a labelled frame, from the downloaded zip file or from the folder in it."""
    from clocs_plugins.cardiology.recordings import list_recordings

    return list_recordings(root, options.sudden_brady)


def load(entry: Entry, _options: CardiologyOptions) -> Record:
    """Read one recording at 200 Hz, in counts of its recorder; the publisher states no gain."""
    from clocs_plugins.cardiology.recordings import read_recording

    return read_recording(entry)


def framing(_segments: int) -> Framing:
    """Cut windows of 1.28 s. Keep flat ones (3 of 7,544, all labelled NOISE), to get the paper's 7,079 frames."""
    return Framing(frame_samples=2500, source_samples=WINDOW, keep_flat=True)


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="cardiology",
            summary="Single-lead ECGs of 328 patients, 30 s each, with 12 rhythms labelled in time (Hannun 2019).",
            modality="ecg",
            tasks=(Task("rhythm", CLASSES, per="frame"),),
            channels=("ECG",),
            scan=scan,
            load=load,
            framing=framing,
            options=CardiologyOptions,
            defaults=Defaults(batch_size=16, learning_rate=1e-4, normalise="none", split="64/16/20"),
            licence="none stated by the publisher; do not pass the recordings on",
            sources=(Source(ZIP, f"https://irhythm.github.io/public_data/{ZIP}", 3_197_307, SHA256),),
        )
    ]
