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
from clocs_core.contracts.scores import CHANCE, PRIOR
from clocs_core.errors import DataError
from clocs_core.evaluation.clinical import choose_thresholds
from clocs_core.evaluation.embedded_rows import EmbeddedRows
from clocs_core.evaluation.features import Features, pool_records
from clocs_core.evaluation.finetune import FineTuning, fine_tune
from clocs_core.evaluation.identification import identify, identify_by_chance
from clocs_core.evaluation.label_fractions import choose_rows
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.evaluation.linear import linear, linear_with_best_c, prior, refuse_one_class
from clocs_core.evaluation.metric_scores import score_once
from clocs_core.evaluation.protocols import run_protocol
from clocs_core.evaluation.ridge import ridge, ridge_with_best_c
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plan.chosen_protocol import (
    ChosenProtocol,
    FinetuneProtocol,
    IdentificationProtocol,
    LinearProtocol,
    OfferedProtocol,
)
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import Stopwatch, Tick, collect_warnings
from clocs_core.train.build import choose_steps
from clocs_core.train.ranks import Group

MODELS: dict[str, tuple[Callable[..., Predictions], Callable[..., tuple[Predictions, float, float]]]] = {
    "one_of": (linear, linear_with_best_c),
    "any_of": (linear, linear_with_best_c),
    "number": (ridge, ridge_with_best_c),
}
"""The linear model of each kind of task, with a given C and with the best one."""


@attrs.frozen
class Watch:
    """The clock, the callbacks that report the progress of training, and how long its parts took.

    epoch_done: is told each epoch of fine-tuning, and how many there are at most.
    """

    clock: Callable[[], float]
    tick: Tick
    epoch_done: Callable[[EpochDone, int], None]
    warn: Callable[[str], None]
    parts: Stopwatch = attrs.field(
        default=attrs.Factory(lambda self: Stopwatch(self.clock), takes_self=True), kw_only=True
    )


def list_classifiers(plan: EvaluationPlan) -> list[Classifier]:
    """List all classifiers in the order of the report."""
    return plan.protocol.classifiers(plan.inits, plan.scoring.label_fraction)


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
    rows: EmbeddedRows = attrs.field(init=False)

    @rows.default
    def _rows(self) -> EmbeddedRows:
        return EmbeddedRows(self.plan, self.frames, self.device, self.watch.tick, self.watch.parts, self.group)

    def make(self, key: Classifier, checkpoint: Path | None = None) -> tuple[Finished, nn.Module | None]:
        """Train one classifier; also return the network if it was fine-tuned.

        If all labels at F have one class, there is no classifier and the notes say so.
        checkpoint: file from which fine-tuning resumes and to which it saves.
        """
        protocol, init, fraction = key
        way, began = self.plan.protocol, self.watch.clock()
        summary = CellSummary(protocol=protocol, init=init, label_fraction=fraction)
        if isinstance(way, IdentificationProtocol):
            identified = self._identify(init)
            return Finished(attrs.evolve(summary, seconds=self.watch.clock() - began), identified), None
        train = self.rows.labelled("train")
        chosen = choose_rows(train.patient, fraction, self.scoring.fraction_seed, self.plan.settings.fraction_of)
        try:
            refuse_one_class(train.label[chosen], self.frames.task)
        except DataError as problem:  # other label fractions can still be scored
            note = f"There is no score at F = {fraction:g}: {problem}"
            return Finished(attrs.evolve(summary, notes=(note,))), None
        summary = attrs.evolve(summary, frames=len(chosen), patients=len(np.unique(train.patient[chosen])))
        network = None
        with collect_warnings() as heard:  # stored with the classifier, for other evaluations that share it
            if protocol == PRIOR:
                scored = self.rows.labelled(self.rows.scored_part)
                found = Finished(summary, prior(train.take(chosen), scored, self.frames.task))
            else:
                found, network = self._learn(way, chosen, summary, checkpoint)
        assert found.rows is not None
        notes = (*heard, *found.rows.notes)
        seconds = found.summary.seconds + self.watch.clock() - began
        thresholds = choose_thresholds(found.rows.validation, self.scoring)
        summary = attrs.evolve(found.summary, seconds=seconds, notes=notes, thresholds=thresholds)
        return attrs.evolve(found, summary=summary), network

    def _learn(
        self, way: ChosenProtocol, chosen: NDArray[np.int64], summary: CellSummary, checkpoint: Path | None
    ) -> tuple[Finished, nn.Module | None]:
        """Learn from the chosen training rows, as the protocol does."""
        match way:
            case FinetuneProtocol():
                return self._fine_tune(way, chosen, summary, checkpoint)
            case LinearProtocol():
                return self._linear(way, chosen, summary), None
            case OfferedProtocol():
                return self._offered(way, chosen, summary), None
        raise AssertionError(f"{way.offer.name} learns from no labels")

    def _identify(self, init: str) -> Predictions:
        names = self.frames.store.records
        if init == CHANCE:
            return identify_by_chance(self.frames.recordings(self.rows.scored_part), names)
        return identify(pool_records(self.rows.whole(init)), names, self.device)

    def _offered(self, way: OfferedProtocol, chosen: NDArray[np.int64], summary: CellSummary) -> Finished:
        """Let the protocol of a plugin predict the scored rows."""
        offer, init, rows = way.offer, summary.init, self.rows
        network = rows.encoder(init).eval() if offer.wants == "encoder" else None
        load = rows.labelled if network is not None else partial(rows.features, init)
        trial = Trial(
            task=self.frames.task,
            train=load("train").take(chosen),
            validation=load("validation") if offer.validation else None,
            scored=load(rows.scored_part),
            seed=seeds.derive(self.plan.settings.seed, "protocol"),
            device=self.device,
            encoder=network,
            signal=None if network is None else partial(self._signal, {"train": chosen}),
        )
        # Validation rows are predicted in the same trial, to choose thresholds on: rows are predicted one by one.
        scored, held_out = trial.scored, rows.validation(init) if network is None else None
        asked = trial if held_out is None else attrs.evolve(trial, scored=_joined(scored, held_out))
        with self.watch.parts.part("fit"):
            answer = run_protocol(way, asked)
        found, beside = np.split(answer.predicted, [len(scored)])
        on_validation = None
        if held_out is not None:
            on_validation = Predictions(beside, held_out.label, held_out.patient, held_out.record)
        choices = {name: str(value) for name, value in answer.chosen.items()}
        told = ", ".join(f"{name} = {value}" for name, value in choices.items())
        choice = f"{offer.name} chose {told} for {init} at F = {summary.label_fraction:g}."
        notes = (*answer.notes, *([choice] if choices else []))
        predicted = Predictions(found, scored.label, scored.patient, scored.record, notes, on_validation)
        return Finished(attrs.evolve(summary, chosen=choices), predicted)

    def _signal(self, shares: Mapping[str, NDArray[np.int64]], part: str, rows: NDArray[np.int64]) -> Tensor:
        """Return the normalised signals (n, channel, sample) of some rows of a trial's part."""
        numbers = shares[part][rows] if part in shares else rows
        frames, name = self.frames, self.rows.scored_part if part == "scored" else cast(Part, part)
        picked = frames.store.gather(frames.parts[name], torch.from_numpy(numbers).to(self.device)).signal[:, 0]
        return frames.normalise(picked)

    def _linear(self, way: LinearProtocol, chosen: NDArray[np.int64], summary: CellSummary) -> Finished:
        init, task = summary.init, self.frames.task
        train, scored = self.rows.features(init, "train").take(chosen), self.rows.features(init, self.rows.scored_part)
        fit, fit_best = MODELS[task.kind]
        if way.C != "auto":
            held_out = self.rows.validation(init)
            beside = {} if held_out is None else {"validation": held_out}
            with self.watch.parts.part("fit"):
                predicted = fit(train, scored, task, self.device, way.C, **beside)
            return Finished(attrs.evolve(summary, C=way.C), predicted)
        validation, metric = self.rows.features(init, "validation"), self.scoring.fitting[0]
        sign = -1.0 if metric.better == "lower" else 1.0
        with self.watch.parts.part("fit"):
            predicted, c, best = fit_best(
                train, validation, scored, task, lambda *of: sign * score_once(metric, *of), self.device
            )
        of = f"validation {'recordings' if way.offer.rows == 'record' else 'frames'}"
        why = f"{of} have no score" if np.isnan(best) else f"{metric.name} {sign * best:.3f} of {of}"
        note = f"Linear evaluation of {init}, F = {summary.label_fraction:g}: C = {c:g} ({why})."
        return Finished(attrs.evolve(summary, C=c), attrs.evolve(predicted, notes=(*predicted.notes, note)))

    def _fine_tune(
        self, way: FinetuneProtocol, chosen: NDArray[np.int64], summary: CellSummary, checkpoint: Path | None
    ) -> tuple[Finished, nn.Module]:
        plan, watch, settings = self.plan, self.watch, way.settings
        how = FineTuning(
            embedding_dim=plan.encoder.embedding_dim,
            settings=settings.for_training(),
            seed=plan.settings.seed,
            scored=plan.scoring.part,
            run_epoch=choose_steps(plan.settings.step, self.device, watch.warn),
            clock=watch.clock,
            tick=watch.tick,
            epoch_done=lambda done: watch.epoch_done(done, settings.epochs),
            checkpoint=checkpoint,
            score=partial(score_once, self.scoring.fitting[0]),
            layer_decay=settings.layer_decay,
            group=self.group,
        )
        made = fine_tune(self.rows.encoder(summary.init), self.frames, chosen, how)
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
