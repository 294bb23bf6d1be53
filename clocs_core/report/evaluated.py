"""What `clocs evaluate` leaves in writing: its report.json, and a file per classifier while it is under way."""

from __future__ import annotations

import attrs

from clocs_core.data.records import DropReport
from clocs_core.evaluate.curves import CurvePoint
from clocs_core.report.document import SCHEMA, SplitSummary, as_plain
from clocs_core.scores import Comparison, Score

__all__ = ["CellSummary", "Curve", "EncoderSummary", "EvaluationReport"]


@attrs.frozen(kw_only=True)
class EncoderSummary:
    """Which encoder was evaluated. Of an untrained one, `dataset` and `sha256` are empty.

    dataset: what it was pre-trained on; inputs: how many channels it reads at once; sha256: of its file.
    """

    name: str
    dataset: str
    inputs: int
    frame_samples: int
    embedding_dim: int
    sha256: str


@attrs.frozen(kw_only=True)
class CellSummary:
    """One classifier: an init at a share of the labels, and what it took to train it.

    epochs, best_epoch, steps: of fine-tuning; 0 where no network is trained.
    frames, patients: labelled training frames that it learnt from, and how many patients they are of.
    notes: what a reader must know, such as why there is no classifier.
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
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Curve:
    """How the fine-tuning of one classifier went. metric: what the validation part was scored by, frame by frame."""

    protocol: str
    init: str
    label_fraction: float
    metric: str
    values: tuple[CurvePoint, ...]


@attrs.frozen(kw_only=True)
class EvaluationReport:
    """What the report.json of an evaluation holds. Fields of the same name are those of a run's report.

    init: whose weights were evaluated, beside `random`: the method, or `random` alone.
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
