"""Give each process its share of a batch: its instances, or the embeddings of all of them.

An objective that knows of ranks gets the instances of its own process. Any other gets all of them: each process embeds
its own instances, and `GatheredEncode` joins the embeddings. Such an objective computes the loss of the whole batch in
every process, which is right, and as slow as with one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import attrs
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from clocs_core.contracts.batches import Batch, Encode, Views
from clocs_core.train.norms import SharedNorm
from clocs_core.train.ranks import Part


def own_views(views: Views, part: Part) -> Views:
    """Return the views of the own instances."""
    own = part.own
    batch = views.batch
    ids = {name: getattr(batch, name)[own] for name in ("signal", "patient", "record", "segment", "channel")}
    about = {name: column[own] for name, column in batch.about.items()}
    held = Batch(**ids, label=None if batch.label is None else batch.label[own], about=about)
    target = None if views.target is None else views.target[:, own]
    return attrs.evolve(views, signal=views.signal[:, own], batch=held, target=target)


@attrs.frozen(eq=False)
class GatheredEncode:
    """Embeds the own instances of the views that it gets, and joins the embeddings of all processes."""

    encode: Encode
    part: Part

    def __call__(self, signal: Tensor) -> Tensor:
        """Embed views (view, batch, channel, sample) as (view, batch, dim)."""
        part = self._part(signal)
        return part.gather_with_gradient(self.encode(signal[:, part.own]), 1)

    def sequence(self, signal: Tensor) -> Tensor:
        """Encode views (view, batch, channel, sample) as (view, batch, time, width)."""
        part = self._part(signal)
        return part.gather_with_gradient(self.encode.sequence(signal[:, part.own]), 1)

    def both(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        """Return embeddings and sequences."""
        part = self._part(signal)
        z, sequence = self.encode.both(signal[:, part.own])
        return part.gather_with_gradient(z, 1), part.gather_with_gradient(sequence, 1)

    def _part(self, signal: Tensor) -> Part:
        instances = signal.shape[1]
        return self.part if instances == self.part.whole else self.part.group.divide(instances)


def equal_share(loss: Tensor, components: Mapping[str, Tensor], part: Part) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Divide a loss that every process has whole, so that the shares of all add up to it."""
    count = part.group.count
    return loss / count, {name: value / count for name, value in components.items()}


@contextmanager
def resting_norms(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Keep BatchNorm from learning the statistics of what stands in for instances."""
    found = (module for network in networks for module in network.modules() if isinstance(module, _BatchNorm))
    resting = [module for module in found if module.training]
    _rest(resting, True)
    try:
        yield
    finally:
        _rest(resting, False)


def _rest(norms: Iterable[_BatchNorm], rests: bool) -> None:
    """Let BatchNorm use its running statistics; one that is shared takes part in the sums of all, without rows."""
    for norm in norms:
        if isinstance(norm, SharedNorm):
            norm.absent = rests
        else:
            norm.training = not rests
