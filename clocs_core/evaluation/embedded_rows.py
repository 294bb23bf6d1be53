"""The rows that a protocol learns from and predicts: labelled frames or recordings, embedded once per init."""

from __future__ import annotations

import attrs
import torch
from torch import nn

from clocs_core.contracts.records import Part
from clocs_core.contracts.scores import RANDOM
from clocs_core.data.store import Instances
from clocs_core.evaluation.features import Features, embed, pool_records
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import Stopwatch, Tick
from clocs_core.train.build import build_encoder
from clocs_core.train.ranks import Group


@attrs.frozen(eq=False)
class EmbeddedRows:
    """The rows of an evaluation, with the embeddings that its classifiers share.

    parts: takes the time of embedding. group: processes that share the work of encoders.
    """

    plan: EvaluationPlan
    frames: LabelledFrames
    device: torch.device
    tick: Tick
    parts: Stopwatch
    group: Group | None = None
    _embedded: dict[tuple[str, Part], Features] = attrs.field(factory=dict, init=False)

    @property
    def scored_part(self) -> Part:
        """The part whose rows are predicted."""
        return self.plan.scoring.part

    def encoder(self, init: str) -> nn.Module:
        """Build the encoder of an init."""
        samples, seed = self.plan.framing.frame_samples, self.plan.settings.seed
        return build_encoder(self.plan.encoder, samples, seed, init != RANDOM, self.device)

    def whole(self, init: str) -> Features:
        """Embed every frame of the scored part, labelled or not."""
        part = self.scored_part
        if (init, part) not in self._embedded:
            self._embedded[init, part] = self._embed(init, self.frames.whole[part])
        return self._embedded[init, part]

    def labelled(self, part: Part) -> Features:
        """Return label, patient and record of the labelled rows of a part, without embeddings."""
        return self._rows(self.frames.rows[part])

    def features(self, init: str, part: Part) -> Features:
        """Embed the labelled rows of a part."""
        if part == self.scored_part:
            return self._rows(self.whole(init).take(self.frames.labelled[part]))
        if (init, part) not in self._embedded:
            self._embedded[init, part] = self._embed(init, self.frames.parts[part])
        return self._rows(self._embedded[init, part])

    def validation(self, init: str) -> Features | None:
        """Embed the labelled validation rows, to choose thresholds on; None without any, and for numbers."""
        needed = self.frames.task.classes and len(self.frames.parts["validation"])
        return self.features(init, "validation") if needed else None

    def _rows(self, rows: Features) -> Features:
        """Return the rows that the protocol works on: frames, or recordings."""
        return pool_records(rows) if self.plan.protocol.offer.rows == "record" else rows

    def _embed(self, init: str, instances: Instances) -> Features:
        with self.parts.part("embed"):
            encoder, frames = self.encoder(init), self.frames
            return embed(encoder, frames.store, instances, frames.normalise, self.tick, self.group)
