"""Cut one of the user's recordings into frames for a network. Missing facts are asked for, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import DropReport, Framing, Record
from clocs_core.data.framing import cut_frames
from clocs_core.data.recording import Wish
from clocs_core.data.signal_file import SignalFile, open_recording, read_part
from clocs_core.errors import DataError
from clocs_core.inference.windows import Window, windows_of
from clocs_core.plan.compatibility import (
    fit_channels,
    fit_framing,
    fit_names,
    fit_unit,
    refuse_unseen,
    warn_of_length,
    without_others,
)

MOST_STRETCHED = 20  # upsampling at most: beyond it, 19 of 20 samples are interpolated; often kHz were given for Hz


@attrs.frozen(kw_only=True)
class Unsaid:
    """Facts that the user gives because recordings lack them or have them wrong.

    channels: the names of all channels where a file has none, else those to read.
    trained_at: Hz of the recordings that the network was trained on, where its card does not say it.
    unseen_channels: read channels that the network was not trained on.
    """

    sampling_rate: float | None = None  # Hz
    channels: tuple[str, ...] = ()
    unit: str = ""
    trained_at: float | None = None
    unseen_channels: bool = False


@attrs.frozen(eq=False)
class OwnFrames:
    """The usable frames of one recording; multiplied by `factor`, they are in the network's unit."""

    signal: NDArray[np.float32]  # (n, channel, sample), with one channel or all that are read at once
    frame: NDArray[np.int64]  # (n,) index into `starts`
    channel: NDArray[np.int64]  # (n,) index into `channels`; that of the first, where they are read at once
    starts: NDArray[np.int64]  # (frame,): first sample of each frame in the recording
    channels: tuple[str, ...]
    factor: float

    @property
    def start(self) -> NDArray[np.int64]:
        """First sample of each row (n,) in the recording."""
        return self.starts[self.frame]


def name_files(paths: Sequence[Path]) -> tuple[str, ...]:
    """Name recordings by their files, with their folders where two names would be the same."""
    stems = tuple(path.stem for path in paths)
    return stems if len(set(stems)) == len(stems) else tuple(map(str, paths))


def read_own_frames(card: NetworkCard, path: Path, unsaid: Unsaid, say: Callable[[str], None]) -> Iterator[OwnFrames]:
    """Read a file and cut it as the network needs it; a long recording in parts, of which some may be empty.

    Raises DataError or SettingsError where that is impossible.
    """
    where, told = str(path), set[str]()

    def say_once(text: str) -> None:
        if text not in told:
            told.add(text)
            say(text)

    held = open_recording(path, Wish(unsaid.channels, unsaid.sampling_rate or 0.0))
    rate, windows = unsaid.sampling_rate or held.sampling_rate or 0.0, [Window(0, held.length)]
    if 0 < rate < float("inf"):  # else the whole recording is refused below
        windows = windows_of(held.length, rate, fit_framing(card, rate, unsaid.trained_at))
    drops, usable = DropReport(), 0
    for window in windows:
        part = read_part(held, where, window.first, window.last)
        found, left_out = _cut(card, part, where, unsaid, say_once, window)
        drops, usable = drops + left_out, usable + len(found.frame)
        yield found
    _tell_drops(where, drops, usable, say)


def cut_own_frames(
    card: NetworkCard,
    held: SignalFile,
    where: str,
    unsaid: Unsaid,
    say: Callable[[str], None],
) -> OwnFrames:
    """Cut one recording as the network needs it. where: its name in errors."""
    found, drops = _cut(card, held, where, unsaid, say, Window(0, held.samples.shape[1]))
    _tell_drops(where, drops, len(found.frame), say)
    return found


def _cut(
    card: NetworkCard, held: SignalFile, where: str, unsaid: Unsaid, say: Callable[[str], None], window: Window
) -> tuple[OwnFrames, DropReport]:
    """Cut the samples of a window. Return the usable frames among those to keep, and why others cannot be used."""
    held = _renamed(card, held, unsaid.channels, where)
    record = _record(card, held, where, unsaid)
    for note in (*held.notes, *_told(card, held, record, where)):
        say(note)
    factor = fit_unit(card, record.unit, where)
    framing = fit_framing(card, record.sampling_rate, unsaid.trained_at)
    _refuse_coarse(card, record, framing, where)
    frames = cut_frames(record, framing, slice(window.begin, window.end), window.before)
    if not len(frames.start):
        if framing.band_pass is not None and framing.band_pass[0] >= record.sampling_rate / 2:
            raise DataError(f"{where} has {record.sampling_rate:g} Hz: {frames.drops[0].reason}, {framing.band_pass}.")
        raise DataError(_too_short(card, record, framing, where))
    together = card.input_channels > 1
    usable = frames.valid.all(axis=1, keepdims=True) if together else frames.valid  # (frame, channel), or (frame, 1)
    frame, channel = np.nonzero(usable)
    signal = frames.samples[frame] if together else frames.samples[frame, channel][:, None]
    in_unit = signal.astype(np.float32) / np.float32(frames.gain)
    starts = frames.start + window.first
    return OwnFrames(in_unit, frame, channel, starts, record.channels, factor), DropReport.of(frames.drops)


def _tell_drops(where: str, drops: DropReport, usable: int, say: Callable[[str], None]) -> None:
    """Say why frames were left out. Raises DataError where none is usable."""
    if not usable:
        raise DataError(f"{where} has no frame that can be used: {drops.sentence()}.")
    if drops.counts:
        say(f"{where}: {drops.sentence()}")


def _record(card: NetworkCard, held: SignalFile, where: str, unsaid: Unsaid) -> Record:
    """Return the recording with the channels that are to be read, in their order."""
    rate = _rate(held, where, unsaid)
    found = fit_names(card, held.channels or _named(card, held, unsaid.channels, where))
    # The user's names for a file without names describe all its channels. A network of several channels picks its own.
    asked = () if held.channels is None and card.input_channels > 1 else fit_names(card, unsaid.channels)
    if held.channels is None and not unsaid.unseen_channels:
        asked = without_others(card, asked)
    wanted = fit_channels(card, found, asked, where)
    if not unsaid.unseen_channels:
        refuse_unseen(card, wanted, where, renames=len(found) == 1)
    samples = held.samples[[found.index(one) for one in wanted]]
    name = Path(where).stem
    return Record(name, name, wanted, unsaid.unit or held.unit, rate, samples, gain=held.gain)


def _renamed(card: NetworkCard, held: SignalFile, names: tuple[str, ...], where: str) -> SignalFile:
    """Call the only channel of a file as the user does, if that is one of the network's and the file's own is not."""
    own, new = fit_names(card, held.channels or ()), fit_names(card, names)
    if len(own) != 1 or len(new) != 1 or own[0] in card.channels or new[0] not in card.channels:
        return held
    return attrs.evolve(
        held, channels=None, notes=(*held.notes, f"{where}: the channel {own[0]!r} is read as {new[0]}.")
    )


def _rate(held: SignalFile, where: str, unsaid: Unsaid) -> float:
    rate = held.sampling_rate if unsaid.sampling_rate is None else unsaid.sampling_rate
    if rate is None:
        raise DataError(f"{where} does not say its sampling rate; give it in Hz: `sampling_rate=HZ`.")
    if not 0 < rate < float("inf"):
        raise DataError(
            f"{where} says a sampling rate of {rate:g}, expected a positive number of Hz; give it: `sampling_rate=HZ`."
        )
    return rate


def _named(card: NetworkCard, held: SignalFile, names: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return the user's names for the channels of a recording that has none."""
    count = len(held.samples)
    if len(names) != count:
        example = f"`channels={list(card.channels[:count])}`"
        got = f"got {', '.join(names)}" if names else f"such as {example}"
        raise DataError(
            f"{where} does not name its {count} channel{'s' if count > 1 else ''}: name all of them, in their order, "
            f"{got}. The {card.what} was trained on {', '.join(card.channels)}."
        )
    return names


def _told(card: NetworkCard, held: SignalFile, record: Record, where: str) -> list[str]:
    """Return notes on differences from the file or from training that were tolerated."""
    notes = []
    if held.sampling_rate not in (None, record.sampling_rate):
        notes.append(f"{where} says {held.sampling_rate:g} Hz; {record.sampling_rate:g} Hz was given, and is used.")
    if warning := warn_of_length(card):
        notes.append(warning)
    strange = [one for one in record.channels if one not in card.channels]
    if strange:
        notes.append(f"The {card.what} was trained on {', '.join(card.channels)}; {', '.join(strange)} is new to it.")
    return notes


def _span(record: Record, framing: Framing) -> float:
    """Return the number of samples of a recording, perhaps fractional, that make a frame."""
    if framing.source_samples is not None:
        return framing.source_samples
    if framing.frames_per_record is not None and framing.stretches(record.samples.shape[1], record.sampling_rate):
        return float(record.samples.shape[1] / framing.frames_per_record)
    return framing.frame_samples * record.sampling_rate / (framing.sampling_rate or record.sampling_rate)


def _refuse_coarse(card: NetworkCard, record: Record, framing: Framing, where: str) -> None:
    """Refuse upsampling beyond 20x with a DataError: memory grows with it, too."""
    span = _span(record, framing)
    trained = min(card.frame_samples, card.framing.source_samples or card.frame_samples)
    if span * MOST_STRETCHED < trained:
        by_rate = "Check `sampling_rate=HZ`: it is in Hz, not in kHz."
        raise DataError(
            f"{where} has {span:.3g} samples for a frame (at {record.sampling_rate:g} Hz), and the {card.what} reads "
            f"{trained}: nearly all of them would be interpolated. "
            f"{by_rate if framing.frames_per_record is None else 'Give it a longer recording.'}"
        )


def _too_short(card: NetworkCard, record: Record, framing: Framing, where: str) -> str:
    samples, rate, span = record.samples.shape[1], record.sampling_rate, _span(record, framing)
    return (
        f"{where} has {samples:,} samples ({samples / rate:g} s at {rate:g} Hz), and the {card.what} reads frames of "
        f"{span / rate:g} s. Give it a longer recording, or check `sampling_rate=HZ`."
    )
