"""The records of a data set: tasks, entries found by a scan, recordings read by a load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Converters: fields kept as tuples accept lists too. mypy types converters by name only, hence five functions.
def _strings(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(items)


def _paths(items: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(items)


def _entries(items: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(items)


def _drops(items: Iterable[Drop]) -> tuple[Drop, ...]:
    return tuple(items)


def _pair(items: Iterable[float] | None) -> tuple[float, ...] | None:
    return None if items is None else tuple(items)


def _positive(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
        raise ValueError(f"{attribute.name} must be a positive number, got {value!r}")


@attrs.frozen
class Episode:
    """A stretch of a recording with its label: source samples `onset` to `offset`, both included, counted from 0.

    label: a class, or the number of a number task. In an any-of task also a set of classes; the empty set says that
    none of them holds.
    """

    onset: int
    offset: int
    label: FrameLabel

    @property
    def classes(self) -> frozenset[int]:
        """The label as a set."""
        return self.label if isinstance(self.label, frozenset) else frozenset((self.label,))  # type: ignore[arg-type]


FrameLabel: TypeAlias = int | float | frozenset[int]
"""A class of the task, a set of classes (any of), or a number (number)."""

Label: TypeAlias = FrameLabel | tuple[Episode, ...] | None
"""The label of a recording: one for all of it, episodes (a label per frame), or no label."""


SLOWEST, FASTEST = 0.01, 1e6
"""Plausible sampling rates in Hz: vital signs once a minute to recordings of single nerves."""

TOGETHER = -1
"""Channel number of a row when the network reads all channels at once."""

Part: TypeAlias = Literal["train", "validation", "test"]
"""A part of the patients."""

Normalisation: TypeAlias = Literal["min-max", "none", "z-score", "constant"]
"""How the signal of an encoder is normalised; `clocs_core.train.normalise` has the formulas."""

SCALE_FREE: tuple[Normalisation, ...] = ("min-max", "z-score")
"""Normalisations that cancel the scale of a signal, so that its unit does not matter."""


@attrs.frozen
class Task:
    """A question that the labels of a data set answer for a recording or a frame.

    kind: `one_of` the classes holds, `any_of` them hold, or the label is a `number`, which has a `unit` and no classes.
    """

    name: str
    classes: tuple[str, ...] = attrs.field(default=(), converter=_strings)
    kind: Literal["one_of", "any_of", "number"] = attrs.field(
        default="one_of", validator=attrs.validators.in_(("one_of", "any_of", "number"))
    )
    per: Literal["record", "frame"] = attrs.field(default="record", validator=attrs.validators.in_(("record", "frame")))
    unit: str = ""

    def __attrs_post_init__(self) -> None:
        if self.kind == "number" and self.classes:
            raise ValueError(f"task {self.name!r} is a number, so it has no classes, got {', '.join(self.classes)}")
        if self.kind != "number" and self.unit:
            raise ValueError(f"task {self.name!r} has classes, which have no unit, got {self.unit!r}")

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what is predicted: the classes, or the task's own name for a number."""
        return (self.name,) if self.kind == "number" else self.classes

    def table(self) -> dict[str, object]:
        """Return the fields as files keep them. An empty unit is left out, as in files of earlier versions."""
        return {name: value for name, value in attrs.asdict(self).items() if name != "unit" or value}


@attrs.frozen
class Column:
    """A fact that a data set knows of its recordings beside signal and label, such as the age of the patient.

    kind: `number`; `category`, one of `classes`; or `text`, which is kept with the recordings and reaches no method.
    mean, deviation: those of the recordings of training patients, by which core standardises a number. Core sets them.
    """

    name: str
    kind: Literal["number", "category", "text"] = attrs.field(
        default="number", validator=attrs.validators.in_(("number", "category", "text"))
    )
    classes: tuple[str, ...] = attrs.field(default=(), converter=_strings)
    mean: float = 0.0
    deviation: float = 1.0


@attrs.frozen
class Entry:
    """One recording found by a scan, without its signal. `files`: files that a load reads, for the fingerprint.

    about: values of the columns that the data set declares, by name: a number, or the name of a class, or text. A value
    that is None or left out is missing.
    """

    record: str
    patient: str
    label: Label = None
    files: tuple[Path, ...] = attrs.field(default=(), converter=_paths)
    about: Mapping[str, float | str | None] = attrs.field(factory=dict, hash=False)


@attrs.frozen
class Drop:
    """A recording that is left out, and the reason. `part` names the lead or frame if only that is left out.

    why: what was wrong with this one, in a sentence, where the reason is a kind of error.
    """

    reason: str
    record: str
    part: str = ""
    why: str = ""


@attrs.frozen
class DropReport:
    """Counts of drops by reason, with the first names for each reason so that a user can look at them.

    why: what was wrong with the first one, by reason.
    """

    counts: dict[str, int] = attrs.field(factory=dict)
    first: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    why: dict[str, str] = attrs.field(factory=dict)

    NAMED = 10  # names kept per reason: enough to look at, short enough to print

    @classmethod
    def of(cls, drops: Iterable[Drop]) -> DropReport:
        """Count the drops by reason, in the order given."""
        counts: Counter[str] = Counter()
        first: dict[str, tuple[str, ...]] = {}
        why: dict[str, str] = {}
        for drop in drops:
            counts[drop.reason] += 1
            if counts[drop.reason] == 1 and drop.why:
                why[drop.reason] = drop.why
            if counts[drop.reason] <= cls.NAMED:
                name = f"{drop.record} {drop.part}".strip()
                first[drop.reason] = (*first.get(drop.reason, ()), name)
        return cls(dict(counts), first, why)

    def __add__(self, other: DropReport) -> DropReport:
        counts = Counter(self.counts) + Counter(other.counts)
        first = {reason: (self.first.get(reason, ()) + other.first.get(reason, ()))[: self.NAMED] for reason in counts}
        why = {reason: report.why[reason] for report in (other, self) for reason in report.why}
        return DropReport(dict(counts), first, why)

    def sentence(self) -> str:
        """Return one line: "dropped 3: 2 flat (A1 V2, A7 II), 1 NaN (A3 V1)", or "nothing dropped"."""
        return f"dropped {sum(self.counts.values()):,}: {self.reasons()}" if self.counts else "nothing dropped"

    def reasons(self) -> str:
        """Return the counts with the first names: "2 flat (A1 V2, A7 II), 1 unreadable: EOFError (A3: it is empty)"."""
        return ", ".join(f"{n:,} {reason} ({self._examples(reason)})" for reason, n in self.counts.items())

    def _examples(self, reason: str) -> str:
        names = ", ".join(self.first[reason][:2]) + (", …" if self.counts[reason] > 2 else "")
        return f"{names}: {self.why[reason]}" if reason in self.why else names


@attrs.frozen
class Listing:
    """The result of a scan.

    entries: the recordings that can serve the task; drops: the others, each with its reason.
    form: the published form of the data set that was recognised, to show to the user.
    notes: remarks for the user, such as how many recordings a table lists without a file.
    task, channels, columns: set where only the files define them and the data set's offer cannot.
    numbered: the files do not name their channels: `channels` are numbers, which the user's names may replace.
    parts: a split that comes with the data, by patient, if the options ask for it.
    published: the same, used where the settings ask for `split="published"`.
    unpublished: why `published` is missing, and what to do, such as for recordings without a fold.
    shortest: samples of the shortest recording, where frames may follow from it: if it has too few frames for a method,
    and no framing was asked for, windows of a part of it are resampled to a frame each.
    no_score: why there can be no score, such as labels that are measurements; recordings still serve pre-training.
    """

    entries: tuple[Entry, ...] = attrs.field(converter=_entries)
    drops: tuple[Drop, ...] = attrs.field(default=(), converter=_drops)
    form: str = ""
    notes: tuple[str, ...] = ()
    task: Task | None = None
    channels: tuple[str, ...] = ()
    numbered: bool = False
    parts: Mapping[str, Part] | None = None
    shortest: int | None = None
    no_score: str = ""
    published: Mapping[str, Part] | None = None
    columns: tuple[Column, ...] = ()
    unpublished: str = ""


@attrs.frozen(eq=False)
class Record:
    """One recording: `samples` is (channel, sample) at `sampling_rate` Hz, channels by name.

    Samples divided by `gain` are in `unit`. Recorders store 16-bit integers; a reader that returns them unscaled,
    with their gain, halves the space of stored frames without loss. The lowest value of an integer type marks a
    missing sample, as NaN does among floats.
    tolerated: faults of the files that the reader accepted, such as a date in the wrong place.
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
        """Return a mask (channel, sample) that is true where a sample is missing or not finite."""
        import numpy as np

        if self.samples.dtype.kind == "i":
            lowest = -(2 ** (8 * self.samples.dtype.itemsize - 1))
            return np.asarray(self.samples == lowest)
        return np.asarray(~np.isfinite(self.samples))

    def physical(self) -> NDArray[np.float64]:
        """Return the samples (channel, sample) in `unit`, NaN where they are missing."""
        import numpy as np

        values = self.samples.astype(np.float64)
        if self.gain != 1.0:
            values /= self.gain
        values[self.missing()] = np.nan
        return values


SAME_LENGTH = 0.01  # recordings that differ by a smaller share last as long: some copies lack the last of 1,000 samples


@attrs.frozen
class Framing:
    """The rule that cuts a recording into frames of `frame_samples` samples, without overlap; the remainder is dropped.

    Three options change the time scale; without any, the recording keeps its sampling rate.
    sampling_rate: resample the recording to this rate (Hz), then cut.
    source_samples: cut windows of this many source samples, then resample each to a frame.
    frames_per_record: resample the whole recording, of any length, to exactly this many frames. With `sampling_rate` as
    well, only a recording that lasts as long as these frames at that rate; others are resampled to the rate.
    keep_flat: keep lead-frames that are constant; they are dropped otherwise.
    band_pass, notch: limits in Hz, and a frequency in Hz that is removed, such as that of the mains. The whole
    recording is filtered first, at its own rate, without a shift in time. A lower limit of 0 leaves slow waves; an
    upper limit, or a notch, at or above half the rate of a recording changes nothing.
    """

    frame_samples: int = attrs.field(default=2500, validator=_positive)  # "frames consisted of 2500 samples", A.1
    sampling_rate: float | None = attrs.field(default=None, validator=_positive)
    source_samples: int | None = attrs.field(default=None, validator=_positive)
    frames_per_record: int | None = attrs.field(default=None, validator=_positive)
    resampler: Literal["fft", "polyphase"] = attrs.field(
        default="fft", validator=attrs.validators.in_(("fft", "polyphase"))
    )
    keep_flat: bool = False
    band_pass: tuple[float, float] | None = attrs.field(default=None, converter=_pair)
    notch: float | None = attrs.field(default=None, validator=_positive)

    @band_pass.validator
    def _limits(self, attribute: attrs.Attribute[Any], value: tuple[float, ...] | None) -> None:
        if value is not None and not (len(value) == 2 and 0 <= value[0] < value[1] < float("inf")):
            raise ValueError(f"band_pass must be two frequencies in Hz, the lower one first, got {value!r}")

    @property
    def filters(self) -> dict[str, object]:
        """The filters that are set, by name."""
        both = {"band_pass": self.band_pass, "notch": self.notch}
        return {name: value for name, value in both.items() if value is not None}

    def __attrs_post_init__(self) -> None:
        ways = ("sampling_rate", "source_samples", "frames_per_record")
        chosen = [way for way in ways if getattr(self, way) is not None]
        if self.source_samples is not None and len(chosen) > 1:
            raise ValueError(f"choose one of {', '.join(chosen)}: each sets the time scale of a frame by itself")

    def stretches(self, samples: int, rate: float) -> bool:
        """Return whether a recording of so many samples at `rate` Hz becomes exactly `frames_per_record` frames."""
        if self.frames_per_record is None or self.sampling_rate is None:
            return self.frames_per_record is not None
        usual = self.frames_per_record * self.frame_samples / self.sampling_rate  # s
        return abs(samples / rate - usual) <= SAME_LENGTH * usual

    def fitted(self, shortest: int, parts: int) -> Framing:
        """Return the framing by which a recording of `shortest` samples has `parts` frames or more.

        Where it has fewer at its own rate, windows of a `parts`-th of it are resampled to a frame each.
        """
        own_rate = self.sampling_rate is None and self.source_samples is None and self.frames_per_record is None
        if not own_rate or shortest >= parts * self.frame_samples:
            return self
        return attrs.evolve(self, source_samples=max(1, shortest // parts))


@attrs.frozen
class Exposure:
    """The amount of training of a run: patients, instances per epoch, and steps in total."""

    patients: int
    instances: int
    steps: int
