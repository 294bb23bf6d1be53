"""The story of `clocs embed` on one page: open a run's encoder, find recordings, embed every frame, name every row.

The recordings may be of another data set than the run's. What the encoder fixes stays as in the run: the length of a
frame, the normalisation, and, where it reads several channels at once, these channels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.data.material import Material, get_material
from clocs_core.data.records import Framing, Part
from clocs_core.data.splits import PARTS
from clocs_core.data.store import fill_store, list_instances
from clocs_core.errors import DataError, SettingsError
from clocs_core.evaluate.features import Features, embed
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.layers import Layers, split_assignment
from clocs_core.extend.offers import Dataset
from clocs_core.extend.recordings import Chosen, Recordings, default_tables, settle
from clocs_core.files import write_atomically
from clocs_core.options import plain
from clocs_core.progress import Display
from clocs_core.report.tables import name_label
from clocs_core.settings import DataSettings, Tables
from clocs_core.train.encoderfile import EncoderCard, LoadedEncoder

__all__ = [
    "Parts",
    "Representations",
    "Target",
    "choose_recordings",
    "embed_recordings",
    "get_recordings",
    "save_representations",
]

Parts: TypeAlias = Literal["train", "validation", "test", "all"]
"""One part of the patients, or all of them."""

TOGETHER = -1  # the channel of a row whose encoder reads all channels at once


@attrs.frozen
class Target:
    """The recordings that an encoder is to read, and how they are cut for it."""

    recordings: Recordings
    framing: Framing


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
    material: Material

    def __len__(self) -> int:
        return len(self.features)

    def start(self, row: int) -> int:
        """The first source sample of a row's frame."""
        return int(self.material.evaluate.start[self.frame[row]])

    def channel_name(self, row: int) -> str:
        """The channel of a row, or "all"."""
        number = self.channel[row]
        return "all" if number == TOGETHER else self.channels[number]

    def part(self, patient: int) -> Part:
        """The part that a patient, by number, belongs to."""
        return self.material.split.parts[self.patients[patient]]


# ----------------------------------------------------------------------------------------------------- which recordings


def choose_recordings(
    card: EncoderCard, catalogue: Catalogue, dataset: str, given: Mapping[str, object], assignments: Sequence[str] = ()
) -> Target:
    """The recordings of a data set for the encoder of a run. `given` is the table [data] as flags fill it.

    Later settings win: the data set's own, the run's (all of them on its own data set, so that its test patients stay
    test patients; else its normalisation, its data folder, and its channels if the data set has them), flags, `-o`.
    Raises SettingsError where the encoder cannot read what was asked for.
    """
    offer = catalogue.datasets.get(dataset).offer
    tables = _tables_of_run(card, offer)
    tables["data"] |= given
    if "data_root" in given and "root" not in given:
        tables["data"]["root"] = "none"  # the run's own folder is not what was asked for
    layers = Layers({}, default_tables(offer), tables, [split_assignment(text) for text in assignments])
    layers.refuse_unknown({"data": DataSettings, "dataset": offer.options, "framing": Framing})
    framing = layers.table("framing", Framing)
    if framing.frame_samples != card.frame_samples:
        raise SettingsError(
            f"The encoder reads frames of {card.frame_samples} samples, got frame_samples = {framing.frame_samples}; "
            "leave it out, or pre-train on frames of that length."
        )
    data, task = settle(offer, layers.table("data", DataSettings))
    _refuse_channels(card, data.channels, dataset)
    return Target(Recordings(Chosen(offer, layers.table("dataset", offer.options)), data, task), framing)


def _tables_of_run(card: EncoderCard, offer: Dataset) -> Tables:
    run = card.settings
    if offer.name == card.dataset:
        options = dict(run.get("dataset", {}))
        return {"data": dict(run.get("data", {})), "dataset": options, "framing": plain(card.evaluate_framing)}
    data: dict[str, object] = {"normalise": card.normalise, "data_root": run.get("data", {}).get("data_root", "none")}
    has_all = set(card.channels) <= set(offer.channels)
    if has_all or (card.input_channels > 1 and not offer.channels):  # else the files will tell, or it is refused
        data["channels"] = list(card.channels)
    framing = attrs.evolve(offer.framing(1), frame_samples=card.frame_samples)
    return {"data": data, "dataset": {}, "framing": plain(framing)}


def _refuse_channels(card: EncoderCard, channels: tuple[str, ...], dataset: str) -> None:
    """An encoder of several input channels knows them by their place: it needs the same ones in the same order."""
    if card.input_channels == 1 or channels == card.channels:
        return
    raise SettingsError(
        f"The encoder reads {', '.join(card.channels)} at once, in this order, and would be given "
        f"{', '.join(channels)} of {dataset!r}. Write `--leads {','.join(card.channels)}`; a data set that does not "
        "have them needs an encoder that reads one channel at a time."
    )


def get_recordings(card: EncoderCard, target: Target, workers: int, show: Display) -> Material:
    """Find, divide and prepare the recordings, and warn of what would make their representations mean little."""
    show.stage("preparing recordings")
    material = get_material(target.recordings, target.framing, target.framing, workers, show.tick)
    asked = target.recordings
    _refuse_channels(card, material.channels, asked.name)  # where only the files know them
    if asked.name == card.dataset and material.split.hash != card.split_hash:
        show.warn(
            "the patients are divided otherwise than in the run: those of the validation and test part here may have "
            "trained the encoder"
        )
    if asked.dataset.offer.modality != card.modality:
        found = asked.dataset.offer.modality
        show.warn(f"the encoder was trained on signals of kind {card.modality!r}, and {asked.name} has {found!r}")
    if asked.data.normalise == "none" and material.evaluate.unit != card.unit:
        show.warn(f"the encoder was trained on signals in {card.unit}, and these are in {material.evaluate.unit}")
    if card.count > 1:
        show.say(f"the run trained {card.count} encoders; the first is used, as in its evaluation")
    return material


# --------------------------------------------------------------------------------------------------------------- embed


def embed_recordings(
    loaded: LoadedEncoder,
    material: Material,
    part: Parts,
    normalise: bool,
    device: torch.device,
    show: Display,
    also: frozenset[str] = frozenset(),
) -> Representations:
    """Embed every usable frame of a part, in eval mode. also: patients of other parts to embed beside it."""
    show.stage("embedding")
    store = fill_store(material.evaluate, material.labels, material.task, material.channels, device)
    parts = PARTS if part == "all" else (part,)
    patients = also.union(*(material.split.patients(one) for one in parts))
    together = loaded.about.input_channels > 1
    instances, _ = list_instances(material.evaluate, patients, material.channels, 1, together, device)
    if not len(instances):
        raise DataError(
            f"No recording of the {part} patients has a frame of {loaded.about.frame_samples} samples that can be used."
        )
    features = embed(loaded.encoder, store, instances, normalise, show.tick)
    channel = instances.channel[:, 0].cpu().numpy()
    return Representations(
        features=features,
        channel=np.full(len(features), TOGETHER, dtype=np.int64) if together else channel,
        frame=instances.frame[:, 0].cpu().numpy(),
        patients=store.patients,
        records=store.records,
        channels=material.channels,
        material=material,
    )


def save_representations(found: Representations, about: Mapping[str, Any], path: Path) -> None:
    """Write one .npz file without pickles: `embedding` (n, dim) float32, and what each row is of.

    Arrays (n,): `patient`, `record`, `channel`, `part` and `label` by name ("" for no label), `start`, the first source
    sample of the frame. `about` is JSON: which encoder, which data set, how it was read.
    """
    rows, prepared = found.features, found.material.evaluate

    def column(names: Callable[[int], str], numbers: NDArray[np.int64]) -> NDArray[np.str_]:
        """Names by number: each is made once, not once per row."""
        known, place = np.unique(numbers, return_inverse=True)
        return np.array([names(int(one)) for one in known], dtype=np.str_)[place]

    known, place = np.unique(rows.label, axis=0, return_inverse=True)
    labels = [name_label(label, found.material.task.classes, none="") for label in known]
    arrays: dict[str, NDArray[Any]] = {
        "embedding": rows.embedding,
        "patient": column(found.patients.__getitem__, rows.patient),
        "record": column(found.records.__getitem__, rows.record),
        "channel": column(lambda n: "all" if n == TOGETHER else found.channels[n], found.channel),
        "start": prepared.start[found.frame],
        "part": column(found.part, rows.patient),
        "label": np.array(labels, dtype=np.str_)[place.reshape(-1)],
        "about": np.array(json.dumps(about, ensure_ascii=False)),
    }
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)  # not compressed: embeddings hardly shrink, and it takes 20 x longer
    write_atomically(path, buffer.getvalue())
