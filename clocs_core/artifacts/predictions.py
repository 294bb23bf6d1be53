"""Keep the predictions of every row in one .npz file without pickles, so that they can be analysed later.

Arrays: `patient`, `record` (names), `label`, and for each classifier `probability/PROTOCOL/INIT/F` (n, class) and, of a
fine-tuned one, `log_sum/PROTOCOL/INIT/F` (n,). Beside them `classes` (class,), and `channel` and `start` of each row:
the name, and the first sample in the recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import error as StructError
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.kinds import kind_of_rows
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically

_UNREADABLE = (OSError, ValueError, KeyError, EOFError, RuntimeError, BadZipFile, ZlibError, StructError, MemoryError)
"""Errors of a damaged .npz: zipfile, zlib, struct and NumPy each raise their own; RuntimeError: "it is encrypted"."""

Classifier = tuple[str, str, float]
"""Key of a classifier: protocol, init and label fraction."""


@attrs.frozen(eq=False)
class Predictions:
    """The predictions of one classifier, with label, patient and recording of each row. `notes` are for the reader.

    probability: of every class; for a number, the predicted value as its only column.
    validation: what the same classifier predicts of the validation rows, to choose thresholds; kept in no file.
    log_sum: log of the sum of the exponentials of a row's logits, where classes exclude each other and a network has
    made the logits: they are log(probability) + log_sum.
    """

    probability: NDArray[np.float64]  # (n, output)
    label: NDArray[Any]  # (n,) or (n, class) int64, or (n,) float32 of a number
    patient: NDArray[np.int64]  # (n,)
    record: NDArray[np.int64]  # (n,)
    notes: tuple[str, ...] = ()
    validation: Predictions | None = None
    log_sum: NDArray[np.float64] | None = None  # (n,)


def save_predictions(
    predicted: Mapping[Classifier, Predictions],
    patients: Sequence[str],
    records: Sequence[str],
    path: Path,
    beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> str:
    """Write the predictions of all classifiers for the same rows, and return the SHA-256 of the file.

    patients, records: names by number. beside: further arrays for the reader of the file.
    """
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **_as_arrays(predicted, patients, records), **beside)
    write_atomically(path, buffer.getvalue())
    return sha256(buffer.getvalue()).hexdigest()


def _as_arrays(
    predicted: Mapping[Classifier, Predictions], patients: Sequence[str], records: Sequence[str]
) -> dict[str, NDArray[Any]]:
    first = next(iter(predicted.values()))
    arrays: dict[str, NDArray[Any]] = {
        "patient": np.array([patients[number] for number in first.patient], dtype=np.str_),
        "record": np.array([records[number] for number in first.record], dtype=np.str_),
        "label": first.label,
    }
    for (protocol, init, fraction), rows in predicted.items():
        arrays[f"probability/{protocol}/{init}/{fraction:g}"] = rows.probability
        if rows.log_sum is not None:
            arrays[f"log_sum/{protocol}/{init}/{fraction:g}"] = rows.log_sum
    return arrays


@attrs.frozen(eq=False)
class PredictedRows:
    """The predictions in a file, with the names of each row's patient and recording.

    channel, start: the channel of each row and its first sample in the recording; None in files that do not say them.
    """

    predicted: dict[Classifier, Predictions]
    patient: NDArray[np.str_]  # (n,)
    record: NDArray[np.str_]  # (n,)
    label: NDArray[Any]  # (n,) or (n, class) int64, or (n,) float32 of a number
    channel: NDArray[np.str_] | None = None  # (n,)
    start: NDArray[np.int64] | None = None  # (n,)

    @property
    def kind(self) -> str:
        """Kind of the task that the labels belong to."""
        return kind_of_rows(self.label)


def read_predictions(path: Path) -> dict[Classifier, Predictions]:
    """Read what `save_predictions` wrote; patients and records are numbered by their sorted names.

    Two files with the same names therefore have the same numbers.
    """
    return read_predicted_rows(path).predicted


def read_rows_of(path: Path, expected: str) -> PredictedRows | None:
    """Read the predictions that belong to a report; None where there are none.

    expected: their SHA-256 as the report says it; empty in reports of earlier versions. Raises RunFolderError for
    those of another run or evaluation: scores and differences would not be of the same classifiers.
    """
    return read_predicted_rows(path, expected) if path.exists() else None


def read_predicted_rows(path: Path, expected: str = "") -> PredictedRows:
    """Read predictions with the names of patients and records.

    Raises RunFolderError for a damaged file, or another one than `expected`, and OSError where the system cannot read
    it today.
    """
    content = path.read_bytes()  # np.load of a path would leave a damaged file open
    try:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            rows = _as_rows({name: file[name] for name in file.files})
    except _UNREADABLE as problem:
        why = " ".join(str(problem).split())[:200]
        raise RunFolderError(f"{path} holds no predictions that can be read: {why}.") from None
    _refuse_others(path, content, expected)
    return rows


def _refuse_others(path: Path, content: bytes, expected: str) -> None:
    if expected and sha256(content).hexdigest() != expected:
        raise RunFolderError(
            f"{path} does not belong to the report.json beside it: it was replaced after the scores were made. Copy "
            "the whole folder again, or delete it and make it anew."
        )


def predicted_rows(
    predicted: Mapping[Classifier, Predictions],
    patients: Sequence[str],
    records: Sequence[str],
    beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> PredictedRows | None:
    """Make the rows from predictions in memory; None where there are no predictions. beside: as `save_predictions`."""
    return _as_rows({**_as_arrays(predicted, patients, records), **beside}) if predicted else None


def _as_rows(arrays: dict[str, NDArray[Any]]) -> PredictedRows:
    """Make the rows from the arrays of a file. Raises KeyError or ValueError where these hold no predictions."""
    patient, record = (np.unique(arrays[name], return_inverse=True)[1] for name in ("patient", "record"))
    label = arrays["label"]
    if label.dtype.kind not in ("biuf" if label.ndim == 1 else "biu") or not len(label) == len(patient) == len(record):
        raise ValueError(f"it has {len(label)} labels, {len(patient)} patients and {len(record)} recordings")
    found: dict[Classifier, Predictions] = {}
    for name, probability in arrays.items():
        if name.startswith("probability/"):
            _, protocol, init, fraction = name.split("/")
            if probability.dtype != np.float64 or probability.shape[:1] != label.shape[:1] or probability.ndim != 2:
                raise ValueError(f"{name} holds {probability.dtype} {probability.shape} for {len(label)} rows")
            log_sum = arrays.get(name.replace("probability/", "log_sum/", 1))
            if log_sum is not None and (log_sum.dtype != np.float64 or log_sum.shape != probability.shape[:1]):
                raise ValueError(f"the log_sum of {name} holds {log_sum.dtype} {log_sum.shape} for {len(label)} rows")
            rows = Predictions(probability, label, patient, record, log_sum=log_sum)
            found[protocol, init, float(fraction)] = rows
    return PredictedRows(found, arrays["patient"], arrays["record"], label, arrays.get("channel"), arrays.get("start"))
