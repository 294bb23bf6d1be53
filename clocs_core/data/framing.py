"""Cut a recording into frames, resample them where asked, and mark every lead-frame as usable or not."""

from __future__ import annotations

from collections import Counter, deque
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from clocs_core.contracts.kinds import KINDS
from clocs_core.contracts.records import Drop, Episode, FrameLabel, Framing, Label, Record
from clocs_core.data.filters import filter_signal
from clocs_core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray


_STRETCH = 20  # samples after resampling per sample before, at most
_HARMLESS = 1 << 22  # samples per channel after resampling that any recording may have


@attrs.frozen(eq=False)
class Frames:
    """The frames of one recording. A lead-frame that is not valid holds zeros and is named among the drops."""

    samples: NDArray[np.float32] | NDArray[np.int16]  # (frame, channel, sample), in the record's unit times `gain`
    start: NDArray[np.int64]  # (frame,): the first source sample of each frame
    valid: NDArray[np.bool_]  # (frame, channel)
    drops: tuple[Drop, ...] = ()
    gain: float = 1.0


def cut_frames(record: Record, framing: Framing, kept: slice = slice(None), before: int = 0) -> Frames:
    """Cut a recording as `framing` says, computing in float64 and storing float32, or int16 where that is lossless.

    A lead-frame is not valid when its stretch of the source misses a sample, or is flat. Missing samples are
    interpolated linearly before filters and resampling, so that they spoil no other frame of their lead.

    kept: the frames to return. before: frames of the recording ahead of these samples, to number the drops by.
    """
    plan = _plan(record.samples.shape[1], record.sampling_rate, framing)
    if plan.frames == 0:
        return _no_frames(record, framing, "shorter than a frame")
    if plan.frames * framing.frame_samples > max(_STRETCH * plan.source, _HARMLESS):  # a wrong rate costs the memory
        return _no_frames(record, framing, f"stretched more than {_STRETCH} times")
    if framing.band_pass is not None and framing.band_pass[0] >= record.sampling_rate / 2:
        return _no_frames(record, framing, "band-pass above half the sampling rate")
    finite = ~record.missing()
    if plan.scale == 1 and record.samples.dtype == np.int16 and not framing.filters:
        signal: NDArray[Any] = record.samples
        frames: NDArray[Any] = np.array(_cut(signal, plan, framing), order="C")  # (frame, channel, sample)
        gain = record.gain
    else:
        signal = record.samples.astype(np.float64)
        if record.gain != 1.0:
            signal /= record.gain
        if not finite.all():
            signal = _bridge(signal, finite)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow of float32 is found below, as an infinity
            whole = filter_signal(signal, record.sampling_rate, framing) if framing.filters else signal
            frames = _cut(whole, plan, framing).astype(np.float32, order="C")  # (frame, channel, sample)
        gain = 1.0
    nan, flat = ~np.all(np.isfinite(frames), axis=2), frames.max(axis=2) == frames.min(axis=2)
    for i, (first, end) in enumerate(plan.spans()):
        nan[i] |= ~finite[:, first:end].all(axis=1)
        # Resampling and filters put ripples of 1e-17 on a flat line, so flatness is tested on the source.
        flat[i] |= signal[:, first:end].max(axis=1) == signal[:, first:end].min(axis=1)
    bad = nan | flat if not framing.keep_flat else nan
    frames[bad] = 0
    start = np.array([first for first, _ in plan.spans()], dtype=np.int64)
    drops = _name_drops(record, nan[kept], bad[kept], before + (kept.start or 0))
    return Frames(frames[kept], start[kept], ~bad[kept], drops, gain)


def frame_labels(label: Label, start: Iterable[int], kind: str) -> list[FrameLabel | None]:
    """Return the label of each frame, given the first source sample of each and the kind of the task.

    A class, a set of classes or a number holds for every frame. With episodes, a frame has the label of the episodes
    that contain its first sample, or none. Where episodes overlap, a frame of an any-of task has the classes of all of
    them. In other tasks the episode that starts last counts, since it says what the rhythm changed to; if two start
    together, the one that is listed last counts.
    """
    frames = [int(first) for first in start]
    if not isinstance(label, tuple):
        return [label for _ in frames]
    held = [episode for episode in label if episode.onset <= episode.offset]
    episodes = sorted(held, key=lambda episode: episode.onset)  # stable: ties keep the order of the list
    order = sorted(range(len(frames)), key=frames.__getitem__)
    found: list[FrameLabel | None] = [None] * len(frames)
    label_at = _united(episodes) if KINDS[kind].overlap == "all" else _latest(episodes)
    for number in order:  # from left to right, so that every episode is opened and closed once
        found[number] = label_at(frames[number])
    return found


def _latest(episodes: list[Episode]) -> Callable[[int], FrameLabel | None]:
    """Return a function that gives the label at a sample, to be asked from left to right. `episodes` are sorted."""
    if any(isinstance(episode.label, frozenset) for episode in episodes):
        raise DataError("An episode has a set of classes, in a task whose frames have one class. Give it one class.")
    coming, open_ones = deque(episodes), list[Episode]()

    def label_at(sample: int) -> FrameLabel | None:
        while coming and coming[0].onset <= sample:
            open_ones.append(coming.popleft())
        while open_ones and open_ones[-1].offset < sample:  # those below it are looked at once it has ended
            open_ones.pop()
        return open_ones[-1].label if open_ones else None

    return label_at


def _united(episodes: list[Episode]) -> Callable[[int], frozenset[int] | None]:
    """Return a function that gives all classes at a sample, to be asked from left to right. `episodes` are sorted."""
    coming, ending = deque(episodes), deque(sorted(episodes, key=lambda episode: episode.offset))
    holding: Counter[int | None] = Counter()  # episodes per class; None counts the episodes themselves

    def label_at(sample: int) -> frozenset[int] | None:
        while coming and coming[0].onset <= sample:
            holding.update([None, *coming.popleft().classes])
        while ending and ending[0].offset < sample:
            holding.subtract([None, *ending.popleft().classes])
        return frozenset(one for one, times in holding.items() if times and one is not None) if holding[None] else None

    return label_at


@attrs.frozen
class _Plan:
    """The number of frames, and the number of source samples, perhaps fractional, that each one spans."""

    frames: int
    span: Fraction
    source: int
    scale: Fraction  # samples after resampling per sample before
    resampled: int  # length of the whole recording after resampling; 0 where each window is resampled by itself

    def spans(self) -> list[tuple[int, int]]:
        """Return the first source sample of each frame, and one past its last."""
        edges = [i * self.span for i in range(self.frames + 1)]
        ends = [min(-(-edge.numerator // edge.denominator), self.source) for edge in edges[1:]]
        return [(int(first), end) for first, end in zip(edges, ends, strict=False)]


def _plan(source: int, sampling_rate: float, framing: Framing) -> _Plan:
    samples = framing.frame_samples
    if framing.source_samples is not None:
        span = Fraction(framing.source_samples)
        return _Plan(source // framing.source_samples, span, source, samples / span, 0)
    if framing.frames_per_record is not None and framing.stretches(source, sampling_rate):
        resampled = samples * framing.frames_per_record if source else 0
        scale = Fraction(resampled, max(source, 1))
    else:
        rate = framing.sampling_rate or sampling_rate
        resampled = round(source * rate / sampling_rate)
        # The Fourier method resamples to a whole number of samples; a polyphase filter uses only the rates.
        fourier = framing.resampler == "fft"
        scale = Fraction(resampled, max(source, 1)) if fourier else _simple(Fraction(rate / sampling_rate))
    return _Plan(resampled // samples, samples / scale if scale else Fraction(0), source, scale, resampled)


def source_span(framing: Framing, sampling_rate: float, length: int) -> Fraction | None:
    """Return the samples, perhaps fractional, of a recording of `length` samples that a frame spans.

    None where that follows from the length: the recording is stretched as a whole.
    """
    if framing.source_samples is not None:
        return Fraction(framing.source_samples)
    if framing.frames_per_record is not None and framing.stretches(length, sampling_rate):
        return None
    return framing.frame_samples / _simple(Fraction((framing.sampling_rate or sampling_rate) / sampling_rate))


def _simple(ratio: Fraction) -> Fraction:
    """Approximate a ratio by small numbers: a polyphase filter for 1234567/617283 has 25 million taps."""
    return ratio.limit_denominator(10_000) or ratio


def _cut(signal: NDArray[Any], plan: _Plan, framing: Framing) -> NDArray[Any]:
    channels = signal.shape[0]
    if plan.resampled:
        whole = _resample(signal, plan.resampled, plan.scale, framing.resampler)
        used = whole[:, : plan.frames * framing.frame_samples]
        frames = used.reshape(channels, plan.frames, framing.frame_samples)
    else:
        windows = signal[:, : plan.frames * int(plan.span)].reshape(channels, plan.frames, int(plan.span))
        frames = _resample(windows, framing.frame_samples, plan.scale, framing.resampler)
    return frames.transpose(1, 0, 2)  # (frame, channel, sample)


def _resample(
    signal: NDArray[Any], length: int, scale: Fraction, resampler: Literal["fft", "polyphase"]
) -> NDArray[Any]:
    """Resample the last axis by `scale`, to `length` samples: sample k is at the time of source sample k / scale."""
    if scale == 1:
        return signal
    if resampler == "fft":
        return _stretch_spectrum(signal, length)
    from scipy import signal as scipy_signal  # 1.5 s to import

    ratio = _simple(scale)
    # padtype: with scipy's default, zeros, a lead with an offset gets a step at both ends of every window.
    stretched = np.asarray(
        scipy_signal.resample_poly(signal, ratio.numerator, ratio.denominator, axis=-1, padtype="line")
    )
    missing = max(0, length - stretched.shape[-1])  # a simplified ratio can end a sample early
    edges = [(0, 0)] * (signal.ndim - 1) + [(0, missing)]
    return np.pad(stretched, edges, mode="edge")[..., :length]


def _stretch_spectrum(signal: NDArray[Any], length: int) -> NDArray[Any]:
    """Resample like scipy.signal.resample, without the 1.5 s that importing it costs every worker process."""
    before = signal.shape[-1]
    spectrum = np.fft.rfft(signal)
    both = min(before, length)  # both lengths have the frequencies of the shorter one
    stretched = np.zeros((*signal.shape[:-1], length // 2 + 1), dtype=np.complex128)
    stretched[..., : both // 2 + 1] = spectrum[..., : both // 2 + 1]
    if both % 2 == 0 and before != length:
        # At the Nyquist frequency of the shorter signal, one coefficient equals two in the longer one's spectrum.
        stretched[..., both // 2] *= 2.0 if length < before else 0.5
    return np.asarray(np.fft.irfft(stretched, length) * (length / before))


def _bridge(source: NDArray[np.float64], finite: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return a copy with samples that are not finite interpolated linearly; zeros in a lead without finite samples."""
    bridged = source.copy()
    at = np.arange(source.shape[1])
    for lead, good in zip(bridged, finite, strict=True):
        lead[~good] = np.interp(at[~good], at[good], lead[good]) if good.any() else 0.0
    return bridged


def _name_drops(record: Record, nan: NDArray[np.bool_], bad: NDArray[np.bool_], before: int) -> tuple[Drop, ...]:
    return tuple(
        Drop("NaN" if nan[frame, lead] else "flat", record.record, f"{record.channels[lead]} frame {before + frame}")
        for frame, lead in np.argwhere(bad)
    )


def _no_frames(record: Record, framing: Framing, reason: str) -> Frames:
    channels = len(record.channels)
    return Frames(
        samples=np.zeros((0, channels, framing.frame_samples), dtype=np.float32),
        start=np.zeros(0, dtype=np.int64),
        valid=np.zeros((0, channels), dtype=np.bool_),
        drops=(Drop(reason, record.record),),
    )
