"""The encoder to evaluate: read from the file of a run, or untrained."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import attrs
import torch
from torch import Tensor

from clocs_core.artifacts.documents import read_text
from clocs_core.artifacts.encoder import load_encoder
from clocs_core.artifacts.split import Split, from_json
from clocs_core.contracts.offers import Encoder
from clocs_core.plan.data import Chosen
from clocs_core.plan.scale import Scale
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure
from clocs_core.settings.toml_file import Tables


@attrs.frozen(eq=False, kw_only=True)
class Pretrained:
    """An encoder with its description. An untrained one has no weights, and its `init` is "random".

    init: its name in scores, the method that trained it. dataset: the data set it was trained on.
    frame_rate: samples of a frame per second, in Hz; None where its frames differ in it.
    average: it reads means of so many adjacent samples.
    unit: of the signals that it reads; `constant` is in it.
    channels: the channels it was trained on, in order; `inputs` of them are read at once. run_channels: those of all
    encoders of its run.
    tables: the settings of its run. split: the split of its run, if the run folder exists.
    """

    init: str
    encoder: Chosen[Encoder]
    inputs: int = 1
    frame_samples: int | None = None
    frame_rate: float | None = None
    average: int = 1
    embedding_dim: int
    channels: tuple[str, ...] = ()
    run_channels: tuple[str, ...] = ()
    unit: str = ""
    normalise: str = ""
    constant: float | None = None
    weights: dict[str, Tensor] = attrs.field(factory=dict)
    dataset: str = ""
    tables: Tables = attrs.field(factory=dict)
    split: Split | None = None
    split_hash: str = ""
    sha256: str = ""

    @property
    def scale(self) -> Scale:
        """How it scales its signals."""
        return Scale(self.normalise, self.constant, self.unit)

    @property
    def together(self) -> tuple[str, ...]:
        """The channels that it reads at once, in order; empty where it reads one at a time."""
        return self.channels if self.inputs > 1 else ()


def open_encoder(source: Path | bytes, catalogue: Catalogue) -> Pretrained:
    """Open the encoder of a run folder, of an encoder file or of its bytes; among several, the evaluated one.

    Raises RunFolderError where there is none that this version can read, and UnknownName where the plugin that offers
    its architecture is not installed.
    """
    loaded = load_encoder(source, catalogue, torch.device("cpu"))
    card = loaded.card
    offered = catalogue.encoders.get(card.encoder)
    beside = None if loaded.path is None else loaded.path.with_name("split.json")
    whole = source if isinstance(source, bytes) else loaded.path.read_bytes() if loaded.path is not None else b""
    return Pretrained(
        init=card.method,
        encoder=Chosen(offered.offer, structure(offered.offer.options, card.options, "encoder"), offered.owner),
        inputs=card.input_channels,
        frame_samples=card.frame_samples,
        frame_rate=card.frame_rate,
        average=card.average,
        embedding_dim=card.embedding_dim,
        channels=card.channels,
        run_channels=card.run_channels,
        unit=card.unit,
        normalise=card.normalise,
        constant=card.constant,
        weights=loaded.encoder.state_dict(),
        dataset=card.dataset,
        tables=card.settings,
        split=from_json(read_text(beside)) if beside is not None and beside.exists() else None,
        split_hash=card.split_hash,
        sha256=sha256(whole).hexdigest(),
    )
