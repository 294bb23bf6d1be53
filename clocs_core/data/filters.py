"""Filter a whole recording before it is cut: a band-pass, and a notch for the mains.

Both are zero-phase: they run forwards and backwards, so that no wave is shifted in time.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from clocs_core.contracts.records import Framing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORDER = 4  # of the Butterworth filter at each limit; forwards and backwards it acts as one of twice the order
_QUALITY = 30.0  # frequency of the notch over its width at -3 dB: 1.7 Hz wide at 50 Hz


def filter_signal(signal: NDArray[np.float64], rate: float, framing: Framing) -> NDArray[np.float64]:
    """Filter a recording (channel, sample) of `rate` Hz as `framing` asks for. All samples must be finite.

    A lower limit of 0, and an upper limit or a notch at or above half the rate, changes nothing.
    """
    from scipy import signal as scipy_signal  # 1.5 s to import

    low, high = framing.band_pass or (0.0, rate)
    if low > 0:
        sections = scipy_signal.butter(_ORDER, low, "highpass", output="sos", fs=rate)
        signal = _both_ways(sections, signal, ceil(rate / low))
    if high < rate / 2:
        sections = scipy_signal.butter(_ORDER, high, "lowpass", output="sos", fs=rate)
        signal = _both_ways(sections, signal, ceil(rate / high))
    if framing.notch is not None and framing.notch < rate / 2:
        sections = scipy_signal.tf2sos(*scipy_signal.iirnotch(framing.notch, _QUALITY, fs=rate))
        signal = _both_ways(sections, signal, ceil(_QUALITY * rate / framing.notch))
    return signal


def _both_ways(sections: NDArray[Any], signal: NDArray[np.float64], settling: int) -> NDArray[np.float64]:
    """Run a filter forwards and backwards. settling: samples that the signal is continued by at both ends."""
    from scipy.signal import sosfiltfilt

    return np.asarray(sosfiltfilt(sections, signal, padlen=min(settling, signal.shape[1] - 1)))
