"""Read one recording of PPG-BP: numbers separated by tabs, counts of a 12-bit converter at 1000 Hz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clocs_core import DataError, Entry, Record, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 1000.0  # Hz
LARGEST = 1 << 22  # bytes; a recording has 20,000
FULL_SCALE = 4095  # counts; stronger signals are clipped
ORDER = 2  # order of the Butterworth filter; forwards and backwards make four


def read_recording(entry: Entry, band: tuple[float, ...] | None, samples: int) -> Record:
    """Load one recording, filtered to `band` (Hz) unless that is None. Clipped samples are NaN.

    Two of the published files hold two recordings, one after the other with a jump between; the first is read.
    Raise DataError if the file holds anything but numbers.
    """
    counts = _read_counts(entry)
    tolerated: tuple[str, ...] = ()
    if len(counts) > samples:
        tolerated = (f"The file holds {len(counts):,} samples, more than one recording; {samples:,} were read.",)
        counts = counts[:samples]
    wave = _without_clipping(counts)
    if band is not None:
        wave = band_pass(wave, band)
    return Record(entry.patient, entry.record, ("PPG",), "counts", RATE, wave[None], entry.label, tolerated=tolerated)


def band_pass(wave: NDArray[np.float64], band: tuple[float, ...]) -> NDArray[np.float64]:
    """Filter a wave (sample,) to a band (Hz) without a shift in time. NaN are interpolated for the filter and stay NaN.

    The ends are mirrored for a period of the lower frequency: the recordings are about as short as one, and the start
    of the filter would otherwise affect all of them.
    """
    import numpy as np
    from scipy import signal

    missing = ~np.isfinite(wave)
    if missing.all():
        return wave
    at = np.arange(len(wave))
    bridged = np.where(missing, np.interp(at, at[~missing], wave[~missing]), wave)
    sections = signal.butter(ORDER, band, btype="bandpass", fs=RATE, output="sos")
    ends = min(len(wave) - 1, round(RATE / band[0]))
    passed = np.asarray(signal.sosfiltfilt(sections, bridged, padtype="even", padlen=ends), dtype=np.float64)
    return np.where(missing, np.nan, passed)


def _read_counts(entry: Entry) -> NDArray[np.float64]:
    import numpy as np

    file = entry.files[0]
    with open_regular(file, LARGEST) as stream:
        words = stream.read().decode("ascii", "replace").split()  # a tab follows the last number
    try:
        counts = np.array(words, dtype=np.float64)
    except ValueError as problem:
        raise DataError(f"{file} should hold numbers with tabs between them: {problem}. Download it again.") from None
    if len(counts) == 0:
        raise DataError(f"{file} holds no number. Download it again.")
    return counts


def _without_clipping(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.where((counts >= FULL_SCALE) | (counts <= 0), np.nan, counts)
