"""Divide a long recording into windows that are read one after the other, and give the frames of the whole.

A day of twelve channels would take about 19 GB at once: samples are computed in float64, and resampling copies them.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import attrs

from clocs_core.contracts.records import Framing
from clocs_core.data.framing import source_span

_AT_ONCE = 3600.0  # s of a recording
_SETTLED = 60.0  # s: 18 time constants of a filter of 0.05 Hz; the Fourier method forgets an edge as 1 / distance


@attrs.frozen
class Window:
    """Samples to read, from `first` up to `last`, and the frames among theirs to keep, from `begin` up to `end`.

    before: frames of the recording before the first sample that is read.
    """

    first: int
    last: int
    begin: int = 0
    end: int | None = None
    before: int = 0


def windows_of(length: int, rate: float, framing: Framing) -> list[Window]:
    """Return the windows of a recording of `length` samples at `rate` Hz; a single one where it is not much longer.

    Windows begin with a frame. Around them is read what resampling and filters need, so that frames are those of the
    whole recording: to rounding by a polyphase filter, to about 1e-5 of a step at the ends by the Fourier method.
    """
    span = source_span(framing, rate, length)
    per_window = 0 if span is None else int(_AT_ONCE * rate / span)
    per_window -= per_window % (1 if span is None else span.denominator)  # so that windows begin with a sample
    if span is None or per_window < 1 or length < 2 * per_window * span:
        return [Window(0, length)]
    step, count = int(per_window * span), int(length // (per_window * span))
    is_fourier = framing.resampler == "fft" and framing.sampling_rate not in (None, rate)
    spread = _SETTLED if framing.filters or is_fourier else 0.0
    around = ceil(spread * rate / span) + 1  # frames
    around += -around % span.denominator
    found = []
    for number in range(count):
        begin = min(around, number * per_window)
        first = number * step - int(begin * span)
        is_last = number == count - 1
        last = length if is_last else min(length, first + int(_next_fast(begin + per_window + around, span) * span))
        end = None if is_last else begin + per_window
        found.append(Window(first, last, begin, end, number * per_window - begin))
    return found


def _next_fast(frames: int, span: Fraction) -> int:
    """Return as many frames or a few more, of which a Fourier transform is fast: 746 are 2 x 373, and 750 are not."""
    from scipy.fft import next_fast_len  # takes 0.1 s, and few recordings are long

    return int(next_fast_len(-(-frames // span.denominator))) * span.denominator
