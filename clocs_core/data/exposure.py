"""How much of the training part a run sees, and how to give several methods the same.

"To ensure a fair comparison between all methods, we expose them to an equal number of patients and instances during
training" (section 5.2 of the paper), whose own counts differ by method: two segments in a row are half as many
instances as single frames.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clocs_core.contracts.records import Exposure
from clocs_core.data.store import Instances


def expose(patient: Tensor, together: int, epochs: int) -> Exposure:
    """The exposure of a run to instances of `patient` (n,), so many together in a step, for so many epochs."""
    return Exposure(len(patient.unique()), len(patient), epochs * -(-len(patient) // together))


def limit_instances(instances: Instances, patient: Tensor, most: int, seed: int) -> Instances:
    """At most so many of the instances of `patient` (n,): one of every patient first, then a second, and so on.

    Which of a patient's instances, and which patients are the first of a round, is drawn by the seed. Nested: fewer
    instances lie within more.
    """
    if most >= len(instances):
        return instances
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(instances), generator=generator)
    ids = patient.cpu()[drawn]
    order = ids.argsort(stable=True)
    first = torch.searchsorted(ids[order].contiguous(), ids[order].contiguous())
    turn = torch.empty_like(order)
    turn[order] = torch.arange(len(order)) - first  # of each drawn instance: how many of its patient come before it
    chosen = drawn[turn.argsort(stable=True)[:most]].sort().values.to(instances.frame.device)
    return Instances(instances.frame[chosen], instances.channel[chosen])
