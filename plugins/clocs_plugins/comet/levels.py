"""COMET: Wang, Han, Yan and Zhang, "Contrast Everything: A Hierarchical Contrastive Framework for Medical Time-Series",
NeurIPS 2023.

A sample is a segment, a trial is a recording, an observation is a position of the encoder's sequence. A and B are the
two copies of the samples, s(u, v) = cos(u, v) / tau. Two levels compare a row with its copy, as SimCLR does:

    observation  the rows are the positions of a sample; the others are all positions of both copies of this sample
    sample       the rows are the samples of the batch; the others are all samples of both copies
                 - log  exp s(a_i, b_i) / sum of exp s(a_i, x) over all other rows x of both copies

Two levels compare samples i != k of the same trial or the same patient, as equation 3 of CLOCS does:

    trial, patient   - mean over such i, k of  log softmax over j of s(a_i, b_j), at j = k

Each is the mean of both directions, A to B and B to A. The loss is the weighted sum of the levels. In the authors' code
the first two levels use products in place of cosines, and every position of a sample counts at the other levels. Here a
sample is its embedding, since embeddings are what a run evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core import Encode, Views


class Comet(nn.Module):
    """The objective; its only state is the projector, if any, which the levels other than observation use."""

    def __init__(self, weights: Mapping[str, float], temperature: float, projector: nn.Module | None) -> None:
        super().__init__()
        if not any(weights.values()):
            raise ValueError(f"one level at least must have a weight above 0, and {', '.join(weights)} have none")
        self.weights, self.temperature, self.projector = dict(weights), temperature, projector

    def forward(self, encode: Encode, views: Views) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of one batch, and each level's own. Raise ValueError for an odd number of views."""
        if len(views.signal) % 2:
            raise ValueError(
                f"the objective `comet` got {len(views.signal)} views, expected two copies of each segment. Use it "
                "with the views `segment-copies`, or others whose second half are copies of the first."
            )
        segments = len(views.signal) // 2
        ids = {"trial": views.batch.record.repeat(segments), "patient": views.batch.patient.repeat(segments)}
        levels: dict[str, Tensor] = {}
        z, sequence = self._encode(encode, views.signal)
        if z is not None:
            a, b = self._copies(z if self.projector is None else self.projector(z))  # (sample, dim)
            if self.weights["sample"]:
                levels["sample"] = copy_loss(a, b, self.temperature)
            levels |= {name: group_loss(a, b, of, self.temperature) for name, of in ids.items() if self.weights[name]}
        if sequence is not None:
            a, b = self._copies(sequence)  # (sample, time, width)
            levels["observation"] = copy_loss(a, b, self.temperature)
        return torch.stack([self.weights[name] * one for name, one in levels.items()]).sum(), levels

    def _encode(self, encode: Encode, signal: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return embeddings (view, batch, dim) and sequences (view, batch, time, width); None for what has no weight.

        In one pass where both are wanted: two would draw two dropout masks, and count the batch twice in BatchNorm.
        """
        of_positions = self.weights["observation"] > 0
        of_segments = any(weight for name, weight in self.weights.items() if name != "observation")
        if of_positions and of_segments:
            return encode.both(signal)
        return (encode(signal), None) if of_segments else (None, encode.sequence(signal))

    @staticmethod
    def _copies(z: Tensor) -> tuple[Tensor, Tensor]:
        """Divide features (view, batch, ...) into the two copies of all samples, with directions of length 1."""
        wide = z.to(torch.promote_types(z.dtype, torch.float32))
        a, b = F.normalize(wide, dim=-1).chunk(2)
        return a.flatten(0, 1), b.flatten(0, 1)


def copy_loss(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """Compute the loss of rows that find their copy: a and b (..., row, dim), of length 1."""
    rows = a.shape[-2]
    both = torch.cat([a, b], -2)  # (..., 2 row, dim)
    similarity = both @ both.mT / temperature  # (..., 2 row, 2 row)
    itself = torch.eye(2 * rows, dtype=torch.bool, device=a.device)
    repulsion = similarity.masked_fill(itself, -torch.inf).logsumexp(-1)  # (..., 2 row)
    return repulsion.mean() - similarity.diagonal(rows, -2, -1).mean()


def group_loss(a: Tensor, b: Tensor, group: Tensor, temperature: float) -> Tensor:
    """Compute the loss of samples that find others of their group: a and b (sample, dim), group (sample,).

    It is 0 where no group has two samples.
    """
    similarity = a @ b.mT / temperature  # (sample, sample)
    itself = torch.eye(len(group), dtype=torch.bool, device=group.device)
    others = ((group[:, None] == group) & ~itself).to(similarity.dtype)  # (sample, sample)
    found = similarity.log_softmax(1) + similarity.log_softmax(0)  # from a to b, and from b to a: others is symmetric
    return -(found * others).sum() / (2 * others.sum()).clamp(min=1)
