"""Recordings for `pretrain` and `evaluate`: arrays in memory, or an installed data set by name.

data = clocs.Recordings(x, patients=ids, labels=y, sampling_rate=500, channels=["II", "V1"])
data = clocs.dataset(NAME, root="…", task="…")
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Hashable, Mapping, Sequence
from hashlib import sha256
from math import isnan
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Entry, Framing, Label, Listing, Record, Task
from clocs_core.data.recording import without_mask
from clocs_core.data.splits import parts_of_patients
from clocs_core.errors import DataError, SettingsError
from clocs_core.plan.data import resolve_data
from clocs_core.plan.layers import name_settings
from clocs_core.plugins.host import Plugin
from clocs_core.plugins.session import Session, installed_session
from clocs_core.settings.sections import DataSettings

NAME = "recordings"
_MANY = 20  # numbers as labels; more, of which most stand once, are measurements
"""The name of a data set in memory."""


class Data(Protocol):
    """Recordings that can be trained and evaluated on."""

    @property
    def name(self) -> str:
        """The name of the data set."""

    @property
    def in_memory(self) -> bool:
        """Whether the recordings lie in the memory of this process."""

    def add_to(self, session: Session) -> Session:
        """The session with these recordings among its data sets."""

    def settings(self) -> dict[str, object]:
        """The settings by which a plan finds these recordings, by name."""


class Recordings:
    """Recordings in memory with the patient, and where known the label, of each.

    x: an array (recording, channel, sample) or (recording, sample), or a list of arrays (channel, sample) or (sample,),
    which may differ in length. patients: an id for each recording; recordings of one patient stay in one part.
    labels: for each recording a class, or a list of classes, or None where it is not known; or an array
    (recording, class) of 0 and 1, with the names of its columns in `classes`. numbers=True: a number for each
    recording, NaN or None where it is not known, in `label_unit`.
    sampling_rate: in Hz, one for all or one for each recording. channels: a name for each channel.
    parts: "train", "validation" or "test" for each recording; all of a patient are in one part. Default: by split_seed.
    unit: the unit of the samples, such as "mV". names: an id for each recording; its number where none are given.

    A frame has 2,500 samples at the recordings' own rate. Where the shortest recording has fewer than two such frames,
    each of its halves is stretched to one, and all recordings are cut into windows of that length. Frames are cut once,
    into a temporary folder that is removed with the object.
    """

    def __init__(
        self,
        x: ArrayLike | Sequence[ArrayLike],
        *,
        patients: Sequence[Hashable] | NDArray[Any],
        labels: Sequence[Any] | ArrayLike | None = None,
        sampling_rate: float | Sequence[float],
        channels: Sequence[str] | None = None,
        unit: str = "",
        names: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        modality: str = "any",
        numbers: bool = False,
        label_unit: str = "",
        parts: Sequence[str] | None = None,
    ) -> None:
        self._samples = _as_samples(x, named=channels is not None)
        count = len(self._samples)
        self.patients = _one_each("patients", [_patient(one) for one in patients], count)
        self.parts = None if parts is None else parts_of_patients(self.patients, _one_each("parts", list(parts), count))
        self.names = _one_each("names", [f"{n:06d}" for n in range(count)] if names is None else list(names), count)
        self.channels = _channels(channels, self._samples[0].shape[0])
        self.unit, self.modality = unit, modality
        self._rates = _rates(sampling_rate, count)
        if numbers:
            self.task, self._labels = _as_numbers(labels, count, classes, label_unit)
        else:
            self.task, self._labels = _as_labels(labels, count, classes)
        self._row_of = {name: row for row, name in enumerate(self.names)}
        self._folder: Path | None = None

    @property
    def name(self) -> str:
        """The name of the data set."""
        return NAME

    @property
    def in_memory(self) -> bool:
        """True: the recordings lie in the memory of this process."""
        return True

    def __len__(self) -> int:
        return len(self._samples)

    def __repr__(self) -> str:
        seconds = sum(one.shape[1] / rate for one, rate in zip(self._samples, self._rates, strict=True))
        known = sum(label is not None for label in self._labels)
        return (
            f"Recordings({len(self):,} recordings of {len(set(self.patients)):,} patients, "
            f"{len(self.channels)} channels, {seconds / 60:,.1f} min; {known:,} labelled)"
        )

    def add_to(self, session: Session) -> Session:
        """The session with these recordings among its data sets."""
        offer = Dataset(
            name=NAME,
            summary="recordings in memory",
            modality=self.modality,
            tasks=(self.task,),
            channels=self.channels,
            scan=_Scan(self),
            load=_Load(self),
            framing=_Frame(min(one.shape[1] for one in self._samples)),
            options=_InMemory,
            embedded=True,
            licence="your own",
        )
        owner = Plugin(NAME, "clocs", "", ModuleType(NAME))
        return session.with_dataset(offer, owner)

    def settings(self) -> dict[str, object]:
        """The settings by which a plan finds these recordings, by name."""
        return {"data.data_root": self._temporary(), "dataset.digest": self._digest()}

    def _temporary(self) -> Path:
        """The folder of prepared frames, made when it is first needed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="clocs-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def _digest(self) -> str:
        """A hash of all samples, so that frames of other recordings are never taken for these."""
        digest = sha256(repr((self.names, self.patients, self.channels, self.unit, self._rates)).encode())
        for samples in self._samples:
            digest.update(np.ascontiguousarray(samples).data)
        return digest.hexdigest()[:16]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_folder": None}  # a copy in another process makes a folder of its own


@attrs.frozen
class _InMemory:
    """Names the content of recordings in memory, for the fingerprint of prepared frames."""

    digest: str = ""


@attrs.frozen
class _Scan:
    """List recordings in memory."""

    held: Recordings

    def __call__(self, root: Path, task: Task, options: object) -> Listing:
        held = self.held
        entries = [
            Entry(name, patient, label)
            for name, patient, label in zip(held.names, held.patients, held._labels, strict=True)
        ]
        shortest = min(one.shape[1] for one in held._samples)
        return Listing(entries, channels=held.channels, task=held.task, shortest=shortest, parts=held.parts)


@attrs.frozen
class _Load:
    """Read a recording in memory."""

    held: Recordings

    def __call__(self, entry: Entry, options: object) -> Record:
        held = self.held
        row = held._row_of[entry.record]
        return Record(
            entry.patient, entry.record, held.channels, held.unit, held._rates[row], held._samples[row], entry.label
        )


@attrs.frozen
class _Frame:
    """Cut recordings at their own rate; where they are too short for two frames, stretch each half to one."""

    shortest: int  # samples

    def __call__(self, segments: int) -> Framing:
        return Framing().fitted(self.shortest, 2)


@attrs.frozen
class InstalledDataset:
    """A data set that a plugin offers, with the options it is read with. `clocs.dataset` makes one."""

    name: str
    given: Mapping[str, object]

    @property
    def in_memory(self) -> bool:
        """False: the recordings lie on disk."""
        return False

    def add_to(self, session: Session) -> Session:
        """The session as it is: the data set is installed."""
        return session

    def settings(self) -> dict[str, object]:
        """The settings by which a plan finds these recordings, by name."""
        return dict(self.given)


def dataset(name: str, *, root: str | Path | None = None, task: str | None = None, **options: object) -> Data:
    """An installed data set by name; `clocs.datasets()` lists them.

    root: its folder or file; default: its folder in CLOCS_DATA. task: the set of labels; default: its first.
    options: any setting of [data] (channels, split_seed, …) or option of the data set itself.
    Raises UnknownName or SettingsError for a name or an option that does not exist.
    """
    core = {field.name for field in attrs.fields(DataSettings)}
    given = {
        f"{'data' if key in core else 'dataset'}.{key}": value
        for key, value in {"root": root, "task": task, **options}.items()
        if value is not None
    }
    resolve_data(installed_session().catalogue, name, {}, name_settings(given))
    return InstalledDataset(name, given)


# ------------------------------------------------------------------------------------------------ checks of arguments


def _as_samples(x: ArrayLike | Sequence[ArrayLike], named: bool) -> list[NDArray[Any]]:
    """Return the samples (channel, sample) of each recording. named: whether channels have names, to count them by."""
    whole = x if isinstance(x, (list, tuple)) else without_mask(x)
    if isinstance(whole, np.ndarray) and whole.ndim not in (2, 3):
        raise DataError(
            f"x has the shape {whole.shape}, expected (recording, channel, sample) or (recording, sample), or a list "
            "of arrays (channel, sample)."
        )
    samples = [np.atleast_2d(without_mask(one)) for one in whole]
    if not samples:
        raise DataError("x holds no recording.")
    for number, one in enumerate(samples):
        if one.dtype.kind not in "iuf" or one.ndim != 2:
            raise DataError(
                f"Recording {number} of x has the shape {one.shape} and the type {one.dtype}, expected numbers "
                "(channel, sample)."
            )
        if one.shape[0] != samples[0].shape[0]:
            raise DataError(
                f"Recording {number} of x has {one.shape[0]} channels and the first has {samples[0].shape[0]}; all "
                "need the same channels."
            )
    channels, length = samples[0].shape
    if channels > length and not named:
        raise DataError(
            f"x would be recordings of {channels:,} channels with {length:,} samples. Put the channels first: "
            "`x.transpose(0, 2, 1)`, or `one.T` of each in a list. If it is right, name the channels: `channels=[...]`."
        )
    return [one.astype(np.float64) if one.dtype.kind in "iu" else one for one in samples]


def _one_each(argument: str, values: Sequence[Any], count: int) -> tuple[Any, ...]:
    if len(values) != count:
        raise DataError(f"`{argument}` has {len(values):,} values for {count:,} recordings; give one for each.")
    if argument == "names" and len(set(values)) < count:
        raise DataError("`names` has a name twice; give each recording a name of its own.")
    return tuple(values)


def _channels(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    given = [str(n) for n in range(count)] if names is None else [names] if isinstance(names, str) else list(names)
    if len(given) != count or len(set(given)) < count:
        raise DataError(
            f"`channels` names {', '.join(given)}, and x has {count} channels; give each a name of its own."
        )
    return tuple(given)


def _rates(rate: float | Sequence[float], count: int) -> tuple[float, ...]:
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), (count,)) if np.ndim(rate) == 0 else np.asarray(rate)
    if len(rates) != count or not (np.isfinite(rates).all() and (rates > 0).all()):
        raise SettingsError(
            f"`sampling_rate` must be a positive number of Hz, or one for each recording, got {rate!r}."
        )
    return tuple(float(one) for one in rates)


def _patient(given: Hashable) -> str:
    """Return a patient's id as text; whole numbers have no point, so that 7.0 of a table is the 7 of another one."""
    value = given.item() if isinstance(given, np.generic) else given
    if _is_missing(value):
        raise DataError(
            f"`patients` holds {given!r}: every recording needs the id of its patient, so that recordings of one "
            "person are not in training and test. Leave recordings of unknown patients out."
        )
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_labels(
    labels: Sequence[Any] | ArrayLike | None, count: int, classes: Sequence[str] | None
) -> tuple[Task, tuple[Label, ...]]:
    if labels is None:
        return Task("label", tuple(classes or ())), (None,) * count
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        return _from_matrix(labels, count, classes)
    values = _one_each("labels", [_plain(one) for one in labels], count)  # type: ignore[union-attr]  # a sequence
    several = any(isinstance(one, (set, frozenset, list, tuple)) for one in values)
    held = [None if one is None else _as_set(one) for one in values]
    if classes is None:
        _refuse_measurements(values)
    known = tuple(classes or sorted({name for one in held if one is not None for name in one}))
    strange = {name for one in held if one is not None for name in one} - set(known)
    if strange:
        raise DataError(f"`labels` has the class {min(strange)!r}, which is not among `classes`: {', '.join(known)}.")
    number = {name: place for place, name in enumerate(known)}
    if several:
        found = tuple(None if one is None else frozenset(number[name] for name in one) for one in held)
        return Task("label", known, kind="any_of"), found
    return Task("label", known), tuple(None if one is None else number[next(iter(one))] for one in held)


def _refuse_measurements(values: Sequence[Any]) -> None:
    """Raise DataError for numbers that are hardly classes: many, and most of them once."""
    given = [one for one in values if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(set(given)) > _MANY and 2 * len(set(given)) > len(given):
        raise DataError(
            f"`labels` has {len(set(given)):,} different numbers for {len(given):,} recordings, such as {given[0]!r}. "
            "If they are measurements, `numbers=True` predicts them; if they are classes, give them as text."
        )


def _as_numbers(
    labels: Sequence[Any] | ArrayLike | None, count: int, classes: Sequence[str] | None, unit: str
) -> tuple[Task, tuple[Label, ...]]:
    task = Task("label", kind="number", unit=unit)
    if labels is None or classes:
        raise DataError("`numbers=True` needs `labels`, a number for each recording, and has no `classes`.")
    values = _one_each("labels", [_plain(one) for one in labels], count)  # type: ignore[union-attr]  # a sequence
    for one in values:
        if one is not None and (fault := kind_of(task).fault(one, task)):
            raise DataError(f"`labels` holds {one!r:.80}: {fault}, as `numbers=True` asks for.")
    return task, values


def _from_matrix(labels: NDArray[Any], count: int, classes: Sequence[str] | None) -> tuple[Task, tuple[Label, ...]]:
    names = tuple(classes or (str(n) for n in range(labels.shape[1])))
    if labels.shape != (count, len(names)) or not np.isin(labels, (0, 1)).all():
        raise DataError(
            f"`labels` has the shape {labels.shape}, expected ({count}, {len(names)}) of 0 and 1: a row for each "
            "recording, a column for each class."
        )
    return Task("label", names, kind="any_of"), tuple(frozenset(np.flatnonzero(row).tolist()) for row in labels)


def _plain(value: Any) -> Any:
    """A class as text; a missing one as None."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if _is_missing(value) else value


def _is_missing(value: object) -> bool:
    """Tell whether a value stands for none, as Python, NumPy and pandas write it, also among texts."""
    if isinstance(value, str):
        return not value.strip() or value.strip().lower() in ("nan", "<na>")
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def _as_set(value: Any) -> frozenset[str]:
    several = value if isinstance(value, (set, frozenset, list, tuple)) else (value,)
    return frozenset(str(_plain(one)) for one in several)
