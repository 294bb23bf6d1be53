"""The classifiers of an evaluation, one for each init and share of labels, by whichever protocol was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from clocs_core.evaluate.bench import Bench
from clocs_core.evaluate.curves import CurvePoint
from clocs_core.evaluate.downstream import Downstream
from clocs_core.evaluate.features import Features, embed
from clocs_core.evaluate.finetune import fine_tune
from clocs_core.evaluate.linear import Predictions, linear, prior, refuse_one_class
from clocs_core.evaluate.predictionfile import Classifier
from clocs_core.evaluate.pretrained import RANDOM, build_encoder
from clocs_core.evaluate.protocols import Scoring
from clocs_core.extend.events import EpochDone
from clocs_core.train.assemble import choose_steps
from clocs_core.train.epochs import Tick
from clocs_core.train.learner import Progress

__all__ = ["Cell", "CellMaker", "Watch", "keys_of"]


@attrs.frozen(eq=False)
class Cell:
    """A classifier's predictions, the frames and patients it learnt from, and, of a network, its training."""

    predictions: Predictions
    frames: int
    patients: int
    progress: Progress = attrs.field(factory=Progress)
    steps: int = 0
    network: nn.Module | None = None
    curve: tuple[CurvePoint, ...] = ()


@attrs.frozen
class Watch:
    """Who is told how training is getting on."""

    clock: Callable[[], float]
    tick: Tick
    epoch_done: Callable[[EpochDone], None]
    warn: Callable[[str], None]


def keys_of(asked: Downstream) -> list[Classifier]:
    """All classifiers, in the order of the report: at each F every init, the control last, then the class prior."""
    protocol = asked.asked.protocol
    return [
        key
        for fraction in asked.evaluate.label_fraction
        for key in (*((protocol, init, fraction) for init in asked.inits), ("prior", RANDOM, fraction))
    ]


@attrs.frozen(eq=False)
class CellMaker:
    """Makes classifiers. `embedded` keeps the frozen representations of the last init, which every F shares."""

    asked: Downstream
    bench: Bench
    scoring: Scoring
    device: torch.device
    watch: Watch
    embedded: dict[str, tuple[Features, Features]] = attrs.field(factory=dict)

    def make(self, key: Classifier, checkpoint: Path) -> Cell:
        """Train one classifier. Raises DataError where the labels at F are of one class.

        checkpoint: where training goes on from, and leaves a file now and then, if the protocol trains a network.
        """
        protocol, init, fraction = key
        train = self.bench.rows["train"]
        rows = self.bench.share(fraction, self.scoring.fraction_seed, self.asked.asked.fraction_of)
        refuse_one_class(train.label[rows], self.bench.task)
        seen = len(rows), len(np.unique(train.patient[rows]))
        if protocol == "prior":
            predicted = prior(train.take(rows), self.bench.rows[self.asked.evaluate.part], self.bench.task)
            return Cell(predicted, *seen)
        if protocol == "linear":
            mine, scored = self._embeddings(init)
            return Cell(linear(mine.take(rows), scored, self.bench.task), *seen)
        return self._fine_tuned(init, rows, seen, checkpoint)

    def _encoder(self, init: str) -> nn.Module:
        samples, seed = self.asked.framing.frame_samples, self.asked.asked.seed
        return build_encoder(self.asked.encoder, samples, seed, init != RANDOM, self.device)

    def _embeddings(self, init: str) -> tuple[Features, Features]:
        """Of the labelled training frames, and of those that are scored."""
        if init not in self.embedded:
            self.embedded.clear()
            encoder, bench = self._encoder(init), self.bench
            both = bench.parts["train"], bench.parts[self.asked.evaluate.part]
            mine, scored = (embed(encoder, bench.store, some, bench.normalise, self.watch.tick) for some in both)
            self.embedded[init] = mine, scored
        return self.embedded[init]

    def _fine_tuned(self, init: str, rows: NDArray[np.int64], seen: tuple[int, int], checkpoint: Path) -> Cell:
        asked, watch = self.asked, self.watch
        made = fine_tune(
            self._encoder(init),
            asked.encoder.embedding_dim,
            self.bench,
            rows,
            asked.finetune.for_training(),
            asked.asked.seed,
            asked.evaluate.part,
            choose_steps(asked.asked.step, self.device, watch.warn),
            watch.clock,
            watch.tick,
            epoch_done=watch.epoch_done,
            checkpoint=checkpoint,
            score=self.scoring.fitting[0].score,
        )
        return Cell(made.predictions, *seen, made.progress, made.steps, made.classifier, made.curve)
