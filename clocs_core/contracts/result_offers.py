"""Offers about results: metrics, protocols of evaluation, sections of the report, and listeners with options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from clocs_core.contracts.offers import Offer
from clocs_core.contracts.scores import PRIOR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from clocs_core.contracts.events import Listener, Picture
    from clocs_core.contracts.protocols import Answer, Trial
    from clocs_core.contracts.sections import Findings, ReportTable


@attrs.frozen(kw_only=True)
class Metric(Offer):
    """A measure of the quality of predictions.

    score(probability (n, class), label, weight (n,)) -> float, NaN where the metric is not defined. label is (n,)
    integers for a one-of task and (n, class) of 0 and 1 for an any-of task; for a number it is (n,) float32, and the
    predicted values (n, 1) stand for probabilities. `weight` counts how often each row occurs in a bootstrap sample.
    Rows without a label are left out before.
    tasks: the kinds of task that it can score: one_of, any_of, number.
    better: whether a `higher` or a `lower` score is better.
    limits: the least and the largest score that there can be; an interval over few seeds is cut there.
    score_draws(probability, label, weights (draw, n)) -> (draw,): the scores of many bootstrap samples at once, for a
    metric that saves work this way, such as sorting once; without it, core calls `score` for each sample.
    score_tensors: the same for torch tensors, which lie on the device of the run, and with a tensor as its result. Core
    uses it on a GPU; without it, samples are scored on the CPU.
    """

    kind: ClassVar[str] = "metric"
    tasks: tuple[str, ...] = ("one_of", "any_of")
    score: Callable[[NDArray[np.float64], NDArray[Any], NDArray[np.float64]], float]
    score_draws: Callable[[NDArray[np.float64], NDArray[Any], NDArray[np.float64]], NDArray[np.float64]] | None = None
    better: Literal["higher", "lower"] = attrs.field(
        default="higher", validator=attrs.validators.in_(("higher", "lower"))
    )
    score_tensors: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)


LINEAR, LINEAR_RECORD, FINETUNE = "linear", "linear-record", "finetune"
IDENTIFICATION = "patient-identification"
RECALL_AT_1, RECALL_AT_5 = "recall_at_1", "recall_at_5"
"""The metrics of patient identification, which core has itself."""

LINEAR_MODELS = (LINEAR, LINEAR_RECORD)
OWN_PROTOCOLS = (*LINEAR_MODELS, FINETUNE, IDENTIFICATION)
"""The protocols that core has itself. `prior`, the control without a signal, is a name in reports only."""


@attrs.frozen(kw_only=True)
class Protocol(Offer):
    """A way to evaluate an encoder on labels. Core adds the controls, label fractions, intervals and comparisons.

    predict(options, trial) -> Answer learns from the training rows of a `Trial` and predicts its scored rows.
    tasks: the kinds of task that it can learn.
    rows: `frame`, or `record`, where a row is the mean of a recording's embeddings.
    wants: `features`, the embeddings of the frozen encoder; or `encoder`, the network itself and its signals.
    validation: whether it chooses something on the validation rows, which need labels then.
    sequence: whether it reads the encoder's sequence; core refuses an encoder that has none.
    """

    kind: ClassVar[str] = "protocol"
    predict: Callable[[Any, Trial], Answer] | None = None  # None for core's own
    tasks: tuple[str, ...] = ("one_of", "any_of", "number")
    rows: Literal["frame", "record"] = attrs.field(default="frame", validator=attrs.validators.in_(("frame", "record")))
    wants: Literal["features", "encoder"] = attrs.field(
        default="features", validator=attrs.validators.in_(("features", "encoder"))
    )
    validation: bool = False
    sequence: bool = False

    def __attrs_post_init__(self) -> None:
        own = self.name in (*OWN_PROTOCOLS, PRIOR)
        if own and self.predict is not None:
            raise ValueError(f"{self.name!r} is a protocol of clocs itself; give yours another name")
        if not own and self.predict is None:
            raise ValueError(f"protocol {self.name!r} needs a function `predict`")
        if self.sequence and self.wants != "encoder":
            raise ValueError(f"protocol {self.name!r} reads the encoder's sequence, so use wants='encoder'")
        if self.wants == "encoder" and self.rows == "record":
            raise ValueError(f"protocol {self.name!r} wants the encoder, which reads frames; use rows='frame'")


@attrs.frozen(kw_only=True)
class ReportSection(Offer):
    """A section of the report of every run, made of tables and pictures. Core escapes and renders them.

    make(options, findings) -> tables and pictures; an empty list leaves the section out.
    title: its heading; default: its name.
    """

    kind: ClassVar[str] = "section"
    make: Callable[[Any, Findings], Iterable[ReportTable | Picture]]
    title: str = ""


@attrs.frozen(kw_only=True)
class Tracker(Offer):
    """A listener with options, which follows every run and evaluation that is kept.

    listen(options) -> a `Listener`; called once, before the run or the evaluation begins.
    """

    kind: ClassVar[str] = "listener"
    listen: Callable[[Any], Listener]
