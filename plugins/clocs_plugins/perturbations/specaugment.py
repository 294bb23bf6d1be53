"""SpecAugment for signals, CLOCS paper (ICML 2021), appendix B, after Park et al. (Interspeech 2019).

    1. the short-time Fourier transform gives N_f bins of frequency and N_t bins of time
    2. N_m = w·N of them are masked, here rounded to the nearest integer, but at least one unless w = 0
    3. start is drawn uniformly from 0, 1, ..., N - N_m; the mask is start <= bin < start + N_m
    4. masked entries are set to 0 + 0j
    5. steps 3 and 4 are repeated R times
    6. the inverse transform gives the masked signal

The paper does not specify the transform. Here it has a periodic Hann window and a hop of at most half of it. Windows
are centred on the samples 0, hop, 2·hop, ... up to the first centre that is not before the last sample; the signal is
padded with its first and last value. The inverse is the least-squares one (Griffin and Lim, 1984): pieces are weighted
by the window, added up, and divided by the sum of squared windows. That sum is never below 1/2, since every sample lies
between two centres; so without a mask the signal is recovered, edges included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Generator, Tensor


def mask_time(signal: Tensor, generator: Generator, *, width: float, repeats: int, window: int, hop: int) -> Tensor:
    """Mask a share `width` of the time bins of signals (..., sample), `repeats` times, drawn for each signal."""
    window, hop = fit_window(signal.shape[-1], window, hop)
    spectrum = spectrogram(signal, window, hop)  # (signal, time, frequency)
    mask = _draw_masks(spectrum, generator, spectrum.shape[1], width, repeats)  # (signal, time)
    return _invert(spectrum.masked_fill(mask[:, :, None], 0), window, hop, signal)


def mask_frequency(
    signal: Tensor, generator: Generator, *, width: float, repeats: int, window: int, hop: int
) -> Tensor:
    """Mask a share `width` of the frequency bins of signals (..., sample), `repeats` times, drawn for each signal."""
    window, hop = fit_window(signal.shape[-1], window, hop)
    spectrum = spectrogram(signal, window, hop)  # (signal, time, frequency)
    mask = _draw_masks(spectrum, generator, spectrum.shape[2], width, repeats)  # (signal, frequency)
    return _invert(spectrum.masked_fill(mask[:, None, :], 0), window, hop, signal)


def fit_window(samples: int, window: int, hop: int) -> tuple[int, int]:
    """Return window and hop for `samples`: the window is at most a quarter of the signal, and the hop shrinks with it.

    A window as long as the signal would leave almost no bins in time.
    """
    fitting = max(2, min(window, samples // 4))
    return fitting, max(1, hop * fitting // window)


def spectrogram(signal: Tensor, window: int, hop: int) -> Tensor:
    """Compute the short-time Fourier transform (signal, time, frequency) of flattened signals (..., sample).

    It takes window / hop times the memory of the signals.
    """
    samples = signal.shape[-1]
    dtype = torch.promote_types(signal.dtype, torch.float32)  # torch has no transform of bfloat16
    flat = signal.to(dtype).reshape(1, -1, samples)  # replicate padding needs three dimensions
    after = (1 - samples) % hop + window - window // 2 - 1  # to the last centre, and half a window after it
    padded = F.pad(flat, (window // 2, after), mode="replicate")[0]
    pieces = padded.unfold(-1, window, hop) * _hann(padded, window)  # (signal, time, window)
    spectrum: Tensor = torch.fft.rfft(pieces)  # (signal, time, frequency)
    return spectrum


def _draw_masks(spectrum: Tensor, generator: Generator, bins: int, width: float, repeats: int) -> Tensor:
    """Draw masks (signal, bin), true where a bin is masked."""
    masked = max(1, round(width * bins)) if width > 0 else 0  # N_m
    shape = (len(spectrum), repeats, 1)
    start = torch.randint(bins - masked + 1, shape, generator=generator, device=spectrum.device)
    position = torch.arange(bins, device=spectrum.device)
    return ((start <= position) & (position < start + masked)).any(1)


def _invert(spectrum: Tensor, window: int, hop: int, like: Tensor) -> Tensor:
    """Invert a spectrogram (signal, time, frequency) to signals in the shape and dtype of `like`."""
    pieces = torch.fft.irfft(spectrum, window)  # (signal, time, window)
    samples = like.shape[-1]
    signal = _overlap_add(pieces * _hann(pieces, window), hop, samples) / _envelope(pieces, hop, samples)
    return signal.reshape(like.shape).to(like.dtype)


def _envelope(pieces: Tensor, hop: int, samples: int) -> Tensor:
    """Compute the sum of squared windows (1, sample) for one signal, which is cheap compared with a batch."""
    _, time, window = pieces.shape
    return _overlap_add(_hann(pieces, window).square().expand(1, time, window), hop, samples)


def _overlap_add(pieces: Tensor, hop: int, samples: int) -> Tensor:
    """Overlap-add pieces (signal, time, window) and cut the padding: (signal, sample).

    torch.istft would do it too, but syncs with the host to check whether the sum of its windows is zero somewhere.
    """
    _, time, window = pieces.shape
    length = (time - 1) * hop + window
    padded = F.fold(pieces.mT, (1, length), (1, window), stride=(1, hop)).flatten(1)
    # In the padding the sum of windows is zero: dividing by it would turn zero gradients into NaN.
    return padded.narrow(1, window // 2, samples)


def _hann(like: Tensor, window: int) -> Tensor:
    return torch.hann_window(window, dtype=like.dtype, device=like.device)
