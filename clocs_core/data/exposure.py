"""Count the patients and instances that a run trains on, and equalise them between methods.

"To ensure a fair comparison between all methods, we expose them to an equal number of patients and instances during
training" (section 5.2 of the paper). The paper's own counts differ by method: a method with two segments per instance
has half as many instances as one with single frames.
"""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.records import Exposure
from clocs_core.data.store import Instances
from clocs_core.settings.sections import TrainSettings


def expose(patient: Tensor, together: int, epochs: int) -> Exposure:
    """Compute the exposure of a run to instances of `patient` (n,), `together` per step, for `epochs` epochs."""
    return Exposure(len(patient.unique()), len(patient), epochs * -(-len(patient) // together))


def settle_epochs(settings: TrainSettings, instances: int) -> TrainSettings:
    """Return the settings with the epochs that `total_steps` or `total_instances` ask for.

    instances: of the training part. The number of epochs is the nearest whole one, and at least 1, so that the total
    is missed by half an epoch at most.
    """
    count = min(instances, settings.instances or instances)
    if settings.total_steps is not None:
        epochs = settings.total_steps / -(-count // settings.together)
    elif settings.total_instances is not None:
        epochs = settings.total_instances / count
    else:
        return settings
    return attrs.evolve(settings, epochs=max(1, round(epochs)))


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
