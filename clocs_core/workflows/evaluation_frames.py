"""Prepare the recordings of an evaluation, list the frames that have a label, and note what a reader must know."""

from __future__ import annotations

import attrs
import torch

from clocs_core.contracts.records import DropReport, Part
from clocs_core.data.audit import Audit, certified_audit
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluation.identification import RECALLS, refuse_single_recordings
from clocs_core.evaluation.labelled_frames import LabelledFrames, list_labelled_frames, refuse_unlabelled
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plan.evaluation import EvaluationPlan, refuse_other_channels
from clocs_core.plan.pretrained import Pretrained
from clocs_core.plan.protocols import refuse_other_task
from clocs_core.progress import collect_warnings
from clocs_core.settings.options import plain
from clocs_core.settings.sections import DataSettings
from clocs_core.train.agreement import first_alone
from clocs_core.train.build import build_encoder, choose_device, choose_steps
from clocs_core.train.normalise import normaliser
from clocs_core.workflows.summary import leak_notes, part_notes
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import with_constant


@attrs.frozen(eq=False)
class ReadyEvaluation:
    """A plan whose recordings are prepared, and the frames that have a label."""

    plan: EvaluationPlan
    cohort: Cohort
    frames: LabelledFrames
    scoring: Scoring
    leaks: Audit
    notes: tuple[str, ...]
    device: torch.device


def prepare_evaluation(plan: EvaluationPlan, around: Surroundings) -> ReadyEvaluation:
    """Prepare the recordings, list their labelled frames and say what was found.

    Raises DataError or SettingsError where the plan and the recordings do not fit together.
    """
    show = around.show
    device = choose_device(plan.settings.device)
    choose_steps(plan.settings.step, device, show.warn)  # fail before reading anything
    show.stage("preparing recordings")

    def get() -> Cohort:
        return get_cohort(plan.recordings, plan.framing, plan.framing, around.workers, show.tick)

    cohort = first_alone(around.group, device, lambda: around.shared.get(plan, get))
    data = with_constant(attrs.evolve(plan.data, channels=cohort.channels), cohort.evaluate, cohort, show)
    asked = plan = attrs.evolve(plan, task=cohort.task, data=data)
    data, scale_notes = _in_unit(data, plan.encoder, cohort.evaluate.unit)
    plan = attrs.evolve(plan, data=data)
    scoring = Scoring(
        plan.task,
        plan.dataset.offer.name,
        plan.metrics if plan.protocol.learns else RECALLS,
        plan.scoring,
        plan.data.split_seed,
        device,
        plan.protocol.offer.rows,
    )
    if plan.protocol.learns:
        _refuse_no_score(cohort, scoring)
    refuse_other_task(plan.protocol, plan.task)  # again: the task may be known from the files alone
    refuse_other_channels(plan.encoder.together, cohort.channels)
    # An encoder that cannot be built is refused before a folder is begun; its warnings are heard when it is used.
    with torch.random.fork_rng(devices=[]), collect_warnings():
        build_encoder(plan.encoder, plan.framing.frame_samples, plan.settings.seed, False, device)
    normalise = normaliser(data.normalise, data.constant)
    frames = list_labelled_frames(cohort, bool(plan.encoder.together), normalise, device)
    if plan.protocol.learns:
        needed: tuple[Part, ...] = plan.scoring.parts
        refuse_unlabelled(frames, (*needed, "validation") if plan.protocol.offer.validation else needed)
    else:
        part = plan.scoring.part
        refuse_single_recordings(frames.recordings(part), frames.store.records, plan.dataset.offer.name, part)
    leaks = certified_audit(cohort.evaluate, cohort.split, device)
    show.say(_found(plan, cohort, frames))
    notes = (*_notes(asked, cohort, leaks), *scale_notes)
    for note in (*cohort.listing.notes, leaks.sentence(), *notes):
        show.say(note)
    return ReadyEvaluation(plan, cohort, frames, scoring, leaks, notes, device)


def _in_unit(data: DataSettings, encoder: Pretrained, unit: str) -> tuple[DataSettings, tuple[str, ...]]:
    """Return settings that give signals the scale that the encoder was trained on, and what a reader must know."""
    if not encoder.weights:
        return data, ()
    scaled, warning = encoder.scale.settings(data, unit), encoder.scale.warning(data, unit)
    if scaled == data:
        return data, (f"{warning[0].upper()}{warning[1:]}.",) if warning else ()
    return scaled, (f"Signals are in {unit} and the encoder was trained on {encoder.unit}; they were converted.",)


def _refuse_no_score(cohort: Cohort, scoring: Scoring) -> None:
    if cohort.listing.no_score:
        raise DataError(f"There is no score: {cohort.listing.no_score}.")
    if why := scoring.why_no_metric():
        raise SettingsError(f"There is no score: {why}.")


def _notes(plan: EvaluationPlan, cohort: Cohort, leaks: Audit) -> tuple[str, ...]:
    """Collect the notes that a reader needs to judge the scores."""
    notes = [*_seen_before(plan, cohort)]
    encoder, framing = plan.encoder, plan.encoder.tables.get("evaluate_framing", {})
    here = {**plain(plan.data), **plain(plan.framing)}
    then = {"normalise": encoder.normalise, **{name: framing.get(name, "none") for name in ("band_pass", "notch")}}
    if encoder.normalise == plan.data.normalise == "constant":
        then["constant"] = encoder.constant or "none"
    for name, before in then.items():
        if encoder.weights and before != here[name]:
            notes.append(
                f"The encoder was pre-trained with {name}={before} and is evaluated with {name}={here[name]}; "
                f"`{name}={before!r}` keeps to the first."
            )
    return (*notes, *_time_notes(plan, cohort), *part_notes(plan.scoring.part), *leak_notes(leaks))


def _time_notes(plan: EvaluationPlan, cohort: Cohort) -> tuple[str, ...]:
    """Note where frames last longer or shorter than in pre-training, since recordings have another rate.

    A transfer to a data set with a time scale of its own follows that, as in the paper.
    """
    then, here, samples = plan.encoder.frame_rate, cohort.evaluate.frame_rate, plan.framing.frame_samples
    follows_own = plan.encoder.dataset != plan.dataset.offer.name and plan.dataset.offer.has_time_scale
    if not plan.encoder.weights or follows_own or not then or not here or then == here:
        return ()
    return (
        f"A frame lasts {samples / here:g} s, and lasted {samples / then:g} s in pre-training. "
        f"`framing.sampling_rate={then:g}` resamples the recordings, so that it lasts as long.",
    )


def _seen_before(plan: EvaluationPlan, cohort: Cohort) -> tuple[str, ...]:
    """Note where scored patients are, or may be, among those that the encoder was trained on."""
    encoder, part = plan.encoder, plan.scoring.part
    if encoder.dataset != plan.dataset.offer.name or encoder.split_hash == cohort.split.hash:
        return ()
    if encoder.split is None:
        return ("The split is another one than the encoder's: it may have been trained on patients that are scored.",)
    seen = {*encoder.split.patients("train"), *encoder.split.patients("validation")}
    mine = cohort.split.patients(part)
    both = len(seen & set(mine))
    if not both:
        return ()
    return (
        f"{both} of the {len(mine)} {part} patients are among those that the encoder was pre-trained on: scores are "
        f"too good. Its own split is split_seed={encoder.split.seed}.",
    )


def _found(plan: EvaluationPlan, cohort: Cohort, frames: LabelledFrames) -> str:
    counts = " / ".join(f"{n:,}" for n in cohort.split.counts().values())
    labelled = " / ".join(f"{len(some):,}" for some in frames.parts.values())
    drops = DropReport.of(cohort.listing.drops) + cohort.evaluate.drops
    return (
        f"{plan.dataset.offer.name}: {len(cohort.listing.entries):,} recordings of {len(cohort.split.parts):,} "
        f"patients, {counts} to train / validate / test; labelled frames {labelled}; {drops.sentence()}"
    )
