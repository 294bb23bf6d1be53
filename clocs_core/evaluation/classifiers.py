"""Train the classifiers of an evaluation: one for each protocol, init and label fraction.

`clocs run` and `clocs evaluate` both use this module, so that scores are computed in one way only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from clocs_core.artifacts.evaluation_folder import Finished
from clocs_core.artifacts.predictions import Classifier
from clocs_core.artifacts.reports import CellSummary
from clocs_core.contracts.events import EpochDone
from clocs_core.contracts.records import Part
from clocs_core.contracts.scores import RANDOM
from clocs_core.data.store import Instances
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features, embed
from clocs_core.evaluation.finetune import FineTuning, fine_tune
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.evaluation.linear import linear, prior, refuse_one_class
from clocs_core.evaluation.ridge import ridge
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import Stopwatch, Tick, collect_warnings
from clocs_core.train.build import build_encoder, choose_steps

MODELS = {"one_of": linear, "any_of": linear, "number": ridge}
"""The linear model of each kind of task."""


@attrs.frozen
class Watch:
    """The clock, the callbacks that report the progress of training, and how long its parts took."""

    clock: Callable[[], float]
    tick: Tick
    epoch_done: Callable[[EpochDone], None]
    warn: Callable[[str], None]
    parts: Stopwatch = attrs.field(
        default=attrs.Factory(lambda self: Stopwatch(self.clock), takes_self=True), kw_only=True
    )


def list_classifiers(plan: EvaluationPlan) -> list[Classifier]:
    """List all classifiers in the order of the report: at each F every init, the control last, then the class prior."""
    return [
        key
        for fraction in plan.scoring.label_fraction
        for key in (*((plan.settings.protocol, init, fraction) for init in plan.inits), ("prior", RANDOM, fraction))
    ]


@attrs.frozen(eq=False)
class ClassifierMaker:
    """Trains the classifiers of one evaluation. Embeddings are computed once per init and shared by all F."""

    plan: EvaluationPlan
    frames: LabelledFrames
    scoring: Scoring
    device: torch.device
    watch: Watch
    _embedded: dict[tuple[str, Part], Features] = attrs.field(factory=dict, init=False)

    def make(self, key: Classifier, checkpoint: Path | None = None) -> tuple[Finished, nn.Module | None]:
        """Train one classifier; also return the network if it was fine-tuned.

        If all labels at F have one class, there is no classifier and the notes say so.
        checkpoint: file from which fine-tuning resumes and to which it saves.
        """
        protocol, init, fraction = key
        began = self.watch.clock()
        summary = CellSummary(protocol=protocol, init=init, label_fraction=fraction)
        train = self.frames.rows["train"]
        rows = self.frames.share(fraction, self.scoring.fraction_seed, self.plan.settings.fraction_of)
        try:
            refuse_one_class(train.label[rows], self.frames.task)
        except DataError as problem:  # other label fractions can still be scored
            note = f"There is no score at F = {fraction:g}: {problem}"
            return Finished(attrs.evolve(summary, notes=(note,))), None
        summary = attrs.evolve(summary, frames=len(rows), patients=len(np.unique(train.patient[rows])))
        network = None
        with collect_warnings() as heard:  # stored with the classifier, for other evaluations that share it
            if protocol == "finetune":
                found, network = self._fine_tune(init, rows, summary, checkpoint)
            else:
                scored = self.frames.rows[self.plan.scoring.part]
                if protocol == "linear":
                    fitted, scored = self._train(init).take(rows), self._scored(init)
                    with self.watch.parts.part("fit"):
                        found = Finished(summary, MODELS[self.frames.task.kind](fitted, scored, self.frames.task))
                else:
                    found = Finished(summary, prior(train.take(rows), scored, self.frames.task))
        assert found.rows is not None
        notes = (*heard, *found.rows.notes)
        seconds = found.summary.seconds + self.watch.clock() - began
        return attrs.evolve(found, summary=attrs.evolve(found.summary, seconds=seconds, notes=notes)), network

    def embed_scored(self, init: str) -> Features:
        """Embed every frame of the scored part, labelled or not."""
        part = self.plan.scoring.part
        if (init, part) not in self._embedded:
            self._embedded[init, part] = self._embed(init, self.frames.whole[part])
        return self._embedded[init, part]

    def _scored(self, init: str) -> Features:
        return self.embed_scored(init).take(self.frames.labelled[self.plan.scoring.part])

    def _train(self, init: str) -> Features:
        """Embed the labelled training frames."""
        if (init, "train") not in self._embedded:
            self._embedded[init, "train"] = self._embed(init, self.frames.parts["train"])
        return self._embedded[init, "train"]

    def _embed(self, init: str, instances: Instances) -> Features:
        with self.watch.parts.part("embed"):
            return embed(self._encoder(init), self.frames.store, instances, self.frames.normalise, self.watch.tick)

    def _encoder(self, init: str) -> nn.Module:
        samples, seed = self.plan.framing.frame_samples, self.plan.settings.seed
        return build_encoder(self.plan.encoder, samples, seed, init != RANDOM, self.device)

    def _fine_tune(
        self, init: str, rows: NDArray[np.int64], summary: CellSummary, checkpoint: Path | None
    ) -> tuple[Finished, nn.Module]:
        plan, watch = self.plan, self.watch
        how = FineTuning(
            embedding_dim=plan.encoder.embedding_dim,
            settings=plan.finetune.for_training(),
            seed=plan.settings.seed,
            scored=plan.scoring.part,
            run_epoch=choose_steps(plan.settings.step, self.device, watch.warn),
            clock=watch.clock,
            tick=watch.tick,
            epoch_done=watch.epoch_done,
            checkpoint=checkpoint,
            score=self.scoring.fitting[0].score,
        )
        made = fine_tune(self._encoder(init), self.frames, rows, how)
        summary = attrs.evolve(
            summary,
            epochs=made.progress.epoch,
            best_epoch=made.progress.best_epoch,
            steps=made.steps,
            seconds=made.earlier,
        )
        return Finished(summary, made.predictions, made.curve), made.classifier
