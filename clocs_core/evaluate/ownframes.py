"""A file of a user's own as frames for a classifier: what the file does not say is asked for, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.data.framing import cut_frames
from clocs_core.data.records import DropReport, Framing, Record
from clocs_core.data.signalfile import SignalFile, read_signal_file
from clocs_core.errors import DataError
from clocs_core.evaluate.classifiers import ClassifierCard
from clocs_core.evaluate.fitting import fit_channels, fit_framing, fit_unit

__all__ = ["OwnFrames", "Unsaid", "read_own_frames"]


@attrs.frozen(kw_only=True)
class Unsaid:
    """What files do not say of themselves, or say wrongly.

    channels: the names of all channels where a file has none, else those to read.
    trained_at: Hz of the recordings that the classifier was trained on, for one that does not say it.
    """

    sampling_rate: float | None = None  # Hz
    channels: tuple[str, ...] = ()
    unit: str = ""
    trained_at: float | None = None


@attrs.frozen(eq=False)
class OwnFrames:
    """The usable frames of one file; times `factor`, they are in the classifier's unit."""

    signal: NDArray[np.float32]  # (n, channel, sample): of one channel each, or of all that are read at once
    channel: NDArray[np.int64]  # (n,) along `channels`; of the first, where they are read at once
    start: NDArray[np.int64]  # (n,): first sample in the file
    channels: tuple[str, ...]
    factor: float


def read_own_frames(card: ClassifierCard, path: Path, unsaid: Unsaid, say: Callable[[str], None]) -> OwnFrames:
    """Read a file and cut it as the classifier needs it. Raises DataError or SettingsError where it does not fit."""
    file = read_signal_file(path)
    record = _record(card, file, path, unsaid)
    for note in (*file.notes, *_told(card, file, record, path)):
        say(note)
    factor = fit_unit(card, record.unit, str(path))
    framing = fit_framing(card, record.sampling_rate, unsaid.trained_at)
    frames = cut_frames(record, framing)
    if not len(frames.start):
        raise DataError(_too_short(record, framing, path))
    together = card.input_channels > 1
    usable = frames.valid.all(axis=1, keepdims=True) if together else frames.valid  # (frame, channel), or (frame, 1)
    frame, channel = np.nonzero(usable)
    drops = DropReport.of(frames.drops)
    if not len(frame):
        raise DataError(f"{path} has no frame that can be used: {drops.sentence()}.")
    if drops.counts:
        say(f"{path}: {drops.sentence()}")
    signal = frames.samples[frame] if together else frames.samples[frame, channel][:, None]
    in_unit = signal.astype(np.float32) / np.float32(frames.gain)
    return OwnFrames(in_unit, channel, frames.start[frame], record.channels, factor)


def _record(card: ClassifierCard, file: SignalFile, path: Path, unsaid: Unsaid) -> Record:
    """The recording of a file, with the channels that are to be read, in their order."""
    rate = unsaid.sampling_rate or file.sampling_rate
    if rate is None:
        raise DataError(f"{path} does not say its sampling rate; give it in Hz: `--sampling-rate HZ`.")
    found = file.channels or _named(card, file, unsaid.channels, path)
    # Names for a file that has none say what is there; what is read of it the classifier knows, if it reads several.
    asked = () if file.channels is None and card.input_channels > 1 else unsaid.channels
    wanted = fit_channels(card, found, asked, str(path))
    samples = file.samples[[found.index(one) for one in wanted]]
    return Record(path.stem, path.stem, wanted, unsaid.unit or file.unit, rate, samples, gain=file.gain)


def _named(card: ClassifierCard, file: SignalFile, names: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """The user's names for the channels of a file that has none."""
    count = len(file.samples)
    if len(names) != count:
        got = f"got {', '.join(names)}" if names else f"such as `--channels {','.join(card.channels[:count])}`"
        raise DataError(
            f"{path} does not name its {count} channel{'s' if count > 1 else ''}: name all of them, in their order, "
            f"{got}. The classifier was trained on {', '.join(card.channels)}."
        )
    return names


def _told(card: ClassifierCard, file: SignalFile, record: Record, path: Path) -> list[str]:
    """What was put up with."""
    notes = []
    if file.sampling_rate not in (None, record.sampling_rate):
        notes.append(f"{path} says {file.sampling_rate:g} Hz; {record.sampling_rate:g} Hz was given, and is used.")
    strange = [one for one in record.channels if one not in card.channels]
    if strange:
        notes.append(f"The classifier was trained on {', '.join(card.channels)}; {', '.join(strange)} is new to it.")
    return notes


def _too_short(record: Record, framing: Framing, path: Path) -> str:
    samples, rate = record.samples.shape[1], record.sampling_rate
    span = framing.source_samples or framing.frame_samples * rate / (framing.sampling_rate or rate)
    return (
        f"{path} has {samples:,} samples ({samples / rate:g} s at {rate:g} Hz), and the classifier reads frames of "
        f"{span / rate:g} s. Give it a longer recording, or check `--sampling-rate`."
    )
