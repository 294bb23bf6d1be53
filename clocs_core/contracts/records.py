"""What a data set hands over: entries found by a scan, recordings read by a load, and the task they serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Converters, so that a list will do where a tuple is kept. mypy knows converters by name only, hence four of them.
def _strings(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(items)


def _paths(items: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(items)


def _entries(items: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(items)


def _drops(items: Iterable[Drop]) -> tuple[Drop, ...]:
    return tuple(items)


def _positive(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
        raise ValueError(f"{attribute.name} must be a positive number, got {value!r}")


@attrs.frozen
class Episode:
    """A stretch of a recording with one class: samples `onset` to `offset` of the source, both included, from 0."""

    onset: int
    offset: int
    label: int


Label: TypeAlias = int | frozenset[int] | tuple[Episode, ...] | None
"""A class of the task, a set of classes (any of), episodes (a label per frame), or no label."""


TOGETHER = -1
"""The channel number of a row whose network reads all channels at once."""

Part: TypeAlias = Literal["train", "validation", "test"]
"""A part of the patients."""


@attrs.frozen
class Task:
    """A question that a data set's labels answer."""

    name: str
    classes: tuple[str, ...] = attrs.field(converter=_strings)
    kind: Literal["one_of", "any_of"] = attrs.field(
        default="one_of", validator=attrs.validators.in_(("one_of", "any_of"))
    )
    per: Literal["record", "frame"] = attrs.field(default="record", validator=attrs.validators.in_(("record", "frame")))


@attrs.frozen
class Entry:
    """One recording as a scan finds it, no signal read. `files` are what a load will read, for the fingerprint."""

    record: str
    patient: str
    label: Label = None
    files: tuple[Path, ...] = attrs.field(default=(), converter=_paths)


@attrs.frozen
class Drop:
    """A recording, or a part of one, that is left out, and why. `part` says which lead or frame, if not all of it."""

    reason: str
    record: str
    part: str = ""


@attrs.frozen
class DropReport:
    """What was left out, counted by reason, with the first names of each so that a user can go and look."""

    counts: dict[str, int] = attrs.field(factory=dict)
    first: dict[str, tuple[str, ...]] = attrs.field(factory=dict)

    NAMED = 10  # names kept per reason: enough to look at, short enough to print

    @classmethod
    def of(cls, drops: Iterable[Drop]) -> DropReport:
        """Count the drops, in the order in which they came."""
        counts: Counter[str] = Counter()
        first: dict[str, tuple[str, ...]] = {}
        for drop in drops:
            counts[drop.reason] += 1
            if counts[drop.reason] <= cls.NAMED:
                name = f"{drop.record} {drop.part}".strip()
                first[drop.reason] = (*first.get(drop.reason, ()), name)
        return cls(dict(counts), first)

    def __add__(self, other: DropReport) -> DropReport:
        counts = Counter(self.counts) + Counter(other.counts)
        first = {reason: (self.first.get(reason, ()) + other.first.get(reason, ()))[: self.NAMED] for reason in counts}
        return DropReport(dict(counts), first)

    def sentence(self) -> str:
        """One line for a console: "dropped 3: 2 flat (A1 V2, A7 II), 1 NaN (A3 V1)", or "nothing dropped"."""
        return f"dropped {sum(self.counts.values()):,}: {self.reasons()}" if self.counts else "nothing dropped"

    def reasons(self) -> str:
        """The counts with the first names: "2 flat (A1 V2, A7 II), 1 NaN (A3 V1)"."""
        reasons = [
            f"{n:,} {reason} ({', '.join(self.first[reason][:2])}{', …' if n > 2 else ''})"
            for reason, n in self.counts.items()
        ]
        return ", ".join(reasons)


@attrs.frozen
class Listing:
    """What a scan found.

    entries: the recordings that can serve the task; drops: those that cannot, each with its reason.
    form: which of the published forms of the data set was recognised, for people.
    notes: what a person should know, such as how many recordings a table lists that are not there.
    task, channels: where the data set's offer cannot know them and only the files do.
    numbered: the files do not name their channels, so that `channels` are numbers; the user's names may replace them.
    parts: a split that comes with the data, by patient, where the options ask for it.
    """

    entries: tuple[Entry, ...] = attrs.field(converter=_entries)
    drops: tuple[Drop, ...] = attrs.field(default=(), converter=_drops)
    form: str = ""
    notes: tuple[str, ...] = ()
    task: Task | None = None
    channels: tuple[str, ...] = ()
    numbered: bool = False
    parts: Mapping[str, Part] | None = None


@attrs.frozen(eq=False)
class Record:
    """One recording: `samples` is (channel, sample) at `sampling_rate` Hz, channels by name.

    Divided by `gain`, samples are in `unit`. Recorders count in 16-bit integers; a reader that hands these over as
    they are, with their gain, lets frames be stored in half the space without a loss. The lowest value of an integer
    type means that a sample is missing, as NaN does among floats.
    `tolerated` says what the reader put up with in its files, such as a date in the wrong place.
    """

    patient: str
    record: str
    channels: tuple[str, ...] = attrs.field(converter=_strings)
    unit: str
    sampling_rate: float = attrs.field(validator=_positive)
    samples: NDArray[np.floating | np.integer]
    label: Label = None
    gain: float = attrs.field(default=1.0, validator=_positive)
    tolerated: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        shape = tuple(self.samples.shape)
        if len(shape) != 2 or shape[0] != len(self.channels):
            raise ValueError(
                f"record {self.record} has samples of shape {shape}, expected (channel, sample) "
                f"with {len(self.channels)} channels ({', '.join(self.channels)})"
            )

    def missing(self) -> NDArray[np.bool_]:
        """Where a sample is missing or not finite (channel, sample)."""
        import numpy as np

        if self.samples.dtype.kind == "i":
            lowest = -(2 ** (8 * self.samples.dtype.itemsize - 1))
            return np.asarray(self.samples == lowest)
        return np.asarray(~np.isfinite(self.samples))

    def physical(self) -> NDArray[np.float64]:
        """The samples in `unit`, NaN where they are missing (channel, sample)."""
        import numpy as np

        values = self.samples.astype(np.float64)
        if self.gain != 1.0:
            values /= self.gain
        values[self.missing()] = np.nan
        return values


@attrs.frozen
class Framing:
    """How a recording becomes frames of `frame_samples` samples, without overlap, the remainder dropped.

    At most one of three ways to change the time scale; none of them keeps the recording's own rate.
    sampling_rate: resample the recording to this rate (Hz), then cut.
    source_samples: cut windows of so many source samples, then stretch each to a frame.
    frames_per_record: stretch the whole recording, whatever its length, to exactly so many frames.
    keep_flat: keep lead-frames that do not move at all, which are dropped otherwise.
    """

    frame_samples: int = attrs.field(default=2500, validator=_positive)  # "frames consisted of 2500 samples", A.1
    sampling_rate: float | None = attrs.field(default=None, validator=_positive)
    source_samples: int | None = attrs.field(default=None, validator=_positive)
    frames_per_record: int | None = attrs.field(default=None, validator=_positive)
    resampler: Literal["fft", "polyphase"] = attrs.field(
        default="fft", validator=attrs.validators.in_(("fft", "polyphase"))
    )
    keep_flat: bool = False

    def __attrs_post_init__(self) -> None:
        ways = ("sampling_rate", "source_samples", "frames_per_record")
        chosen = [way for way in ways if getattr(self, way) is not None]
        if len(chosen) > 1:
            raise ValueError(f"choose one of {', '.join(chosen)}: each sets the time scale of a frame by itself")


@attrs.frozen
class Exposure:
    """What a run was trained on: patients, instances in an epoch, and steps in all."""

    patients: int
    instances: int
    steps: int
