"""Embed recordings with the encoder of a run: from its own data set, from another, or from the user's files.

The encoder fixes the length of a frame, the normalisation, and, where it reads several channels at once, these
channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
import torch

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.embeddings import NamedRows
from clocs_core.artifacts.encoder import LoadedEncoder
from clocs_core.artifacts.split import PARTS
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import TOGETHER, DropReport, Framing, Part
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.errors import DataError, SettingsError
from clocs_core.inference.network import AsTrained
from clocs_core.inference.rows import ChosenFrames, Rows, run_on_files, run_on_frames
from clocs_core.inference.signals import Unsaid
from clocs_core.inference.time_scale import follows_rate, prepare_as_trained
from clocs_core.plan.compatibility import fit_channels
from clocs_core.plan.data import (
    Chosen,
    DataPlan,
    default_tables,
    framing_of,
    inherit_data,
    refuse_idle_constant,
    settle,
)
from clocs_core.plan.layers import Assignment, Layers, as_assignments
from clocs_core.plan.scale import Scale
from clocs_core.plan.target import Parts, Target, known_channels, warn_of_signals, warn_of_split
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.settings.options import plain
from clocs_core.settings.sections import DataSettings
from clocs_core.settings.toml_file import Tables
from clocs_core.train.normalise import normaliser
from clocs_core.train.ranks import Group


@attrs.frozen(eq=False)
class Representations:
    """Embeddings of the frames of a cohort, row by row."""

    rows: Rows
    cohort: Cohort

    def __len__(self) -> int:
        return len(self.rows)

    def channel_name(self, row: int) -> str:
        """Return the channel of a row, or "all"."""
        number = self.rows.channel[row]
        return "all" if number == TOGETHER else self.rows.channels[number]

    def part(self, patient: int) -> Part:
        """Return the part of a patient, given by number."""
        return self.cohort.split.parts[self.rows.patients[patient]]


def choose_recordings(
    card: EncoderCard, catalogue: Catalogue, dataset: str, given: Tables, assignments: Sequence[str | Assignment] = ()
) -> Target:
    """Choose recordings of a data set for the encoder of a run. `given` are the tables [data] and [dataset] of flags.

    Later settings win: the data set's own, the run's, flags, `-o`. On its own data set, all settings of the run apply,
    so that its test patients stay test patients; else its normalisation, its data folder, and its channels if the data
    set has them. Raises SettingsError where the encoder cannot read these recordings.
    """
    offer = catalogue.datasets.get(dataset).offer
    named = as_assignments(assignments)
    layers = Layers({}, default_tables(offer), _tables(card, offer, given, named), named)
    layers = layers.checked({"data": DataSettings, "dataset": offer.options, "framing": Framing})
    framing = layers.table("framing", Framing)
    if framing.frame_samples != card.frame_samples:
        raise SettingsError(
            f"The encoder reads frames of {card.frame_samples} samples, got frame_samples = {framing.frame_samples}; "
            "leave it out, or pre-train on frames of that length."
        )
    data = layers.table("data", DataSettings)
    if card.input_channels > 1:
        data = known_channels(card, offer, data)
    data, task = settle(offer, data)
    refuse_idle_constant(data, named)
    if data.normalise == "constant" and data.constant is None:
        raise SettingsError(
            f"The encoder was trained with normalise={card.normalise} and has no constant to divide by; give one with "
            "`constant=X`, or leave out `normalise`."
        )
    own = dataset == card.dataset
    names = card.run_channels if own else ()
    recordings = DataPlan(Chosen(offer, layers.table("dataset", offer.options)), data, task, names)
    # A framing that the user gives is kept to, and so is that of another data set with a time scale of its own.
    is_default = plain(framing) == _tables_of_run(card, offer)["framing"]
    keeps_time = is_default and (own or not offer.has_time_scale) and follows_rate(card, framing)
    return Target(recordings, framing, own, keeps_time)


def _tables(card: EncoderCard, offer: Dataset, given: Tables, named: Sequence[Assignment]) -> Tables:
    made = _tables_of_run(card, offer)
    made["data"] = inherit_data(made["data"], given.get("data", {}), named)
    made["dataset"] |= given.get("dataset", {})
    return made


def _tables_of_run(card: EncoderCard, offer: Dataset) -> Tables:
    run = card.settings
    if offer.name == card.dataset:
        read = {**run.get("data", {}), "channels": list(card.channels)}  # not the channels of the run's other encoders
        return {"data": read, "dataset": dict(run.get("dataset", {})), "framing": plain(card.framing)}
    data: dict[str, object] = {"data_root": run.get("data", {}).get("data_root", "none")}
    data |= {"normalise": card.normalise, "constant": card.constant or "none"}
    has_all = set(card.channels) <= set(offer.channels)
    if has_all or (card.input_channels > 1 and not offer.channels):  # else the files name them, or it is refused
        data["channels"] = list(card.channels)
    framing = attrs.evolve(framing_of(offer, 1), frame_samples=card.frame_samples)
    framing = attrs.evolve(framing, band_pass=card.framing.band_pass, notch=card.framing.notch)
    return {"data": data, "dataset": {}, "framing": plain(framing)}


def get_recordings(card: EncoderCard, target: Target, workers: int, show: Display) -> Cohort:
    """Find, divide and prepare the recordings, and warn of anything that makes their embeddings unreliable."""
    show.stage("preparing recordings")
    asked = target.recordings

    def prepare(framing: Framing) -> Cohort:
        return get_cohort(asked, framing, framing, workers, show.tick)

    cohort = prepare_as_trained(card, target, prepare, lambda one: one.evaluate, show)
    drops = DropReport.of(cohort.listing.drops) + cohort.evaluate.drops
    if drops.counts:
        show.say(drops.sentence())
    if card.input_channels > 1:  # checked here, because some data sets name channels only in their files
        named = fit_channels(card, cohort.channels, cohort.channels, f"Data set {asked.name!r}")
        cohort = attrs.evolve(cohort, channels=named)
    warn_of_split(card, target, cohort.split.hash, show)
    warn_of_signals(card, target, show)
    if warning := _scale_of(card).warning(asked.data, cohort.evaluate.unit):
        show.warn(warning)
    if card.count > 1:
        whose = f", that of {', '.join(card.channels)}," if card.others else ""
        show.say(f"the run trained {card.count} encoders; the first{whose} is used, as in its evaluation")
    return cohort


def _scale_of(card: EncoderCard) -> Scale:
    return Scale(card.normalise, card.constant, card.unit)


@attrs.frozen
class Wanted:
    """The patients to embed: those of a part, and `also` others."""

    part: Parts = "all"
    also: frozenset[str] = frozenset()

    def patients(self, cohort: Cohort) -> frozenset[str]:
        """Return these patients of a cohort."""
        parts = PARTS if self.part == "all" else (self.part,)
        return self.also.union(*(cohort.split.patients(one) for one in parts))


def embed_recordings(
    loaded: LoadedEncoder,
    target: Target,
    cohort: Cohort,
    wanted: Wanted,
    device: torch.device,
    show: Display,
    group: Group | None = None,
) -> Representations:
    """Embed every usable frame of some patients, in eval mode.

    group: processes that share the work. Each gets all embeddings.
    """
    show.stage("embedding")
    data = _scale_of(loaded.card).settings(target.recordings.data, cohort.evaluate.unit)
    network = AsTrained(loaded.encoder, normaliser(data.normalise, data.constant))
    frames = ChosenFrames(cohort.evaluate, cohort.labels, cohort.task, cohort.channels, wanted.patients(cohort))
    rows = run_on_frames(network, loaded.card, frames, device, show.tick, group)
    if not len(rows):
        raise DataError(
            f"No recording of the {wanted.part} patients has a frame of {loaded.card.frame_samples} samples that can "
            "be used."
        )
    return Representations(rows, cohort)


def name_rows(found: Representations) -> NamedRows:
    """Return the rows with names instead of numbers, in the form of the file."""
    rows, features = found.rows, found.rows.features
    known, place = np.unique(features.label, axis=0, return_inverse=True)
    task = found.cohort.task
    labels = [kind_of(task).row_in_words(label, task, none="") for label in known]
    parts = np.array([found.part(number) for number in range(len(rows.patients))], dtype=np.str_)
    return NamedRows(
        embedding=features.embedding,
        **rows.columns(),
        part=parts[features.patient],
        label=np.array(labels, dtype=np.str_)[place.reshape(-1)],
    )


def embed_files(
    loaded: LoadedEncoder, paths: Sequence[Path], unsaid: Unsaid, device: torch.device, show: Display
) -> NamedRows:
    """Embed every usable frame of files, in eval mode. Each file is one recording, and counts as one patient."""
    rows = run_on_files(loaded.encoder, loaded.card, paths, unsaid, device, show, "embedding")
    none = np.full(len(rows), "")
    return NamedRows(embedding=rows.features.embedding, **rows.columns(), part=none, label=none)
