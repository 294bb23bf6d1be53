"""Run a plan: prepare recordings, pre-train, save the encoder, evaluate it beside its controls, report.

The input is a plan, the output a finished run. The keeper writes files; `Surroundings` announces events.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.metrics import EpochRow, health_of
from clocs_core.artifacts.predictions import PredictedRows, predicted_rows
from clocs_core.artifacts.reports import Report
from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.contracts.events import EmbeddingMap, Picture, RunDone
from clocs_core.contracts.sections import Findings
from clocs_core.data.exposure import expose
from clocs_core.evaluation.classifiers import Watch
from clocs_core.evaluation.own_encoder import Scored
from clocs_core.plan.pretraining import Plan
from clocs_core.progress import COMMAND
from clocs_core.report.page import render
from clocs_core.report.pictures import draw_embeddings, draw_scores, draw_training
from clocs_core.report.sections import make_sections
from clocs_core.report.times import time_lines
from clocs_core.workflows.clinical import begin_clinical
from clocs_core.workflows.drawing import Drawing, Drawn, drawing_beside
from clocs_core.workflows.encoders import BestEncoder, best_encoders, encoder_notes, score_encoder, score_other
from clocs_core.workflows.environment import environment, now
from clocs_core.workflows.summary import (
    begin_views,
    leak_notes,
    name_embeddings,
    part_notes,
    summarise_distances,
    summarise_recordings,
    summarise_retrieval,
    summarise_split,
)
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import Ready, Trained, patients_of, prepare_run, train_run

Begun: TypeAlias = tuple[Drawn[list[Picture]], ...]
"""Pictures that were begun to draw."""


@attrs.frozen(eq=False)
class FinishedRun:
    """A finished run: its report, its epochs, its predictions, and its best encoders with their cards."""

    report: Report
    history: tuple[EpochRow, ...]
    predictions: PredictedRows | None
    encoders: tuple[BestEncoder, ...]


def pretrain_run(plan: Plan, keeper: RunKeeper, around: Surroundings, profile: bool = False) -> FinishedRun:
    """Pre-train, evaluate and report; resume from the keeper's folder if it has a checkpoint.

    The folder is reserved first, so that two runs never share one. A mistake leaves nothing behind.
    profile: measure where the time of a training step goes, and show it.
    """
    clock, show = around.clock, around.show
    around = around.tracked(plan.extras.trackers)
    with keeper.open(), around.watched():
        ready = prepare_run(plan, around)
        keeper.begin(ready.plan.tables(), ready.cohort.split, summarise_recordings(ready.cohort))
        show.stage("pre-training")
        trained = train_run(ready, keeper, around, profile)
        first, *others = encoders = best_encoders(ready, environment(ready.device, around.host, around.group))
        keeper.keep_encoder(first.saved, first.card)
        for one in others:
            keeper.keep_encoder(one.saved, one.card, one.part.name)
        pretrained = clock()
        show.stage("evaluating")
        with drawing_beside(ready.device, plan.evaluate.pictures) as drawing:
            of_training = _begin_training_pictures(ready, trained, drawing)
            watch = Watch(clock, show.tick, lambda done, epochs: None, show.warn)
            scored = score_encoder(ready, first, watch)
            scored_others = tuple(score_other(ready, one, watch) for one in others)
            store = scored.frames.store
            embeddings = name_embeddings(ready.plan, store, scored.features[plan.method.name])
            of_results = _begin_result_pictures(ready, scored, embeddings, drawing)
            of_classes = begin_clinical(scored.evaluation.clinical, plan.dataset, ready.cohort, show.warn, drawing)
            read = attrs.evolve(ready.cohort, channels=first.part.channels)
            beside = scored.frames.places(ready.plan.evaluate.part, read)
            digest = keeper.keep_predictions(scored.evaluation.predicted, store.patients, store.records, beside)
            made = _report(ready, trained, scored, first.card, watch)
            report = attrs.evolve(made, other_encoders=scored_others, predictions_sha256=digest)
            evaluated = clock()
            done = _done(report, embeddings, (*of_training, *of_results))
            clinical = of_classes()
        finished = clock()
        parts = {f"evaluate/{part}": seconds for part, seconds in watch.parts.seconds.items()}
        seconds = {**trained.log.seconds, "evaluate": evaluated - pretrained, **parts, "report": finished - evaluated}
        report = attrs.evolve(report, seconds=seconds)
        sections = make_sections(plan.extras.sections, _findings(ready, scored, done), show.warn)
        keeper.finish(report, render(report, trained.log.rows, done.pictures, sections, clinical))
        around.done(trained.run, done)
        keeper.close()
    show.say(time_lines({**seconds, "closing": clock() - finished}))
    predictions = predicted_rows(scored.evaluation.predicted, store.patients, store.records, beside)
    return FinishedRun(report, trained.log.rows, predictions, encoders)


def follow_run(plan: Plan, keeper: RunKeeper, around: Surroundings) -> None:
    """Train along with process 0, which alone writes and evaluates."""
    assert around.group is not None
    train_run(prepare_run(plan, around), keeper, around, profile=False)


# -------------------------------------------------------------------------------------------------- evaluate and report


def _report(ready: Ready, trained: Trained, scored: Scored, card: EncoderCard, watch: Watch) -> Report:
    plan, cohort, progress = ready.plan, ready.cohort, ready.learner.progress
    patients = patients_of(trained.training.store, trained.training.train)
    with watch.parts.part("retrieval"):
        retrieval = summarise_retrieval(scored.features, ready.device, watch.tick)
    return Report(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        task=plan.task.name if cohort.has_labels else None,
        seed=plan.run.seed,
        settings=plan.tables(),
        epochs_run=progress.epoch,
        best_epoch=progress.best_epoch,
        exposure=expose(patients, plan.train.together, progress.epoch),
        stopped="all epochs" if progress.epoch >= plan.train.epochs else "early stopping",
        split=summarise_split(cohort, scored.frames.counts, ready.leaks),
        environment=dict(card.versions),
        scores=scored.evaluation.scores,
        comparisons=scored.evaluation.comparisons,
        patients=summarise_distances(scored.distances),
        retrieval=retrieval,
        notes=(
            *trained.log.warnings,
            *encoder_notes(ready),
            *part_notes(plan.evaluate.part),
            *scored.evaluation.notes,
            *leak_notes(ready.leaks),
            *_health_notes(trained.log.rows, plan),
        ),
        drops=ready.drops,
        form=cohort.listing.form,
        command=COMMAND.get(),
        date=now(),
        clinical=scored.evaluation.clinical,
    )


def _begin_training_pictures(ready: Ready, trained: Trained, drawing: Drawing | None) -> Begun:
    """Begin to draw what is known before the evaluation."""
    if drawing is None:
        return ()
    rows, training = trained.log.rows, trained.training
    curves = drawing.begin(draw_training, rows, ready.learner.progress.best_epoch)
    return curves, begin_views(ready.plan, ready.cohort, training.store, training.validation, drawing)


def _begin_result_pictures(ready: Ready, scored: Scored, embeddings: EmbeddingMap, drawing: Drawing | None) -> Begun:
    """Begin to draw what the evaluation found."""
    if drawing is None:
        return ()
    scores = drawing.begin(draw_scores, scored.evaluation.scores)
    distances = scored.distances[ready.plan.method.name]
    return scores, drawing.begin(draw_embeddings, embeddings, distances, ready.cohort.has_labels)


def _done(report: Report, embeddings: EmbeddingMap, begun: Begun) -> RunDone:
    pictures = tuple(picture for drawn in begun for picture in drawn())
    return RunDone(report.epochs_run, report.best_epoch, report.scores, report.comparisons, embeddings, pictures)


def _findings(ready: Ready, scored: Scored, done: RunDone) -> Findings:
    """Collect what sections of plugins may show."""
    store = scored.frames.store
    found = predicted_rows(scored.evaluation.predicted, store.patients, store.records)
    rows: dict[str, Any] = {}
    if found is not None:
        rows = {"label": found.label, "patient": tuple(found.patient.tolist()), "record": tuple(found.record.tolist())}
        rows["predictions"] = {key: one.probability for key, one in found.predicted.items()}
    return Findings(
        method=ready.plan.method.name,
        dataset=ready.plan.dataset.offer.name,
        task=ready.plan.task,
        scores=done.scores,
        comparisons=done.comparisons,
        embeddings=done.embeddings,
        **rows,
    )


def _health_notes(rows: tuple[EpochRow, ...], plan: Plan) -> tuple[str, ...]:
    problem = health_of(rows[-1], plan.run.embedding_dim).warning()
    return (f"At the end of training {problem}.",) if problem else ()
