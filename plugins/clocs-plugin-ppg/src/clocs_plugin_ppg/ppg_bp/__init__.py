"""PPG-BP: fingertip pulse waves of 219 people, three times 2.1 s each (Liang et al., Scientific Data 2018)."""

from __future__ import annotations

from pathlib import Path

import attrs
from clocs_core import Dataset, Defaults, Entry, Framing, Listing, Record, Task, option

from clocs_plugin_ppg.ppg_bp.labels import TASKS

SAMPLES = 2100  # samples of a recording, at 1000 Hz


def _is_band(band: tuple[float, ...] | None) -> bool:
    return band is None or (len(band) == 2 and 0 < band[0] < band[1] < 500)


@attrs.frozen
class PpgBpOptions:
    """Options of the data set `ppg-bp`: the filter of the waves. The recorder itself passed 0.5 to 12 Hz."""

    band_pass: tuple[float, ...] | None = option(
        (0.5, 8.0),
        "Pass band in Hz of a zero-phase filter, such as 0.5,8; none reads the raw counts.",
        check=(_is_band, "be two frequencies, the lower first, above 0 and below 500 Hz, or none"),
    )


def scan(root: Path, task: Task, _options: PpgBpOptions) -> Listing:
    """List the recordings with their subjects' labels from the workbook."""
    from clocs_plugin_ppg.ppg_bp.listing import list_recordings

    return list_recordings(root, task.name)


def load(entry: Entry, options: PpgBpOptions) -> Record:
    """Read one recording of one channel, at 1000 Hz."""
    from clocs_plugin_ppg.ppg_bp.signals import read_recording

    return read_recording(entry, options.band_pass, SAMPLES)


def framing(segments: int) -> Framing:
    """Cut frames of half a recording, 1.05 s, about one pulse; three or more segments share the 2.1 s evenly.

    500 samples are enough for frequencies below 8 Hz, and let the paper's network see most of a pulse at once; in 2500
    it sees a sixth. An encoder of another frame length, such as that of an ECG, gets frames of its length.
    """
    return Framing(frame_samples=500, source_samples=SAMPLES // max(2, segments))


PPG_BP = Dataset(
    name="ppg-bp",
    summary="PPG of 219 people, 3 x 2.1 s at 1000 Hz, with blood pressure classes and diabetes (Liang et al. 2018).",
    modality="ppg",
    tasks=TASKS,
    channels=("PPG",),
    scan=scan,
    load=load,
    framing=framing,
    options=PpgBpOptions,
    defaults=Defaults(batch_size=128, learning_rate=1e-3, epochs=200),
    licence="CC BY 4.0",
    homepage="https://doi.org/10.6084/m9.figshare.5459299",
)
