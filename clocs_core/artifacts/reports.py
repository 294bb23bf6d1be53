"""The records of report.json: the results of a run and of an evaluation."""

from __future__ import annotations

import attrs

from clocs_core.artifacts.clinical import Clinical
from clocs_core.artifacts.curves import CurvePoint
from clocs_core.artifacts.documents import SCHEMA, as_plain, load_record
from clocs_core.contracts.records import DropReport, Exposure
from clocs_core.contracts.scores import Comparison, Score


@attrs.frozen
class SplitSummary:
    """The split of patients, as counts and as a hash to compare runs by, and the findings of its audit.

    frames: lead-frames of the evaluation. shared_patients, duplicate_signals: found in more than one part.
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

    intra, inter: number of distances in each bin between two `edges`, at most 64 bins; empty in older reports.
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
    """How well one encoder retrieves rows of a patient or of a diagnosis; `chance`: the value of a random order.

    relevant: "same recording", "other recordings" or "same diagnosis". nearness: "euclidean", "cosine", or "any".
    queries: queries with a relevant row. left_out: queries without one. rows: number of rows searched.
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
class OtherEncoder:
    """Scores of an encoder beside the first, where a method trains one for each modality.

    name: that of its reader. encoder: its architecture. channels: the channels that it reads.
    """

    name: str
    encoder: str
    channels: tuple[str, ...]
    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Report:
    """The content of report.json: everything on the page except pictures and epochs.

    stopped: "early stopping" or "all epochs".
    notes: sentences for the reader, such as why there is no score or that the embeddings look collapsed.
    seconds: how long each stage took. "evaluate/embed" is a part of "evaluate".
    command: the command line that finished it; empty in Python. date: when, in UTC.
    clinical: the results of each class, or of numbers; None where there is no score, and in older reports.
    predictions_sha256: hash of predictions.npz; empty where there is none, and in older reports.
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
    command: str = ""
    date: str = ""
    other_encoders: tuple[OtherEncoder, ...] = ()
    clinical: Clinical | None = None
    predictions_sha256: str = ""


@attrs.frozen(kw_only=True)
class EncoderSummary:
    """The encoder that was evaluated. `dataset` and `sha256` are empty for an untrained one.

    dataset: the data set it was pre-trained on. inputs: number of channels it reads at once. sha256: hash of its file.
    options: those of the architecture that differ from its defaults.
    """

    name: str
    dataset: str
    inputs: int
    frame_samples: int
    embedding_dim: int
    sha256: str
    options: dict[str, object] = attrs.field(factory=dict, converter=as_plain)


@attrs.frozen(kw_only=True)
class CellSummary:
    """One classifier: an init at a label fraction, and the cost of training it.

    epochs, best_epoch, steps: fine-tuning only; 0 where no network is trained.
    frames, patients: number of labelled training frames, and of their patients.
    C: the C of linear evaluation, given or chosen on validation patients; None in other protocols and older reports.
    chosen: the choices that the protocol of a plugin made, by name.
    thresholds: of each class, chosen on validation patients; NaN where that was not possible, empty in older files.
    notes: sentences for the reader, such as why there is no classifier.
    """

    schema: int = SCHEMA
    protocol: str
    init: str
    label_fraction: float
    epochs: int = 0
    best_epoch: int = 0
    steps: int = 0
    frames: int = 0
    patients: int = 0
    C: float | None = None
    seconds: float = 0.0
    chosen: dict[str, str] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()


@attrs.frozen(kw_only=True)
class Curve:
    """The learning curve of one fine-tuned classifier. metric: score of the frames of the validation part."""

    protocol: str
    init: str
    label_fraction: float
    metric: str
    values: tuple[CurvePoint, ...]


@attrs.frozen(kw_only=True)
class EvaluationReport:
    """The content of an evaluation's report.json. Fields named as in a run's report have the same meaning.

    init: the weights that were evaluated beside `random`: the method, or `random` alone.
    how: the protocol in a sentence.
    """

    schema: int = SCHEMA
    protocol: str
    how: str
    init: str
    encoder: EncoderSummary
    dataset: str
    task: str
    part: str
    seed: int
    settings: dict[str, dict[str, object]] = attrs.field(converter=as_plain)
    split: SplitSummary
    environment: dict[str, str]
    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    cells: tuple[CellSummary, ...] = ()
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()
    drops: DropReport = attrs.field(factory=DropReport)
    form: str = ""
    seconds: dict[str, float] = attrs.field(factory=dict)
    command: str = ""
    date: str = ""
    clinical: Clinical | None = None
    predictions_sha256: str = ""


def read_report(text: str, what: str = "report.json") -> Report:
    """Read the report.json of a run, which messages call `what`. Raises RunFolderError for a damaged file."""
    return load_record(text, Report, what)
