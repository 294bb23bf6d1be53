"""Chapman: 12-lead ECGs of 10,646 people, 10 s at 500 Hz, with one of eleven rhythms each (Zheng et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from clocs_core import Dataset, Defaults, Entry, Framing, Listing, Record, Source, Task, hookimpl, option
from clocs_plugins.chapman.leads import LEADS
from clocs_plugins.chapman.rhythms import GROUPS

FIGSHARE = "https://ndownloader.figshare.com/files"


@attrs.frozen
class ChapmanOptions:
    """The choice between the two published versions of the signals; the WFDB forms have only one."""

    signal: Literal["denoised", "raw"] = option("denoised", "CSV files: denoised (ECGDataDenoised/) or raw (ECGData/)")


def scan(root: Path, _task: Task, options: ChapmanOptions) -> Listing:
    """List the recordings with their rhythm groups, in any of the published forms."""
    from clocs_plugins.chapman.forms import list_recordings

    return list_recordings(root, options.signal)


def load(entry: Entry, _options: ChapmanOptions) -> Record:
    """Read one recording at 500 Hz: CSV files in µV, WFDB recordings in counts of 1/1000 mV."""
    from clocs_plugins.chapman.forms import read_any

    return read_any(entry)


def framing(segments: int) -> Framing:
    """Put all 10 s in one frame, at 250 Hz; segments, which must come from one recording, are 5 s each at 500 Hz."""
    return Framing(sampling_rate=250.0) if segments == 1 else Framing()


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="chapman",
            summary="12-lead ECGs of 10,646 people, 10 s each, four groups of rhythms (Chapman University, Shaoxing)",
            modality="ecg",
            tasks=(Task("rhythm", GROUPS),),
            channels=LEADS,
            presets={"4": ("II", "V2", "aVL", "aVR"), "12": LEADS},
            scan=scan,
            load=load,
            framing=framing,
            options=ChapmanOptions,
            defaults=Defaults(batch_size=256, normalise="min-max", split="60/20/20", channels="4"),
            licence="CC-BY-4.0",
            sources=(
                Source("Diagnostics.xlsx", f"{FIGSHARE}/15653771"),
                Source("ECGDataDenoised.zip", f"{FIGSHARE}/15652862"),
            ),
        )
    ]
