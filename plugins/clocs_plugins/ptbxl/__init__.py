"""PTB-XL: clinical 12-lead ECGs of 10 s, with two or more recordings of many patients (Wagner et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from clocs_core import (
    Column,
    Dataset,
    Defaults,
    Entry,
    Framing,
    Listing,
    Record,
    SettingsError,
    Source,
    Task,
    hookimpl,
    option,
)
from clocs_plugins.ptbxl.statements import CLASSES_OF, GROUPS, class_names

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
TASKS = (
    Task("rhythm-group", GROUPS),
    *(Task(name, class_names(name), kind="any_of") for name in CLASSES_OF),
    Task("age", kind="number", unit="years"),
)
ZIP = "ptb-xl-a-large-publicly-available-electrocardiography-dataset-1.0.3.zip"
_FOLD = (lambda fold: 1 <= fold <= 10, "be 1 to 10")


@attrs.frozen
class PtbxlOptions:
    """Options of the data set `ptbxl`: sampling rate, split and diagnoses."""

    rate: Literal[100, 500] | None = option(None, "Sampling rate in Hz, 100 or 500; none prefers records100/.")
    parts: Literal["patient", "strat_fold"] = option(
        "patient", "Split by seed (patient) or as published (strat_fold).", reads=False
    )
    validation_fold: int = option(
        9, "Fold that validates, 1 to 10; another than 9 splits by folds.", check=_FOLD, reads=False
    )
    test_fold: int = option(10, "Fold that tests, 1 to 10; another than 10 splits by folds.", check=_FOLD, reads=False)
    likelihood: float = option(
        0.0, "Least likelihood of a diagnosis, 0 to 100.", check=(lambda x: 0 <= x <= 100, "be 0 to 100"), reads=False
    )

    def __attrs_post_init__(self) -> None:
        if self.validation_fold == self.test_fold:
            raise SettingsError(
                f"ptbxl got fold {self.test_fold} to validate and to test; give two folds, as in "
                "`-o validation_fold=9 -o test_fold=10`"
            )


def scan(root: Path, task: Task, options: PtbxlOptions) -> Listing:
    """List the recordings of ptbxl_database.csv that have files; those without a label serve pre-training."""
    from clocs_plugins.ptbxl.folds import Folds
    from clocs_plugins.ptbxl.recordings import list_recordings

    folds = Folds(options.validation_fold, options.test_fold)
    by_fold = options.parts == "strat_fold" or folds != Folds()
    return list_recordings(root, task.name, options.rate, options.likelihood, folds, by_fold)


def load(entry: Entry, _options: PtbxlOptions) -> Record:
    """Read one recording, in its recorder's integers."""
    from clocs_plugins.ptbxl.signals import read_recording

    return read_recording(entry)


def framing(segments: int) -> Framing:
    """Make all 10 s one frame, or as many frames as a method contrasts segments."""
    return Framing(frame_samples=2500, frames_per_record=max(1, segments))


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="ptbxl",
            summary="12-lead clinical ECGs, 10 s, of about 19,000 patients; the tasks of its benchmark, and age.",
            modality="ecg",
            tasks=TASKS,
            channels=LEADS,
            presets={"4": ("II", "V2", "aVL", "aVR"), "12": LEADS},
            scan=scan,
            load=load,
            framing=framing,
            options=PtbxlOptions,
            defaults=Defaults(batch_size=256, split="60/20/20", channels="4"),
            columns=(Column("age"), Column("sex", "category", ("male", "female"))),
            licence="CC BY 4.0",
            sources=(Source(ZIP, f"https://physionet.org/static/published-projects/ptb-xl/{ZIP}"),),
        )
    ]
