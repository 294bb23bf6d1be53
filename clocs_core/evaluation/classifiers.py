"""Train the classifiers of an evaluation: one for each protocol, init and label fraction.

`clocs run` and `clocs evaluate` both use this module, so that scores are computed in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from clocs_core import seeds
from clocs_core.artifacts.evaluation_folder import Finished
from clocs_core.artifacts.predictions import Classifier, Predictions
from clocs_core.artifacts.reports import CellSummary
from clocs_core.contracts.events import EpochDone
from clocs_core.contracts.protocols import Trial
from clocs_core.contracts.records import Part
from clocs_core.contracts.result_offers import (
    FINETUNE,
    IDENTIFICATION,
    LINEAR_MODELS,
    PRIOR,
)
from clocs_core.contracts.scores import CHANCE, RANDOM
from clocs_core.data.store import Instances
from clocs_core.errors import DataError
from clocs_core.evaluation.clinical import choose_thresholds
from clocs_core.evaluation.features import Features, embed, pool_records
from clocs_core.evaluation.finetune import FineTuning, fine_tune
from clocs_core.evaluation.identification import identify, identify_by_chance
from clocs_core.evaluation.label_fractions import choose_rows
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.evaluation.linear import linear, linear_with_best_c, prior, refuse_one_class
from clocs_core.evaluation.protocols import run_protocol
from clocs_core.evaluation.ridge import ridge, ridge_with_best_c
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import Stopwatch, Tick, collect_warnings
from clocs_core.train.build import build_encoder, choose_steps
from clocs_core.train.ranks import Group

MODELS: dict[str, tuple[Callable[..., Predictions], Callable[..., tuple[Predictions, float, float]]]] = {
    "one_of": (linear, linear_with_best_c),
    "any_of": (linear, linear_with_best_c),
    "number": (ridge, ridge_with_best_c),
}
"""The linear model of each kind of task, with a given C and with the best one."""


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
    """List all classifiers in the order of the report: at each F every init, the control last, then the class prior.

    Patient identification has chance in place of the prior.
    """
    if plan.identifies:
        return [*((IDENTIFICATION, init, 1.0) for init in plan.inits), (CHANCE, CHANCE, 1.0)]
    return [
        key
        for fraction in plan.scoring.label_fraction
        for key in (*((plan.protocol.offer.name, init, fraction) for init in plan.inits), (PRIOR, RANDOM, fraction))
    ]


@attrs.frozen(eq=False)
class ClassifierMaker:
    """Trains the classifiers of one evaluation. Embeddings are computed once per init and shared by all F.

    group: processes that make the same classifiers in the same order, and share the work of encoders.
    """

    plan: EvaluationPlan
    frames: LabelledFrames
    scoring: Scoring
    device: torch.device
    watch: Watch
    group: Group | None = None
    _embedded: dict[tuple[str, Part], Features] = attrs.field(factory=dict, init=False)

    def make(self, key: Classifier, checkpoint: Path | None = None) -> tuple[Finished, nn.Module | None]:
        """Train one classifier; also return the network if it was fine-tuned.

        If all labels at F have one class, there is no classifier and the notes say so.
        checkpoint: file from which fine-tuning resumes and to which it saves.
        """
        protocol, init, fraction = key
        began = self.watch.clock()
        summary = CellSummary(protocol=protocol, init=init, label_fraction=fraction)
        if self.plan.identifies:
            identified = self._identify(init)
            return Finished(attrs.evolve(summary, seconds=self.watch.clock() - began), identified), None
        train = self._labelled("train")
        rows = choose_rows(train.patient, fraction, self.scoring.fraction_seed, self.plan.settings.fraction_of)
        try:
            refuse_one_class(train.label[rows], self.frames.task)
        except DataError as problem:  # other label fractions can still be scored
            note = f"There is no score at F = {fraction:g}: {problem}"
            return Finished(attrs.evolve(summary, notes=(note,))), None
        summary = attrs.evolve(summary, frames=len(rows), patients=len(np.unique(train.patient[rows])))
        network = None
        with collect_warnings() as heard:  # stored with the classifier, for other evaluations that share it
            if protocol == FINETUNE:
                found, network = self._fine_tune(init, rows, summary, checkpoint)
            elif protocol == PRIOR:
                found = Finished(summary, prior(train.take(rows), self._labelled(self._part), self.frames.task))
            elif protocol in LINEAR_MODELS:
                found = self._linear(init, rows, summary)
            else:
                found = self._offered(init, rows, summary)
        assert found.rows is not None
        notes = (*heard, *found.rows.notes)
        seconds = found.summary.seconds + self.watch.clock() - began
        thresholds = choose_thresholds(found.rows.validation, self.scoring)
        summary = attrs.evolve(found.summary, seconds=seconds, notes=notes, thresholds=thresholds)
        return attrs.evolve(found, summary=summary), network

    def _identify(self, init: str) -> Predictions:
        names = self.frames.store.records
        if init == CHANCE:
            return identify_by_chance(self.frames.recordings(self._part), names)
        return identify(pool_records(self.embed_scored(init)), names, self.device)

    def embed_scored(self, init: str) -> Features:
        """Embed every frame of the scored part, labelled or not."""
        part = self._part
        if (init, part) not in self._embedded:
            self._embedded[init, part] = self._embed(init, self.frames.whole[part])
        return self._embedded[init, part]

    @property
    def _part(self) -> Part:
        return self.plan.scoring.part

    def _rows(self, rows: Features) -> Features:
        """Return the rows that the protocol works on: frames, or recordings."""
        return pool_records(rows) if self.plan.protocol.offer.rows == "record" else rows

    def _labelled(self, part: Part) -> Features:
        """Return label, patient and record of the labelled rows of a part, without embeddings."""
        return self._rows(self.frames.rows[part])

    def _features(self, init: str, part: Part) -> Features:
        """Embed the labelled rows of a part."""
        if part == self._part:
            return self._rows(self.embed_scored(init).take(self.frames.labelled[part]))
        if (init, part) not in self._embedded:
            self._embedded[init, part] = self._embed(init, self.frames.parts[part])
        return self._rows(self._embedded[init, part])

    def _validation(self, init: str) -> Features | None:
        """Embed the labelled validation rows, to choose thresholds on; None without any, and for numbers."""
        needed = self.frames.task.classes and len(self.frames.parts["validation"])
        return self._features(init, "validation") if needed else None

    def _offered(self, init: str, rows: NDArray[np.int64], summary: CellSummary) -> Finished:
        """Let the protocol of a plugin predict the scored rows."""
        offer = self.plan.protocol.offer
        network = self._encoder(init).eval() if offer.wants == "encoder" else None
        load = self._labelled if network is not None else partial(self._features, init)
        trial = Trial(
            task=self.frames.task,
            train=load("train").take(rows),
            validation=load("validation") if offer.validation else None,
            scored=load(self._part),
            seed=seeds.derive(self.plan.settings.seed, "protocol"),
            device=self.device,
            encoder=network,
            signal=None if network is None else partial(self._signal, {"train": rows}),
        )
        # Validation rows are predicted in the same trial, to choose thresholds on: rows are predicted one by one.
        scored, held_out = trial.scored, self._validation(init) if network is None else None
        asked = trial if held_out is None else attrs.evolve(trial, scored=_joined(scored, held_out))
        with self.watch.parts.part("fit"):
            answer = run_protocol(self.plan.protocol, asked)
        found, beside = np.split(answer.predicted, [len(scored)])
        on_validation = None
        if held_out is not None:
            on_validation = Predictions(beside, held_out.label, held_out.patient, held_out.record)
        chosen = {name: str(value) for name, value in answer.chosen.items()}
        told = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        choice = f"{offer.name} chose {told} for {init} at F = {summary.label_fraction:g}."
        notes = (*answer.notes, *([choice] if chosen else []))
        predicted = Predictions(found, scored.label, scored.patient, scored.record, notes, on_validation)
        return Finished(attrs.evolve(summary, chosen=chosen), predicted)

    def _signal(self, shares: Mapping[str, NDArray[np.int64]], part: str, rows: NDArray[np.int64]) -> Tensor:
        """Return the normalised signals (n, channel, sample) of some rows of a trial's part."""
        numbers = shares[part][rows] if part in shares else rows
        frames, name = self.frames, self._part if part == "scored" else cast(Part, part)
        picked = frames.store.gather(frames.parts[name], torch.from_numpy(numbers).to(self.device)).signal[:, 0]
        return frames.normalise(picked)

    def _embed(self, init: str, instances: Instances) -> Features:
        with self.watch.parts.part("embed"):
            encoder, frames = self._encoder(init), self.frames
            return embed(encoder, frames.store, instances, frames.normalise, self.watch.tick, self.group)

    def _encoder(self, init: str) -> nn.Module:
        samples, seed = self.plan.framing.frame_samples, self.plan.settings.seed
        return build_encoder(self.plan.encoder, samples, seed, init != RANDOM, self.device)

    def _linear(self, init: str, rows: NDArray[np.int64], summary: CellSummary) -> Finished:
        train, scored, task = (
            self._features(init, "train").take(rows),
            self._features(init, self._part),
            self.frames.task,
        )
        fit, fit_best = MODELS[task.kind]
        c = self.plan.scoring.C
        if c != "auto":
            held_out = self._validation(init)
            beside = {} if held_out is None else {"validation": held_out}
            with self.watch.parts.part("fit"):
                return Finished(attrs.evolve(summary, C=c), fit(train, scored, task, self.device, c, **beside))
        validation, metric = self._features(init, "validation"), self.scoring.fitting[0]
        sign = -1.0 if metric.better == "lower" else 1.0
        with self.watch.parts.part("fit"):
            found, c, best = fit_best(
                train, validation, scored, task, lambda *of: sign * metric.score(*of), self.device
            )
        of = f"validation {'recordings' if self.plan.protocol.offer.rows == 'record' else 'frames'}"
        why = f"{of} have no score" if np.isnan(best) else f"{metric.name} {sign * best:.3f} of {of}"
        note = f"Linear evaluation of {init}, F = {summary.label_fraction:g}: C = {c:g} ({why})."
        return Finished(attrs.evolve(summary, C=c), attrs.evolve(found, notes=(*found.notes, note)))

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
            layer_decay=plan.finetune.layer_decay,
            group=self.group,
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


def _joined(first: Features, second: Features) -> Features:
    """Return the rows of both, one after the other."""
    parts = zip(attrs.astuple(first, recurse=False), attrs.astuple(second, recurse=False), strict=True)
    return Features(*map(np.concatenate, parts))
