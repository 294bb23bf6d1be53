"""Score the encoder of a run and its controls on the frames of the run's data set."""

from __future__ import annotations

import attrs
import torch

from clocs_core.contracts.scores import RANDOM
from clocs_core.data.cohort import Cohort
from clocs_core.errors import DataError
from clocs_core.evaluation.classifiers import ClassifierMaker, Watch, list_classifiers
from clocs_core.evaluation.clinical import clinical_results
from clocs_core.evaluation.distance_bins import PatientDistances
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.labelled_frames import LabelledFrames, list_labelled_frames
from clocs_core.evaluation.patient_distances import patient_distances
from clocs_core.evaluation.scoring import Evaluation, Scoring, score_predictions
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.train.normalise import normaliser


@attrs.frozen(eq=False)
class Scored:
    """Scores; by init, the embeddings of all scored frames and their distances within and between patients."""

    evaluation: Evaluation
    features: dict[str, Features]
    distances: dict[str, PatientDistances | None]
    frames: LabelledFrames


def score_own_encoder(plan: EvaluationPlan, cohort: Cohort, device: torch.device, watch: Watch) -> Scored:
    """Embed the scored part with the encoder and its untrained control; score both if there are labels.

    Raise DataError if no recording of the scored part has a frame.
    """
    normalise = normaliser(plan.data.normalise, plan.data.constant)
    frames = list_labelled_frames(cohort, bool(plan.encoder.together), normalise, device)
    part = plan.scoring.part
    if not frames.counts[part]:
        raise DataError(f"No recording of the {part} patients has a frame; use shorter frames (`frame_samples=...`).")
    scoring = Scoring(plan.task, plan.dataset.offer.name, plan.metrics, plan.scoring, plan.data.split_seed, device)
    maker = ClassifierMaker(plan, frames, scoring, device, watch)
    features = {init: maker.rows.whole(init) for init in plan.inits}
    with watch.parts.part("distances"):
        distances = {init: patient_distances(rows.embedding, rows.patient, device) for init, rows in features.items()}
    return Scored(_score(maker, scoring, cohort), features, distances, frames)


def _score(maker: ClassifierMaker, scoring: Scoring, cohort: Cohort) -> Evaluation:
    if why := _why_no_score(maker.frames, scoring, cohort):
        return Evaluation(notes=(f"There is no score: {why}.",))
    finished = {key: maker.make(key)[0] for key in list_classifiers(maker.plan)}
    predicted = {key: one.rows for key, one in finished.items() if one.rows is not None}
    with maker.watch.parts.part("bootstrap"):
        evaluation = score_predictions(predicted, RANDOM, scoring, maker.watch.tick)
    with maker.watch.parts.part("classes"):
        names = maker.frames.store.patients, maker.frames.store.records
        summaries = {key: one.summary for key, one in finished.items()}
        clinical = clinical_results(predicted, summaries, maker.frames, cohort, scoring, names)
    notes = (note for one in finished.values() for note in one.summary.notes)
    notes_of_all = tuple(dict.fromkeys((*evaluation.notes, *notes)))
    return attrs.evolve(evaluation, notes=notes_of_all, clinical=clinical)


def _why_no_score(frames: LabelledFrames, scoring: Scoring, cohort: Cohort) -> str:
    if cohort.listing.no_score:
        return cohort.listing.no_score
    if not cohort.has_labels:
        return f"{scoring.dataset} has no labels"
    for part in scoring.settings.parts:
        if not len(frames.parts[part]):
            word = "training" if part == "train" else part
            return f"no {word} frame of {scoring.dataset} has a label for {scoring.task.name!r}"
    return scoring.why_no_metric()
