"""What a run leaves in writing: report.json, and metrics.jsonl with a line per epoch. Both read back exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeVar

import attrs
import cattrs

from clocs_core.data.records import DropReport, Exposure
from clocs_core.errors import RunFolderError
from clocs_core.extend.events import EpochDone
from clocs_core.scores import Comparison, Score

__all__ = [
    "SCHEMA",
    "EpochRow",
    "PatientSeparation",
    "Report",
    "RetrievalRow",
    "SplitSummary",
    "as_plain",
    "dump_record",
    "from_json",
    "from_line",
    "load_record",
    "read_rows",
    "row_of",
    "to_json",
    "to_line",
]

SCHEMA = 1  # raise it when a field changes its meaning, so that an old reader refuses instead of misreading

T = TypeVar("T")


def as_plain(value: object) -> Any:
    """The same value as JSON can hold it: tuples are lists, NumPy's numbers are Python's, NaN is null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return None if math.isnan(number) else str(number)  # "inf" reads back as a float where one is expected
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    return str(value)  # a path: what a person would have typed


@attrs.frozen
class SplitSummary:
    """Which patients the parts hold, as counts and as a hash that two runs can compare; and what the audit found.

    frames: lead-frames of the evaluation; shared_patients, duplicate_signals: between the parts.
    """

    hash: str
    rule: str
    seed: int
    patients: dict[str, int]
    frames: dict[str, int]
    records: dict[str, int]
    shared_patients: int
    duplicate_signals: int


@attrs.frozen(kw_only=True)
class PatientSeparation:
    """Mean distances of embeddings within and between patients, and the probability that the first is smaller.

    intra, inter: how many distances lie in each bin between two `edges`, at most 64; empty in reports of before they
    were kept.
    """

    init: str
    intra_mean: float
    inter_mean: float
    separation: float
    edges: tuple[float, ...] = ()
    intra: tuple[int, ...] = ()
    inter: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class RetrievalRow:
    """How well one encoder finds rows of a patient or of a diagnosis; `chance` is what no encoder at all would find.

    relevant: "same recording", "other recordings" or "same diagnosis". nearness: "euclidean", "cosine", or "any".
    queries had a right row to find, left_out had none; rows were searched.
    """

    init: str
    relevant: str
    nearness: str
    recall_at_1: float
    recall_at_5: float
    recall_at_10: float
    mean_average_precision: float
    queries: int
    left_out: int
    rows: int


@attrs.frozen(kw_only=True)
class Report:
    """What report.json holds: everything the page shows, except the pictures and the epochs.

    stopped: "early stopping" or "all epochs".
    notes: sentences for the reader, such as why there is no score or that the embeddings look collapsed.
    seconds: how long preparing, pre-training and evaluating took, by stage.
    """

    schema: int = SCHEMA
    method: str
    dataset: str
    task: str | None
    seed: int
    settings: dict[str, dict[str, object]] = attrs.field(converter=as_plain)
    epochs_run: int
    best_epoch: int
    stopped: str
    split: SplitSummary
    environment: dict[str, str]
    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    patients: tuple[PatientSeparation, ...] = ()
    notes: tuple[str, ...] = ()
    drops: DropReport = attrs.field(factory=DropReport)
    form: str = ""
    seconds: dict[str, float] = attrs.field(factory=dict)
    retrieval: tuple[RetrievalRow, ...] = ()
    exposure: Exposure | None = None


@attrs.frozen(kw_only=True)
class EpochRow:
    """One line of metrics.jsonl: the numbers of one epoch. The names are those of `EpochDone` and its health."""

    epoch: int
    train_loss: float
    validation_loss: float
    effective_rank: float
    same_patient: float
    other_patient: float
    margin: float
    loss_over_log_batch: float
    improved: bool
    seconds: float
    instances: int


def to_json(report: Report) -> str:
    """The text of report.json: keys in the order of the fields, floats to the last bit, NaN as null."""
    return dump_record(report)


def from_json(text: str) -> Report:
    """Read what `to_json` wrote; raises RunFolderError for another schema or a damaged file."""
    return load_record(text, Report, "report.json")


def dump_record(record: Any) -> str:
    """The text of a record with a schema, such as a report; `load_record` reads it back to the last bit."""
    return json.dumps(as_plain(attrs.asdict(record)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def load_record(text: str, kind: type[T], what: str) -> T:
    """Read what `dump_record` wrote; raises RunFolderError for another schema or a damaged file. what: its name."""
    document = _object(text, what)
    if document.get("schema") != SCHEMA:
        raise RunFolderError(
            f"{what} has schema {document.get('schema')!r}, this version of clocs reads {SCHEMA}; evaluate the "
            "run again with this version, or read it with the version that wrote it"
        )
    return _structure(document, kind, what)


def row_of(done: EpochDone) -> EpochRow:
    """The line of an epoch; `done.losses` stays where it is."""
    health = done.health
    return EpochRow(
        epoch=done.epoch,
        train_loss=done.train_loss,
        validation_loss=done.validation_loss,
        effective_rank=health.effective_rank,
        same_patient=health.same_patient,
        other_patient=health.other_patient,
        margin=health.margin,
        loss_over_log_batch=health.loss_over_log_batch,
        improved=done.improved,
        seconds=done.seconds,
        instances=done.instances,
    )


def to_line(row: EpochRow) -> str:
    """A row as one line of JSON with its newline, to be written in one go."""
    return json.dumps(as_plain(attrs.asdict(row)), allow_nan=False) + "\n"


def from_line(line: str) -> EpochRow:
    """Read one line; raises RunFolderError where it is torn or lacks a field."""
    return _structure(_object(line, "a line of metrics.jsonl"), EpochRow, "a line of metrics.jsonl")


def read_rows(text: str) -> tuple[EpochRow, ...]:
    """Read all of metrics.jsonl. A last line that a killed process left unfinished is ignored; any other is not."""
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not _is_json(lines[-1]):
        lines = lines[:-1]
    return tuple(from_line(line) for line in lines)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise RunFolderError(f"{what} is not JSON ({error}); it was cut short or edited: {text[:60]!r}") from error
    if not isinstance(found, dict):
        raise RunFolderError(f"{what} holds {type(found).__name__}, expected an object: {text[:60]!r}")
    return found


def _structure(found: dict[str, Any], kind: type[T], what: str) -> T:
    try:
        return _converter().structure(found, kind)
    except cattrs.BaseValidationError as error:
        faults = "; ".join(cattrs.transform_error(error))
        raise RunFolderError(f"{what} does not hold what it should: {faults}") from error


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    converter.register_structure_hook(float, lambda value, _: math.nan if value is None else float(value))
    for exact in (int, str, bool):
        converter.register_structure_hook(exact, _only)
    return converter


def _only(value: object, kind: type[T]) -> T:
    """Refuse what cattrs would convert: a null is not the string "None", nor is 1.5 the integer 1."""
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
