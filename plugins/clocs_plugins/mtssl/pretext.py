"""The pretext tasks of MT-SSL, after the CLOCS paper (ICML 2021), appendix C.

"These tasks comprise binary classification where the network is asked to discriminate between ECG instances and
their perturbed counterpart." With z_0 the embedding of a frame, z_j that of its j-th perturbation and s_j the j-th
head, whose sigmoid is the probability that perturbation j was applied, the loss is

    mean over tasks j and frames of -(log(1 - sigmoid(s_j(z_0))) + log(sigmoid(s_j(z_j)))) / 2

In Sarkar and Etemad (2020) each head also sees the signals of all the other tasks, the tasks have weights, one more
task recognises the original, and a head has two hidden layers. Here layer 4 of the encoder is the first of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks, Views


class Pretext(nn.Module):
    """The objective: a head for each perturbation, by its name. hidden: hidden units of each head; 0 for none.

    Checkpoints name the heads heads.is-gaussian and so on. The prefix allows every name of a perturbation: a
    ModuleDict refuses the names of its own methods, such as "values".
    """

    def __init__(self, perturbations: tuple[str, ...], embedding_dim: int, hidden: int = 128) -> None:
        super().__init__()
        if not perturbations:
            raise ValueError("there is no perturbation to recognise; name some with `perturbations=...`")
        twice = sorted({name for name in perturbations if perturbations.count(name) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)} is named twice among the perturbations; each is one task, name it once"
            )
        self.heads = nn.ModuleDict({f"is-{name}": _head(embedding_dim, hidden) for name in perturbations})

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: Ranks | None = None) -> Tensor:
        """Compute the loss of one batch. Raise ValueError unless the views are the original and one for each head.

        ranks: the processes that share the batch.
        """
        tasks = len(self.heads)
        if views.perturb != "one each" or len(views.signal) != 1 + tasks:
            raise ValueError(
                f"the objective `pretext` got {len(views.signal)} views, of which {views.perturb!r} are perturbed; "
                f"expected {1 + tasks}, 'one each': the original and one for each of {tasks} perturbations. Use it "
                "with the views `original`."
            )
        z = encode(views.signal)  # (view, batch, dim)
        loss = pretext_loss(self._logits(z))
        return loss if ranks is None else ranks.share_of_mean(loss)

    def _logits(self, z: Tensor) -> Tensor:
        """Give embeddings (view, batch, dim) of the original and of each perturbation to their heads.

        Returns (task, 2, batch).
        """
        return self.at_once(z) if z.is_cuda else self.one_by_one(z)

    def one_by_one(self, z: Tensor) -> Tensor:
        """Compute the logits head by head."""
        heads = enumerate(self.heads.values(), start=1)
        each = [head(torch.stack((z[0], z[view]))) for view, head in heads]  # (2, batch, 1)
        return torch.stack(each).squeeze(-1)  # (task, 2, batch)

    def at_once(self, z: Tensor) -> Tensor:
        """Compute the logits of all heads in one product per layer: a step of six has 150 launches less on a GPU."""
        pairs = torch.stack((z[:1].expand_as(z[1:]), z[1:]), dim=1)  # (task, 2, batch, dim)
        logits = _heads_at_once(list(self.heads.values()), pairs.flatten(1, 2))  # (task, 2 * batch)
        return logits.view(pairs.shape[:3])


def _heads_at_once(heads: Sequence[nn.Module], features: Tensor) -> Tensor:
    """Compute logits (task, n) of features (task, n, dim), each by the head of its task."""
    for layers in zip(*(head if isinstance(head, nn.Sequential) else [head] for head in heads), strict=True):
        if isinstance(layers[0], nn.Linear):
            weight = torch.stack([layer.weight for layer in layers])  # (task, after, before)
            bias = torch.stack([layer.bias for layer in layers]).unsqueeze(1)  # (task, 1, after)
            features = torch.baddbmm(bias, features, weight.mT)  # (task, n, after)
        else:
            features = layers[0](features)
    return features.squeeze(-1)


def pretext_loss(logits: Tensor) -> Tensor:
    """Compute the mean binary cross-entropy of logits (task, 2, batch), of original and of perturbed frames.

    Computed in float32, or in float64 for float64 logits, also under autocast.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    original, perturbed = logits.unbind(1)  # (task, batch), (task, batch)
    return -(F.logsigmoid(-original) + F.logsigmoid(perturbed)).mean() / 2


def _head(embedding_dim: int, hidden: int) -> nn.Module:
    if hidden == 0:
        return nn.Linear(embedding_dim, 1)
    return nn.Sequential(nn.Linear(embedding_dim, hidden), nn.ReLU(), nn.Linear(hidden, 1))
