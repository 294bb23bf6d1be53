"""Predict the classes of recordings with a fine-tuned classifier: from a data set, or from the user's files.

No label is needed. The classifier's card says how a signal is read: channels by name, unit, time scale, frames,
normalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
import torch

from clocs_core.artifacts.card import ClassifierCard
from clocs_core.artifacts.classifier import LoadedClassifier
from clocs_core.contracts.records import DropReport, Framing, Listing
from clocs_core.data.cohort import divide, prepare_recordings, scan
from clocs_core.data.prepared import Prepared
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluation.finetune import probability_of
from clocs_core.inference.predicted import Predicted
from clocs_core.inference.rows import ChosenFrames, Rows, as_trained, run_on_files, run_on_frames
from clocs_core.inference.signals import Unsaid
from clocs_core.inference.time_scale import follows_rate, prepare_as_trained
from clocs_core.plan.compatibility import fit_channels, fit_framing, fit_unit, warn_of_length
from clocs_core.plan.data import Chosen, DataPlan, default_tables, inherit_data, settle
from clocs_core.plan.layers import Assignment, Layers, as_assignments
from clocs_core.plan.target import Parts, Target, known_channels, warn_of_signals, warn_of_split
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.settings.sections import DataSettings
from clocs_core.settings.toml_file import Tables


def choose_target(
    card: ClassifierCard,
    catalogue: Catalogue,
    dataset: str,
    given: Tables,
    assignments: Sequence[str | Assignment] = (),
    trained_at: float | None = None,
) -> Target:
    """Choose recordings of a data set for a classifier. `given` are the tables [data] and [dataset] of flags.

    Later settings win: the data set's own; on the classifier's own data set those of its evaluation, so that test
    patients stay test patients; flags; `-o`. Raises SettingsError or DataError where it cannot read the recordings.
    """
    offer = catalogue.datasets.get(dataset).offer
    own = dataset == card.dataset
    named = as_assignments(assignments)
    if any(one.name in ("normalise", "constant") for one in named):
        raise SettingsError(f"The normalisation comes with the classifier: {card.normalise}. Leave out `normalise`.")
    tables = _tables(card, own, given, named)
    layers = Layers({}, default_tables(offer), tables, named)
    layers = layers.checked({"data": DataSettings, "dataset": offer.options})
    data, task = settle(offer, known_channels(card, offer, layers.table("data", DataSettings)))
    framing = card.framing if own else fit_framing(card, None, trained_at)
    chosen = Chosen(offer, layers.table("dataset", offer.options))
    recordings = DataPlan(chosen, data, task, card.recorded if own else ())
    return Target(recordings, framing, own, keeps_time=own and follows_rate(card, framing))


def _tables(card: ClassifierCard, own: bool, given: Tables, named: Sequence[Assignment]) -> Tables:
    trained = card.settings
    before = trained.get("data", {})
    kept = dict(before) if own else {"data_root": before.get("data_root", "none")}
    kept |= {"channels": list(card.channels), "normalise": card.normalise, "constant": card.constant or "none"}
    data = inherit_data(kept, given.get("data", {}), named)
    options = dict(trained.get("dataset", {})) if own else {}
    return {"data": data, "dataset": options | given.get("dataset", {})}


def predict_recordings(
    loaded: LoadedClassifier, target: Target, part: Parts, workers: int, device: torch.device, show: Display
) -> Predicted:
    """Predict every usable frame of a part of the patients."""
    card, name = loaded.card, target.recordings.name
    show.stage("preparing recordings")
    listing, prepared, channels = _prepare(card, target, workers, show)
    patients = _patients(card, target, listing, part, show)
    network = as_trained(loaded.network, card, fit_unit(card, prepared.unit, f"Data set {name!r}"))
    warn_of_signals(card, target, show)
    if not target.own and (warning := warn_of_length(card)):
        show.warn(warning)
    show.stage("predicting")
    unlabelled = dict.fromkeys((record for record, _ in prepared.records), None)
    rows = run_on_frames(
        network, card, ChosenFrames(prepared, unlabelled, card.task, channels, patients), device, show.tick
    )
    if not len(rows):
        raise DataError(
            f"No recording of the {part} patients of {name!r} has a usable frame: {prepared.drops.sentence()}."
        )
    found = _predicted(rows, card)
    _tell_left_out(listing, patients, found, prepared.drops, show)
    return found


def predict_files(
    loaded: LoadedClassifier, paths: Sequence[Path], unsaid: Unsaid, device: torch.device, show: Display
) -> Predicted:
    """Predict every usable frame of files. Each file is one recording, and counts as one patient."""
    rows = run_on_files(loaded.network, loaded.card, paths, unsaid, device, show, "predicting")
    return _predicted(rows, loaded.card)


def _predicted(rows: Rows, card: ClassifierCard) -> Predicted:
    """Compute probabilities from logits. Raises DataError for a logit that is not finite: it would look certain."""
    logits = rows.features.embedding
    bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))
    if len(bad):
        name = rows.records[rows.features.record[bad[0]]]
        raise DataError(
            f"The classifier gives no number for {len(bad)} of {len(rows)} frames, the first of record {name}: its "
            "samples are too large to compute with. Check its unit and gain."
        )
    return Predicted(
        level="frame",
        task=card.task,
        probability=probability_of(torch.from_numpy(logits), card.task),
        record=rows.features.record,
        patient=rows.features.patient,
        channel=rows.channel,
        start=rows.start,
        records=rows.records,
        patients=rows.patients,
        channels=rows.channels,
    )


def _prepare(
    card: ClassifierCard, target: Target, workers: int, show: Display
) -> tuple[Listing, Prepared, tuple[str, ...]]:
    """Find and prepare the recordings of all parts: an evaluation of the same data has prepared them already."""
    asked, listing = target.recordings, scan(target.recordings)
    for note in listing.notes:
        show.say(note)

    def prepare(framing: Framing) -> Prepared:
        return prepare_recordings(asked, listing, framing, workers, show.tick)

    prepared = prepare_as_trained(card, target, prepare, lambda one: one, show)
    names, wanted = prepared.channels, asked.data.channels
    given = asked.names if set(wanted) < set(asked.names) else wanted
    if listing.numbered and len(given) == len(names) and not set(given) & set(names):
        prepared = attrs.evolve(prepared, channels=given)  # the user's names for channels that files only number
    return listing, prepared, fit_channels(card, prepared.channels, wanted, f"Data set {asked.name!r}")


def _patients(card: ClassifierCard, target: Target, listing: Listing, part: Parts, show: Display) -> frozenset[str]:
    if part == "all":
        if target.own:
            show.say("among all patients are those that the classifier was trained on; `part='test'` leaves them out")
        return frozenset(entry.patient for entry in listing.entries)
    split = divide(target.recordings, listing)
    warn_of_split(card, target, split.hash, show)
    return frozenset(split.patients(part))


def _tell_left_out(
    listing: Listing, patients: frozenset[str], found: Predicted, drops: DropReport, show: Display
) -> None:
    asked = sum(entry.patient in patients for entry in listing.entries)
    missing = asked - len(np.unique(found.record))
    if missing:
        show.warn(f"{missing} of {asked} recordings have no frame that can be used, and no row: {drops.sentence()}")
