"""PTB-XL: clinical 12-lead ECGs of 10 s, two recordings or more of many patients (Wagner et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from clocs_core import Dataset, Defaults, Entry, Framing, Listing, Record, Source, Task, hookimpl, option
from clocs_plugins.ptbxl.statements import GROUPS, SUPERCLASSES

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
TASKS = (Task("rhythm", GROUPS), Task("superclass", SUPERCLASSES, kind="any_of"))
ZIP = "ptb-xl-a-large-publicly-available-electrocardiography-dataset-1.0.3.zip"


@attrs.frozen
class PtbxlOptions:
    """Which of the two sampling rates is read, how patients are divided, and which diagnoses count."""

    rate: Literal[100, 500] | None = option(None, "Hz, 100 or 500; none reads records100/ where it is there")
    parts: Literal["patient", "strat_fold"] = option("patient", "patient: a split by seed; strat_fold: the published")
    likelihood: float = option(
        0.0, "superclass: the least likelihood of a statement, 0 to 100", check=(lambda x: 0 <= x <= 100, "be 0 to 100")
    )


def scan(root: Path, task: Task, options: PtbxlOptions) -> Listing:
    """The recordings of ptbxl_database.csv that are there; those without a label serve pre-training."""
    from clocs_plugins.ptbxl.recordings import list_recordings

    return list_recordings(root, task.name, options.rate, options.likelihood, options.parts == "strat_fold")


def load(entry: Entry, _options: PtbxlOptions) -> Record:
    """One recording, in its recorder's integers."""
    from clocs_plugins.ptbxl.signals import read_recording

    return read_recording(entry)


def framing(segments: int) -> Framing:
    """All 10 s are one frame; a method that contrasts segments cuts them into as many."""
    return Framing(frame_samples=2500, frames_per_record=max(1, segments))


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="ptbxl",
            summary="12-lead clinical ECGs, 10 s, of about 19,000 patients; rhythm groups or diagnostic superclasses",
            modality="ecg",
            tasks=TASKS,
            channels=LEADS,
            presets={"4": ("II", "V2", "aVL", "aVR"), "12": LEADS},
            scan=scan,
            load=load,
            framing=framing,
            options=PtbxlOptions,
            defaults=Defaults(batch_size=256, split="60/20/20", channels="4"),
            licence="CC BY 4.0",
            sources=(Source(ZIP, f"https://physionet.org/static/published-projects/ptb-xl/{ZIP}"),),
        )
    ]
