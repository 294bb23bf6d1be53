"""BIDMC PPG and Respiration: ECG, PPG, breathing and vital signs of 53 people in intensive care (PhysioNet, 2018)."""

from __future__ import annotations

from pathlib import Path

from clocs_core import Dataset, Defaults, Entry, Framing, Listing, NoOptions, Record, Source, Task

FILES = "https://physionet.org/files/bidmc/1.0.0/"
WAVEFORMS = ("RESP", "PLETH", "V", "AVR", "II")  # at 125 Hz
NUMERICS = ("HR", "PULSE", "RR", "SpO2")  # numbers on the monitor, once a second; RR is called RESP in the files
BREATHS = (12, 20)  # per minute: fewer than the first are slow, more than the second fast, in an adult at rest
TASKS = (
    Task("respiration", ("slow", "normal", "fast"), per="frame"),
    Task("sex", ("female", "male")),
)


def scan(root: Path, task: Task, _options: NoOptions) -> Listing:
    """List the recordings by their headers; for the task `respiration`, with the breaths per minute of every second."""
    from clocs_plugin_ppg.bidmc.listing import list_recordings

    return list_recordings(root, task.name, BREATHS)


def load(entry: Entry, _options: NoOptions) -> Record:
    """Read one recording: waveforms, and vital signs held for a second each, at 125 Hz."""
    from clocs_plugin_ppg.bidmc.loading import read_recording

    return read_recording(entry, WAVEFORMS, NUMERICS)


def framing(segments: int) -> Framing:
    """Cut frames of 10 s at 250 Hz, the time scale and length of the encoders of ECG data sets."""
    return Framing(frame_samples=2500, sampling_rate=250.0)


BIDMC = Dataset(
    name="bidmc",
    summary="ECG, PPG, respiration and vital signs of 53 people in intensive care, 8 min each (PhysioNet).",
    modality="ecg, ppg",
    tasks=TASKS,
    channels=(*WAVEFORMS, *NUMERICS),
    presets={"ecg-ppg": ("II", "PLETH"), "waveforms": ("II", "PLETH", "RESP"), "numerics": NUMERICS},
    scan=scan,
    load=load,
    framing=framing,
    defaults=Defaults(batch_size=128, epochs=100, channels="ecg-ppg"),
    licence="as stated at physionet.org/content/bidmc",
    # RECORDS names only the waveforms; the numerics of bidmc01 are bidmc01n.
    sources=(Source("bidmc/", FILES, endings=(".hea", ".dat", "n.hea", "n.dat"), sums=f"{FILES}SHA256SUMS.txt"),),
    homepage="https://physionet.org/content/bidmc/1.0.0/",
)
