"""Count the patients and instances that a run trains on, and equalise them between methods.

"To ensure a fair comparison between all methods, we expose them to an equal number of patients and instances during
training" (section 5.2 of the paper). The paper's own counts differ by method: a method with two segments per instance
has half as many instances as one with single frames.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clocs_core.contracts.records import Exposure
from clocs_core.data.store import Instances


def expose(patient: Tensor, together: int, epochs: int) -> Exposure:
    """Compute the exposure of a run to instances of `patient` (n,), `together` per step, for `epochs` epochs."""
    return Exposure(len(patient.unique()), len(patient), epochs * -(-len(patient) // together))


def limit_instances(instances: Instances, patient: Tensor, most: int, seed: int) -> Instances:
    """Choose at most `most` instances of `patient` (n,) in rounds: one of every patient, then a second, and so on.

    The seed draws the order of a patient's instances and of the patients in a round. Choices are nested: a smaller
    `most` gives a subset of a larger one.
    """
    if most >= len(instances):
        return instances
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(instances), generator=generator)
    ids = patient.cpu()[drawn]
    order = ids.argsort(stable=True)
    first = torch.searchsorted(ids[order].contiguous(), ids[order].contiguous())
    turn = torch.empty_like(order)
    turn[order] = torch.arange(len(order)) - first  # per drawn instance: number of earlier ones of its patient
    chosen = drawn[turn.argsort(stable=True)[:most]].sort().values.to(instances.frame.device)
    return Instances(instances.frame[chosen], instances.channel[chosen])
