"""The story of `clocs predict` on one page: open a classifier, find recordings or read a file, say what it thinks.

No label is needed. What a signal goes through on its way to the network is what the classifier's own file says:
channels by name, unit, time scale, frames, normalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.card import ClassifierCard
from clocs_core.artifacts.classifier import LoadedClassifier
from clocs_core.contracts.records import TOGETHER, DropReport, Listing
from clocs_core.data.cohort import divide, prepare_recordings, scan
from clocs_core.data.prepared import Prepared
from clocs_core.data.store import fill_store, list_instances
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluation.features import embed
from clocs_core.evaluation.finetune import probability_of
from clocs_core.inference.network import AsTrained, outputs_of
from clocs_core.inference.predicted import Predicted
from clocs_core.inference.signals import Unsaid, name_files, read_own_frames
from clocs_core.plan.compatibility import fit_channels, fit_framing, fit_unit
from clocs_core.plan.data import Chosen, Recordings, default_tables, inherit_data, settle
from clocs_core.plan.layers import Assignment, Layers, split_assignment
from clocs_core.plan.target import Parts, Target, known_channels, warn_of_signals, warn_of_split
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.settings.sections import DataSettings, Tables

# ----------------------------------------------------------------------------------------------------------- a data set


def choose_target(
    card: ClassifierCard,
    catalogue: Catalogue,
    dataset: str,
    given: Tables,
    assignments: Sequence[str] = (),
    trained_at: float | None = None,
) -> Target:
    """The recordings of a data set for a classifier. `given` are the tables [data] and [dataset] as flags fill them.

    Later settings win: the data set's own; on the classifier's own data set those of its evaluation, so that test
    patients stay test patients; flags; `-o`. Raises SettingsError or DataError where it cannot read what was asked for.
    """
    offer = catalogue.datasets.get(dataset).offer
    own = dataset == card.dataset
    named = [split_assignment(text) for text in assignments]
    if any(one.name == "normalise" for one in named):
        raise SettingsError(f"The normalisation comes with the classifier: {card.normalise}. Leave out `normalise`.")
    tables = _tables(card, own, given, named)
    layers = Layers({}, default_tables(offer), tables, named)
    layers.refuse_unknown({"data": DataSettings, "dataset": offer.options})
    data, task = settle(offer, known_channels(card, offer, layers.table("data", DataSettings)))
    framing = card.framing if own else fit_framing(card, None, trained_at)
    chosen = Chosen(offer, layers.table("dataset", offer.options))
    return Target(Recordings(chosen, data, task, card.recorded if own else ()), framing, own)


def _tables(card: ClassifierCard, own: bool, given: Tables, named: Sequence[Assignment]) -> Tables:
    trained = card.settings
    before = trained.get("data", {})
    kept = dict(before) if own else {"data_root": before.get("data_root", "none")}
    kept |= {"channels": list(card.channels), "normalise": card.normalise}
    data = inherit_data(kept, given.get("data", {}), named)
    options = dict(trained.get("dataset", {})) if own else {}
    return {"data": data, "dataset": options | given.get("dataset", {})}


def predict_recordings(
    loaded: LoadedClassifier, target: Target, part: Parts, workers: int, device: torch.device, show: Display
) -> Predicted:
    """What a classifier says of every usable frame of a part of the patients."""
    card = loaded.card
    show.stage("preparing recordings")
    listing, prepared, channels = _prepare(card, target, workers, show)
    patients = _patients(card, target, listing, part, show)
    factor = fit_unit(card, prepared.unit, f"Data set {target.recordings.name!r}")
    warn_of_signals(card, target, show)
    show.stage("predicting")
    unlabelled = dict.fromkeys((record for record, _ in prepared.records), None)
    store = fill_store(prepared, unlabelled, card.task, channels, device)
    together = card.input_channels > 1
    instances, _ = list_instances(prepared, patients, channels, 1, together, device)
    if not len(instances):
        raise DataError(
            f"No recording of the {part} patients of {target.recordings.name!r} has a frame that can be used: "
            f"{prepared.drops.sentence()}."
        )
    rows = embed(AsTrained(loaded.network, card, factor), store, instances, False, show.tick)
    frame, channel = (column[:, 0].cpu().numpy() for column in (instances.frame, instances.channel))
    found_rows = Predicted(
        level="frame",
        task=card.task,
        probability=probability_of(torch.from_numpy(rows.embedding), card.task),
        record=rows.record,
        patient=rows.patient,
        channel=np.full(len(frame), TOGETHER) if together else channel,
        start=prepared.start[frame],
        records=store.records,
        patients=store.patients,
        channels=channels,
    )
    _refuse_not_finite(rows.embedding, found_rows)
    _tell_left_out(listing, patients, found_rows, prepared.drops, show)
    return found_rows


def _prepare(
    card: ClassifierCard, target: Target, workers: int, show: Display
) -> tuple[Listing, Prepared, tuple[str, ...]]:
    """Find and prepare all recordings, of whichever part: an evaluation of the same data has left them prepared."""
    asked, framing = target.recordings, target.framing
    offer, listing = asked.dataset.offer, scan(asked)
    for note in listing.notes:
        show.say(note)
    prepared = prepare_recordings(asked, listing.entries, framing, workers, show.tick)
    names, wanted = prepared.channels, asked.data.channels
    given = asked.names if set(wanted) < set(asked.names) else wanted
    if listing.numbered and len(given) == len(names) and not set(given) & set(names):
        prepared = attrs.evolve(prepared, channels=given)  # the user's names for what the files only number
    return listing, prepared, fit_channels(card, prepared.channels, wanted, f"Data set {offer.name!r}")


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


# -------------------------------------------------------------------------------------------------- a file of one's own


def predict_files(
    loaded: LoadedClassifier, paths: Sequence[Path], unsaid: Unsaid, device: torch.device, show: Display
) -> Predicted:
    """What a classifier says of every usable frame of files with one recording each, of a patient of its own each."""
    card = loaded.card
    names = name_files(paths)
    parts = []
    for number, (path, name) in enumerate(zip(paths, names, strict=True)):
        show.stage(f"predicting {name}")
        rows = read_own_frames(card, path, unsaid, show.say)
        logits = outputs_of(AsTrained(loaded.network, card, rows.factor), rows.signal, device, show.tick)
        channel = np.full(len(logits), TOGETHER) if card.input_channels > 1 else rows.channel
        parts.append((logits, np.full(len(logits), number), channel, rows.start))
    logits, record, channel, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = Predicted(
        level="frame",
        task=card.task,
        probability=probability_of(torch.from_numpy(logits), card.task),
        record=record,
        patient=record,
        channel=channel,
        start=start,
        records=names,
        patients=names,
        channels=rows.channels,
    )
    _refuse_not_finite(logits, found)
    return found


def _refuse_not_finite(logits: NDArray[np.float32], found: Predicted) -> None:
    bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))  # an infinite one would come out as a certainty
    if len(bad):
        name = found.records[found.record[bad[0]]]
        raise DataError(
            f"The classifier gives no number for {len(bad)} of {len(found)} frames, the first of record {name}: its "
            "samples are too large to compute with. Check its unit and gain."
        )
