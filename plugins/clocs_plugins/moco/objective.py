"""Momentum contrast: He, Fan, Wu, Xie and Girshick, CVPR 2020, with patients.

With q the encoder and its projector, k a slow copy of both, and all vectors scaled to length 1, the loss of views
x_1, …, x_V of an instance of patient p is

    mean over ordered pairs of views a != b of  - log  e(q(x_a), k(x_b)) / (e(q(x_a), k(x_b)) + sum e(q(x_a), n))

where e(u, v) = exp(u . v / tau) and n runs over the queue without the keys of patient p. The queue has the keys of
earlier batches and begins with random directions of no patient, as in the authors' code. After each training batch its
keys replace the oldest ones. The copy follows by k <- m k + (1 - m) q after each step.

He et al. contrast one direction of two views, and shuffle batches between GPUs, so that BatchNorm does not tell which
key is of the same batch. Here both directions count, as in MoCo v3 (Chen, Xie and He, ICCV 2021). Nothing is shuffled.
"""

from __future__ import annotations

import copy
from itertools import permutations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core import Encode, Ranks, Views

NOBODY = torch.iinfo(torch.int64).min
"""The patient of a random key; ids of patients are not negative."""


class Moco(nn.Module):
    """The objective: the network of the keys, and a queue of keys with their patients.

    encoder: copied; no reference to it is kept. projector: becomes a part of the objective, and is copied too.
    """

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module | None,
        embedding_dim: int,
        *,
        queue: int,
        momentum: float,
        temperature: float,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.momentum, self.temperature, self.bf16 = momentum, temperature, bf16
        self.projector = projector if projector is not None else nn.Identity()
        self.slow = nn.ModuleList([copy.deepcopy(encoder), copy.deepcopy(self.projector)]).requires_grad_(False)
        with torch.no_grad():
            width = copy.deepcopy(self.projector).eval()(torch.zeros(1, embedding_dim)).shape[-1]
        self.register_buffer("keys", F.normalize(torch.randn(queue, width), dim=-1))
        self.register_buffer("patients", torch.full((queue,), NOBODY))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.int64))
        self.keys: Tensor  # (queue, width)
        self.patients: Tensor  # (queue,)
        self.oldest: Tensor  # (): the place of the oldest key

    def forward(self, encode: Encode, views: Views, ranks: Ranks | None = None) -> Tensor:
        """Compute the loss of one batch. In training, its keys enter the queue.

        ranks: the processes that share the batch. Each makes the keys of its instances, and the queue of all is one.
        """
        _refuse_bad_views(views)
        patient = views.batch.patient  # (batch,)
        query = self._directions(self.projector(encode(views.signal)))  # (view, batch, width)
        with torch.no_grad():
            with torch.autocast(views.signal.device.type, torch.bfloat16, enabled=self.bf16):  # as the encoder
                z = self.slow[0](views.signal.flatten(0, 1)).unflatten(0, views.signal.shape[:2])
            key = self._directions(self.slow[1](z))  # (view, batch, width)
        # The queue changes below, and the gradient needs the one that was compared: hence the copy.
        against = query @ self.keys.clone().mT / self.temperature  # (view, batch, queue)
        against = against.masked_fill(patient[:, None] == self.patients, -torch.inf)
        repulsion = against.logsumexp(-1)  # (view, batch)
        ordered = [(a, b) for pair in views.pairs for a, b in (pair, pair[::-1])]
        losses = [
            (torch.logaddexp(attraction, repulsion[a]) - attraction).mean()
            for a, b in ordered or permutations(range(len(query)), 2)
            for attraction in [(query[a] * key[b]).sum(-1) / self.temperature]  # (batch,)
        ]
        loss = torch.stack(losses).mean()
        if self.training:
            whole, patient = (key, patient) if ranks is None else (ranks.gather(key, 1), ranks.patients(patient))
            self._enqueue(whole.flatten(0, 1), patient.repeat(len(whole)))
        return loss if ranks is None else ranks.share_of_mean(loss)

    def after_step(self, encoder: nn.Module) -> None:
        """Move the network of the keys a little towards encoder and projector, in place.

        The running statistics of BatchNorm come from its own passes.
        """
        followed: list[Tensor] = [*encoder.parameters(), *self.projector.parameters()]
        torch._foreach_lerp_(list(self.slow.parameters()), followed, 1 - self.momentum)

    def _directions(self, z: Tensor) -> Tensor:
        """Scale vectors to length 1, in the precision of the queue."""
        return F.normalize(z.to(self.keys.dtype), dim=-1)

    @torch.no_grad()
    def _enqueue(self, key: Tensor, patient: Tensor) -> None:
        """Put keys (n, width) and their patients (n,) at the place of the oldest; of too many, the last ones."""
        size = len(self.keys)
        key, patient = key[-size:], patient[-size:]
        place = (self.oldest + torch.arange(len(key), device=key.device)) % size
        self.keys.index_copy_(0, place, key)
        self.patients.index_copy_(0, place, patient)
        self.oldest.add_(len(key)).remainder_(size)


def _refuse_bad_views(views: Views) -> None:
    if len(views.signal) < 2:
        raise ValueError(
            f"the objective `moco` got {len(views.signal)} view, expected two or more: the key of one is told by "
            "another. Use it with a view generator that makes several."
        )
    if any(views.encoder_of_view):
        raise ValueError(
            f"the objective `moco` got views of several encoders, {views.encoder_of_view}, but its keys follow the "
            "first one only. Use it with views that one encoder reads."
        )
