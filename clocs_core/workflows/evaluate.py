"""Run an evaluation: prepare recordings, train a classifier per init and label fraction, score, report.

Every finished classifier is kept, so that an interrupted evaluation resumes with the next one. Controls do not depend
on the run; evaluations share them in the folder `controls`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.clinical import Clinical
from clocs_core.artifacts.evaluation_folder import (
    Controls,
    EvaluationFolder,
    Finished,
    open_controls,
    refuse_other_evaluation,
)
from clocs_core.artifacts.predictions import (
    Classifier,
    PredictedRows,
    Predictions,
    predicted_rows,
    read_rows_of,
    save_predictions,
)
from clocs_core.artifacts.reports import Curve, EncoderSummary, EvaluationReport
from clocs_core.contracts.events import EvaluationDone
from clocs_core.contracts.records import DropReport
from clocs_core.contracts.scores import RANDOM
from clocs_core.evaluation.classifiers import ClassifierMaker, Watch, list_classifiers
from clocs_core.evaluation.clinical import clinical_results
from clocs_core.evaluation.identification import RECALLS, line_up
from clocs_core.evaluation.scoring import Evaluation, Scoring, score_predictions
from clocs_core.files import write_atomically
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import COMMAND, Display, collect_warnings
from clocs_core.report.evaluation_page import render_evaluation
from clocs_core.settings.options import changed
from clocs_core.settings.toml_file import Tables, seal_tables
from clocs_core.train.build import choose_device
from clocs_core.workflows.classifiers import KeptClassifiers
from clocs_core.workflows.clinical import begin_clinical
from clocs_core.workflows.drawing import drawing_beside
from clocs_core.workflows.environment import environment, now
from clocs_core.workflows.evaluation_frames import ReadyEvaluation, prepare_evaluation
from clocs_core.workflows.leading import Lead, is_begun, make_what_is_named
from clocs_core.workflows.summary import summarise_recordings, summarise_split
from clocs_core.workflows.surroundings import Surroundings


@attrs.frozen(eq=False)
class FinishedEvaluation:
    """A finished evaluation: its report and its predictions."""

    report: EvaluationReport
    predictions: PredictedRows | None


def evaluate_encoder(
    plan: EvaluationPlan, path: Path | None, around: Surroundings, controls: Path | None = None
) -> FinishedEvaluation:
    """Evaluate an encoder beside its controls into the folder `path`, or resume there, or read its finished report.

    The folder is reserved first, so that two evaluations never share one. A mistake leaves nothing behind.
    path: None writes no files. controls: a folder that evaluations share; existing controls are copied from it, new
    ones are added to it. The report is the same either way.
    """
    tables = plan.tables()
    around = around.tracked(plan.extras.trackers if path is not None else ())
    if path is None:
        around = attrs.evolve(around, announces=False)  # a plugin would write files
        ready = prepare_evaluation(plan, around)
        done = _in_memory(ready, _maker(ready, around), tables, environment(ready.device, around.host))
        around.evaluated(_as_event(done.report, None))
        return done
    folder = EvaluationFolder(path)
    lead = Lead(around.group, choose_device(plan.settings.device))
    if folder.report.exists():  # no lock: it may be read-only
        refuse_other_evaluation(folder, tables)
        lead.dismiss()
        return _read_again(folder, around.show)
    with nullcontext() if controls is None else open_controls(controls) as shared, folder.reserve():
        refuse_other_evaluation(folder, tables)
        if folder.report.exists():
            lead.dismiss()
            return _read_again(folder, around.show)
        return _in_folder(plan, folder, around, shared, lead)


def follow_evaluation(plan: EvaluationPlan, around: Surroundings) -> None:
    """Share the work of an evaluation that process 0 leads; keep nothing of it."""
    assert around.group is not None
    if is_begun(around.group, choose_device(plan.settings.device)):
        ready = prepare_evaluation(plan, around)
        make_what_is_named(_maker(ready, around), around.group)


def _as_event(report: EvaluationReport, folder: Path | None) -> EvaluationDone:
    return EvaluationDone(
        folder=folder,
        protocol=report.protocol,
        init=report.init,
        dataset=report.dataset,
        task=report.task,
        scores=report.scores,
        comparisons=report.comparisons,
        notes=report.notes,
    )


def _maker(ready: ReadyEvaluation, around: Surroundings) -> ClassifierMaker:
    show = around.show
    watch = Watch(around.clock, show.tick, show.epoch, show.warn)
    return ClassifierMaker(ready.plan, ready.frames, ready.scoring, ready.device, watch, around.group)


def _in_folder(
    plan: EvaluationPlan, folder: EvaluationFolder, around: Surroundings, shared: Controls | None, lead: Lead
) -> FinishedEvaluation:
    """Evaluate into a reserved folder, or go on there."""
    tables, clock, show = plan.tables(), around.clock, around.show
    began = clock()
    lead.begin()
    ready = prepare_evaluation(plan, around)
    prepared, versions = clock(), environment(ready.device, around.host, around.group)
    with collect_warnings(show.warn) as heard:
        if not folder.settings.exists():
            write_atomically(folder.settings, seal_tables(tables))
        folder.keep_recordings(ready.cohort.split, summarise_recordings(ready.cohort))
        kept = KeptClassifiers(_maker(ready, around), ready.cohort, versions, folder, shared, show, lead)
        finished = kept.finish_all()
        lead.dismiss()
        trained = clock()
        show.stage("scoring")
        evaluation = score_predictions(_predicted(finished), RANDOM, ready.scoring, show.tick)
        names = _names(ready)
        evaluation = attrs.evolve(evaluation, clinical=_clinical(ready, finished, names))
        digest = ""
        if evaluation.predicted:
            digest = save_predictions(evaluation.predicted, *names, folder.predictions, _beside(ready))
        report = attrs.evolve(
            _report(ready, tables, finished, evaluation, versions, heard),
            seconds={
                "prepare": prepared - began,
                "train": trained - prepared + sum(kept.earlier.values()),
                "score": clock() - trained,
            },
            predictions_sha256=digest,
        )
        with drawing_beside(ready.device, plan.scoring.pictures) as drawing:
            shown = begin_clinical(report.clinical, plan.dataset, ready.cohort, show.warn, drawing)()
        folder.finish_all(report, render_evaluation(report, shown))
    around.evaluated(_as_event(report, folder.path))
    return FinishedEvaluation(report, predicted_rows(evaluation.predicted, *names, _beside(ready)))


def _in_memory(
    ready: ReadyEvaluation, maker: ClassifierMaker, tables: Tables, versions: dict[str, str]
) -> FinishedEvaluation:
    with collect_warnings(maker.watch.warn) as heard:
        finished = {key: maker.make(key)[0] for key in list_classifiers(ready.plan)}
        evaluation = score_predictions(_predicted(finished), RANDOM, ready.scoring, maker.watch.tick)
    names = ready.frames.store.patients, ready.frames.store.records
    evaluation = attrs.evolve(evaluation, clinical=_clinical(ready, finished, names))
    report = _report(ready, tables, finished, evaluation, versions, heard)
    return FinishedEvaluation(report, predicted_rows(evaluation.predicted, *names, _beside(ready)))


def _predicted(finished: Mapping[Classifier, Finished]) -> dict[Classifier, Predictions]:
    return {key: one.rows for key, one in finished.items() if one.rows is not None}


def _clinical(
    ready: ReadyEvaluation, finished: Mapping[Classifier, Finished], names: tuple[Sequence[str], Sequence[str]]
) -> Clinical | None:
    """Compute the results for clinicians. names: of patients and records, by their numbers in the predictions."""
    if not ready.plan.protocol.learns:
        return None
    summaries = {key: one.summary for key, one in finished.items()}
    return clinical_results(_predicted(finished), summaries, ready.frames, ready.cohort, ready.scoring, names)


def _read_again(folder: EvaluationFolder, show: Display) -> FinishedEvaluation:
    """Read the finished report; delete intermediate files that a killed process may have left."""
    folder.clear()
    show.say(f"{folder.path} is finished; this is what it found")
    report = folder.read_report()
    return FinishedEvaluation(report, read_rows_of(folder.predictions, report.predictions_sha256))


def _beside(ready: ReadyEvaluation) -> dict[str, NDArray[Any]]:
    """Return the names of the columns of the predictions and, where these are of frames, where each lies."""
    if not ready.plan.protocol.learns:
        return {"classes": np.array([metric.name for metric in RECALLS])}
    return ready.frames.places(ready.plan.scoring.part, ready.cohort)


def _names(ready: ReadyEvaluation) -> tuple[list[str], list[str]]:
    """Return the sorted patients and records of the scored rows; predictions read from a file are numbered by them."""
    part, store = ready.plan.scoring.part, ready.frames.store
    rows = ready.frames.rows[part]
    if not ready.plan.protocol.learns:
        recordings = ready.frames.recordings(part)
        rows = recordings.take(line_up(recordings, store.records).probes)
    return sorted({store.patients[n] for n in rows.patient}), sorted({store.records[n] for n in rows.record})


def _report(
    ready: ReadyEvaluation,
    tables: Tables,
    finished: Mapping[Classifier, Finished],
    evaluation: Evaluation,
    versions: dict[str, str],
    heard: list[str],
) -> EvaluationReport:
    plan, cohort = ready.plan, ready.cohort
    encoder = plan.encoder
    of_classifiers = (note for one in finished.values() for note in one.summary.notes)
    return EvaluationReport(
        protocol=plan.protocol.offer.name,
        how=plan.sentence(),
        init=encoder.init,
        encoder=EncoderSummary(
            name=encoder.encoder.offer.name,
            dataset=encoder.dataset,
            inputs=encoder.inputs,
            frame_samples=plan.framing.frame_samples,
            embedding_dim=encoder.embedding_dim,
            sha256=encoder.sha256,
            options=changed(encoder.encoder.options),
        ),
        dataset=plan.dataset.offer.name,
        task=plan.task.name,
        part=plan.scoring.part,
        seed=plan.settings.seed,
        settings={**tables, "data": {**tables["data"], **_scale_used(plan)}},
        split=summarise_split(cohort, ready.frames.counts, ready.leaks),
        environment=versions,
        scores=evaluation.scores,
        comparisons=evaluation.comparisons,
        cells=tuple(one.summary for one in finished.values()),
        curves=_curves(finished, ready.scoring),
        notes=tuple(dict.fromkeys((*ready.notes, *evaluation.notes, *of_classifiers, *heard))),
        drops=DropReport.of(cohort.listing.drops) + cohort.evaluate.drops,
        form=cohort.listing.form,
        command=COMMAND.get(),
        date=now(),
        clinical=evaluation.clinical,
    )


def _scale_used(plan: EvaluationPlan) -> dict[str, object]:
    """Return the settings of the scale of signals; a constant was measured, or converted from another unit."""
    return {"normalise": plan.data.normalise, "constant": plan.data.constant or "none"}


def _curves(finished: Mapping[Classifier, Finished], scoring: Scoring) -> tuple[Curve, ...]:
    """Collect the learning curves of the fine-tuned classifiers."""
    metric = scoring.fitting[0].name
    return tuple(
        Curve(protocol=protocol, init=init, label_fraction=fraction, metric=metric, values=cell.curve)
        for (protocol, init, fraction), cell in finished.items()
        if cell.curve
    )
