"""The story of `clocs embed` on one page: open a run's encoder, find recordings, embed every frame, name every row.

The recordings may be of another data set than the run's, or files of the user's own. What the encoder fixes stays as
in the run: the length of a frame, the normalisation, and, where it reads several channels at once, these channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.embeddings import NamedRows
from clocs_core.artifacts.encoder import LoadedEncoder
from clocs_core.artifacts.split import PARTS
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import TOGETHER, Framing, Part
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.data.store import fill_store, list_instances
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluation.features import Features, embed, name_label
from clocs_core.inference.network import AsTrained, outputs_of
from clocs_core.inference.signals import Unsaid, name_files, read_own_frames
from clocs_core.plan.compatibility import fit_channels
from clocs_core.plan.data import Chosen, Recordings, default_tables, inherit_data, settle
from clocs_core.plan.layers import Assignment, Layers, split_assignment
from clocs_core.plan.target import Parts, Target, known_channels, warn_of_signals, warn_of_split
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.settings.options import plain
from clocs_core.settings.sections import DataSettings, Tables


@attrs.frozen(eq=False)
class Representations:
    """Embeddings row by row: a frame of one channel, or of all channels where the encoder reads them at once.

    features: numbers of patients and records count along `patients` and `records`.
    channel: number of the channel among `channels`, or TOGETHER. frame: row of the prepared frames.
    """

    features: Features
    channel: NDArray[np.int64]  # (n,)
    frame: NDArray[np.int64]  # (n,)
    patients: tuple[str, ...]
    records: tuple[str, ...]
    channels: tuple[str, ...]
    cohort: Cohort

    def __len__(self) -> int:
        return len(self.features)

    def start(self, row: int) -> int:
        """The first source sample of a row's frame."""
        return int(self.cohort.evaluate.start[self.frame[row]])

    def channel_name(self, row: int) -> str:
        """The channel of a row, or "all"."""
        number = self.channel[row]
        return "all" if number == TOGETHER else self.channels[number]

    def part(self, patient: int) -> Part:
        """The part that a patient, by number, belongs to."""
        return self.cohort.split.parts[self.patients[patient]]


# ----------------------------------------------------------------------------------------------------- which recordings


def choose_recordings(
    card: EncoderCard, catalogue: Catalogue, dataset: str, given: Tables, assignments: Sequence[str] = ()
) -> Target:
    """The recordings of a data set for the encoder of a run. `given` are [data] and [dataset] as flags fill them.

    Later settings win: the data set's own, the run's (all of them on its own data set, so that its test patients stay
    test patients; else its normalisation, its data folder, and its channels if the data set has them), flags, `-o`.
    Raises SettingsError where the encoder cannot read what was asked for.
    """
    offer = catalogue.datasets.get(dataset).offer
    named = [split_assignment(text) for text in assignments]
    layers = Layers({}, default_tables(offer), _tables(card, offer, given, named), named)
    layers.refuse_unknown({"data": DataSettings, "dataset": offer.options, "framing": Framing})
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
    own = dataset == card.dataset
    names = card.run_channels if own else ()
    return Target(Recordings(Chosen(offer, layers.table("dataset", offer.options)), data, task, names), framing, own)


def _tables(card: EncoderCard, offer: Dataset, given: Tables, named: Sequence[Assignment]) -> Tables:
    made = _tables_of_run(card, offer)
    made["data"] = inherit_data(made["data"], given.get("data", {}), named)
    made["dataset"] |= given.get("dataset", {})
    return made


def _tables_of_run(card: EncoderCard, offer: Dataset) -> Tables:
    run = card.settings
    if offer.name == card.dataset:
        read = {**run.get("data", {}), "channels": list(card.channels)}  # not those of the run's other encoders
        return {"data": read, "dataset": dict(run.get("dataset", {})), "framing": plain(card.framing)}
    data: dict[str, object] = {"normalise": card.normalise, "data_root": run.get("data", {}).get("data_root", "none")}
    has_all = set(card.channels) <= set(offer.channels)
    if has_all or (card.input_channels > 1 and not offer.channels):  # else the files will tell, or it is refused
        data["channels"] = list(card.channels)
    framing = attrs.evolve(offer.framing(1), frame_samples=card.frame_samples)
    return {"data": data, "dataset": {}, "framing": plain(framing)}


def get_recordings(card: EncoderCard, target: Target, workers: int, show: Display) -> Cohort:
    """Find, divide and prepare the recordings, and warn of what would make their representations mean little."""
    show.stage("preparing recordings")
    cohort = get_cohort(target.recordings, target.framing, target.framing, workers, show.tick)
    asked = target.recordings
    if card.input_channels > 1:  # where only the files know their channels, it is found out here
        named = fit_channels(card, cohort.channels, cohort.channels, f"Data set {asked.name!r}")
        cohort = attrs.evolve(cohort, channels=named)
    warn_of_split(card, target, cohort.split.hash, show)
    warn_of_signals(card, target, show)
    if asked.data.normalise == "none" and cohort.evaluate.unit != card.unit:
        show.warn(f"the encoder was trained on signals in {card.unit}, and these are in {cohort.evaluate.unit}")
    if card.count > 1:
        whose = f", that of {', '.join(card.channels)}," if card.others else ""
        show.say(f"the run trained {card.count} encoders; the first{whose} is used, as in its evaluation")
    return cohort


# --------------------------------------------------------------------------------------------------------------- embed


def embed_recordings(
    loaded: LoadedEncoder,
    cohort: Cohort,
    part: Parts,
    normalise: bool,
    device: torch.device,
    show: Display,
    also: frozenset[str] = frozenset(),
) -> Representations:
    """Embed every usable frame of a part, in eval mode. also: patients of other parts to embed beside it."""
    show.stage("embedding")
    store = fill_store(cohort.evaluate, cohort.labels, cohort.task, cohort.channels, device)
    parts = PARTS if part == "all" else (part,)
    patients = also.union(*(cohort.split.patients(one) for one in parts))
    together = loaded.card.input_channels > 1
    instances, _ = list_instances(cohort.evaluate, patients, cohort.channels, 1, together, device)
    if not len(instances):
        raise DataError(
            f"No recording of the {part} patients has a frame of {loaded.card.frame_samples} samples that can be used."
        )
    features = embed(loaded.encoder, store, instances, normalise, show.tick)
    channel = instances.channel[:, 0].cpu().numpy()
    return Representations(
        features=features,
        channel=np.full(len(features), TOGETHER, dtype=np.int64) if together else channel,
        frame=instances.frame[:, 0].cpu().numpy(),
        patients=store.patients,
        records=store.records,
        channels=cohort.channels,
        cohort=cohort,
    )


def name_rows(found: Representations) -> NamedRows:
    """The same with names instead of numbers, as the file has them."""
    rows = found.features

    def column(names: Callable[[int], str], numbers: NDArray[np.int64]) -> NDArray[np.str_]:
        """Names by number: each is made once, not once per row."""
        known, place = np.unique(numbers, return_inverse=True)
        return np.array([names(int(one)) for one in known], dtype=np.str_)[place]

    known, place = np.unique(rows.label, axis=0, return_inverse=True)
    labels = [name_label(label, found.cohort.task.classes, none="") for label in known]
    return NamedRows(
        embedding=rows.embedding,
        patient=column(found.patients.__getitem__, rows.patient),
        record=column(found.records.__getitem__, rows.record),
        channel=column(lambda n: "all" if n == TOGETHER else found.channels[n], found.channel),
        start=found.cohort.evaluate.start[found.frame],
        part=column(found.part, rows.patient),
        label=np.array(labels, dtype=np.str_)[place.reshape(-1)],
    )


# -------------------------------------------------------------------------------------------------- files of one's own


def embed_files(
    loaded: LoadedEncoder, paths: Sequence[Path], unsaid: Unsaid, device: torch.device, show: Display
) -> NamedRows:
    """Embed every usable frame of files with one recording each, of a patient of its own each, in eval mode."""
    card, parts = loaded.card, []
    for path, name in zip(paths, name_files(paths), strict=True):
        show.stage(f"embedding {name}")
        rows = read_own_frames(card, path, unsaid, show.say)
        z = outputs_of(AsTrained(loaded.encoder, card, rows.factor), rows.signal, device, show.tick)
        channel = np.array(["all"] if card.input_channels > 1 else rows.channels, dtype=np.str_)[rows.channel]
        parts.append((z, np.full(len(z), name), channel, rows.start))
    z, record, channel, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    none = np.full(len(z), "")
    return NamedRows(z, record, record, channel, start, none, none)
