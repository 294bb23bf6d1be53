"""Make entries from files and tables: patients, labels and names of channels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core import DataError, DataNotFound, Drop, Entry, Label, Listing, Part, Task, parts_of_patients
from clocs_plugins.arrays.folders import describe_file, describe_folder, find_single
from clocs_plugins.arrays.layout import Found, natural
from clocs_plugins.arrays.matching import values_of
from clocs_plugins.arrays.numpyforms import describe_array
from clocs_plugins.arrays.parquetfiles import describe_parquet
from clocs_plugins.arrays.tables import LABEL, PART, is_missing

if TYPE_CHECKING:
    from clocs_plugins.arrays import ArraysOptions

_MANY = 20  # classes; labels with more, and more than half as many classes as labels, are measurements

_MARKS = ";|,+/"  # between several classes, in many tables


def list_recordings(root: Path, task: Task, options: ArraysOptions) -> Listing:
    """List the recordings at `root` as entries. Raises DataError in one sentence where the files are inconsistent."""
    patient_file, label_file, part_file = (
        Path(given).expanduser() if given not in (None, "own", "none") else None
        for given in (options.patients, options.labels, options.parts)
    )
    found = _describe(root, options, [path for path in (patient_file, label_file, part_file) if path is not None])
    rate_notes = _check_rate(found, options.sampling_rate)
    channels, numbered = _channels(found, options.names)
    patients, notes = _patients(_with_pattern(found, options.patient_pattern), patient_file)
    own = None if options.labels == "none" else found.labels
    labels, label_notes = _labels(attrs.evolve(found, labels=own), label_file, patients, options.label_column)
    task, coded, no_score = _coded(labels, task, options)
    beside = found.beside or ((),) * len(found.files)
    entries = [
        Entry(record, patient, label, (file, *others))
        for record, file, others, patient, label in zip(
            found.records, found.files, beside, patients, coded, strict=True
        )
        if patient is not None
    ]
    parts, part_notes = (None, ()) if part_file is None else _parts(found, part_file, patients)
    left_out = [record for record, patient in zip(found.records, patients, strict=True) if patient is None]
    return Listing(
        entries,
        [*found.drops, *(Drop("not in the table of patients", record) for record in left_out)],
        form=found.form,
        notes=(*found.notes, *rate_notes, *notes, *label_notes, *part_notes),
        task=task,
        parts=parts,
        channels=channels,
        numbered=numbered,
        shortest=found.shortest,
        no_score=no_score,
    )


def _describe(root: Path, options: ArraysOptions, tables: Sequence[Path]) -> Found:
    if not root.exists():
        raise DataNotFound(f"There is nothing at {root}: point `root=PATH` at a file or a folder of recordings.")
    known = {path.resolve() for path in tables}
    place = find_single(root, known)
    if place.is_dir():
        return describe_folder(place, options, known)
    kind = place.suffix.lower()
    if kind in (".npy", ".npz", ".h5", ".hdf5", ".mat"):
        return describe_array(place, options.axes)
    if kind == ".parquet":
        return describe_parquet(place)
    if kind in (".pkl", ".pickle", ".pt", ".pth"):
        raise DataError(f"{place} is a pickle, which can run any program when it is opened; save it with np.savez.")
    return describe_file(place, options)


def _with_pattern(found: Found, pattern: str) -> Found:
    """Find the patient of each recording in its file's path. Raises DataError where one has none."""
    if not pattern:
        return found
    matches = [re.search(pattern, record) for record in found.records]
    missing = next((record for record, match in zip(found.records, matches, strict=True) if match is None), None)
    if missing is not None:
        raise DataError(f"`patient_pattern={pattern!r}` finds no patient in {missing!r}.")
    return attrs.evolve(found, patients=tuple(match[bool(match.groups())] or "" for match in matches if match))


def _check_rate(found: Found, given: float | None) -> tuple[str, ...]:
    if given is None and found.sampling_rate is None:
        raise DataError(
            "The sampling rate is not known: give it in Hz with `sampling_rate=HZ`, in an .npz as np.savez(file, x=…, "
            "sampling_rate=125), or in a text as a line above the samples, Sampling rate: 125 Hz."
        )
    if found.sampling_rate is not None and not 0 < found.sampling_rate < float("inf"):
        raise DataError(f"The file says {found.sampling_rate:g} Hz: the rate must be one positive number.")
    if given is not None and found.sampling_rate not in (None, given):
        return (f"The file says {found.sampling_rate:g} Hz; {given:g} Hz was given, and is used.",)
    return ()


def _channels(found: Found, names: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the names of the channels, and whether they are only numbers."""
    chosen = names or found.channels
    if chosen is None:
        return tuple(map(str, range(found.channel_count))), True
    if len(chosen) != found.channel_count:
        raise DataError(f"{len(chosen)} names for {found.channel_count} channels: {', '.join(chosen)}.")
    if len(set(chosen)) < len(chosen) or not all(name.strip() for name in chosen) or "," in "".join(chosen):
        raise DataError(f"Each channel needs a unique name without a comma, got {' | '.join(chosen)}.")
    return tuple(chosen), False


def _patients(found: Found, path: Path | None) -> tuple[list[str | None], tuple[str, ...]]:
    """Return the patient of each recording; None where a table with a row per file does not list it."""
    ids, notes = values_of(found, found.patients, path, "patients")
    if ids is None:
        return list(found.records), ("No patients were given (`patients=FILE`): each recording counts as one patient.",)
    for record, patient in zip(found.records, ids, strict=True):
        if patient is not None and is_missing(patient):
            raise DataError(
                f"{path.name if path else 'The file'} has no patient for recording {record} ({patient or 'empty'}). "
                "Recordings of one person must not be in training and test: give every recording an id, or leave it "
                "out."
            )
    return ids, notes


def _labels(
    found: Found, path: Path | None, patients: list[str | None], column: str
) -> tuple[list[str | None], tuple[str, ...]]:
    """Return the text of each recording's label; None where there is none. column: of the table, if it is named."""
    texts, notes = values_of(found, found.labels, path, "labels", patients, (column.lower(),) if column else LABEL)
    if texts is None:
        return [None] * len(found.records), ("No labels were given (`labels=FILE`): there will be no score.",)
    return [None if text is None or is_missing(text) else text for text in texts], notes


def _parts(found: Found, path: Path, patients: list[str | None]) -> tuple[dict[str, Part], tuple[str, ...]]:
    """Return the part of every patient. Raises DataError where the table lacks one, or has one in two parts."""
    words, notes = values_of(found, None, path, "parts", patients, PART)
    known, named = [], []
    for patient, word in zip(patients, words or (), strict=True):
        if patient is not None:
            if word is None or is_missing(word):
                raise DataError(
                    f"`parts=FILE`: {path.name} has no part for patient {patient!r}; give every patient one."
                )
            known.append(patient)
            named.append(word)
    return parts_of_patients(known, named), notes


def _coded(labels: list[str | None], task: Task, options: ArraysOptions) -> tuple[Task, list[Label], str]:
    """Return the task with its classes or its unit, the label of each recording, and why there can be no score."""
    if task.kind == "number":
        numbers: list[Label] = [_as_number(text) for text in labels]
        strange = [text for text, value in zip(labels, numbers, strict=True) if text is not None and value is None]
        why = f"the label {strange[0]!r} is no number, and the task {task.name!r} predicts numbers" if strange else ""
        if strange:
            numbers = [None for _ in labels]
        return attrs.evolve(task, unit=options.label_unit), numbers, why
    classes = _classes(labels, task, options.label_separator)
    no_score = _why_no_classes(labels, classes)
    if no_score:
        labels, classes = [None] * len(labels), ()
    number = {name: code for code, name in enumerate(classes)}
    coded = [_label(text, number, task, options.label_separator) for text in labels]
    return attrs.evolve(task, classes=classes), coded, no_score


def _as_number(text: str | None) -> float | None:
    """Read a label of the task number; None where it is no finite number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _split(text: str, task: Task, separator: str) -> list[str]:
    if task.kind == "one_of" or not separator:
        return [text]
    return [part.strip() for part in text.split(separator) if part.strip()]


def _classes(labels: Sequence[str | None], task: Task, separator: str) -> tuple[str, ...]:
    given = [text for text in labels if text is not None]
    _refuse_joined(set(given), task, separator)
    return tuple(sorted({part for text in given for part in _split(text, task, separator)}, key=natural))


def _why_no_classes(labels: Sequence[str | None], classes: tuple[str, ...]) -> str:
    """Say that the labels are measurements, which are not used; empty where they are classes."""
    given = sum(text is not None for text in labels)
    if len(classes) <= _MANY or 2 * len(classes) <= given:
        return ""
    return (
        f"the labels have {len(classes):,} different values for {given:,} recordings, such as {classes[0]!r} and "
        f"{classes[1]!r}, and a label names one of a few classes; they are not used. If they are measurements, "
        "`task='number'` predicts them"
    )


def _refuse_joined(texts: set[str], task: Task, separator: str) -> None:
    """Raise DataError where a label of a task with one class per recording seems to join several classes.

    A label with the separator does; with another mark, a label that contains the name of another label.
    An empty separator allows every name.
    """
    for mark in dict.fromkeys(separator + _MARKS) if task.kind == "one_of" and separator else ():
        for text in sorted(texts):
            parts = [part.strip() for part in text.split(mark) if part.strip()]
            if len(parts) > 1 and (mark == separator or texts & set(parts)):
                raise DataError(
                    f"The label {text!r} looks like {len(parts)} classes of one recording, {' and '.join(parts)}, and "
                    f"the task {task.name!r} would make it a class of its own. With `task='findings'` and "
                    f"`label_separator={mark!r}` a recording can have several classes; with `label_separator=''` the "
                    "label is one name."
                )


def _label(text: str | None, number: dict[str, int], task: Task, separator: str) -> Label:
    if text is None:
        return None
    codes = [number[part] for part in _split(text, task, separator)]
    return codes[0] if task.kind == "one_of" else frozenset(codes)
