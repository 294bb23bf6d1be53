"""Make the processes of a training agree at the end of an epoch, and refuse those that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from clocs_core.errors import PluginError, SettingsError
from clocs_core.settings.toml_file import Tables
from clocs_core.train.learner import Learner
from clocs_core.train.norms import average_statistics
from clocs_core.train.ranks import Group

Made = TypeVar("Made")


def agree_on_epoch(learner: Learner, losses: Tensor, group: Group) -> Tensor:
    """Return the losses (step,) of whole batches, from shares. Adds up components; averages statistics of BatchNorm.

    Raise PluginError where weights differ between processes: they would train different networks from then on.
    """
    for total in learner.components.sums.values():
        total.copy_(group.sum(total))
    for network in (learner.encoders, learner.objective):
        average_statistics(network, group)
    _refuse_drift(learner, group)
    return group.sum(losses)


def _refuse_drift(learner: Learner, group: Group) -> None:
    held = {f"encoders.{name}": tensor for name, tensor in learner.encoders.state_dict().items()}
    held |= {f"objective.{name}": tensor for name, tensor in learner.objective.state_dict().items()}
    own = torch.stack([_digest(tensor) for tensor in held.values()])  # (tensor,)
    for rank, other in enumerate(group.wire.gather(own)):
        differ = (own != other).nonzero().flatten().tolist()  # sync point: once per epoch
        if differ:
            raise PluginError(
                f"The weight {list(held)[differ[0]]!r} differs between processes {group.rank} and {rank}, though all "
                "add up the same gradients. Code of a plugin draws random numbers that follow from no seed of the run, "
                "or does something else in each process. Train with one process until it is repaired."
            )


def _digest(tensor: Tensor) -> Tensor:
    """Return a number that changes with the bits of a tensor."""
    flat = tensor.detach().contiguous().flatten().view(torch.uint8).to(torch.int64)  # (byte,)
    return (flat * (torch.arange(len(flat), device=flat.device) % 65_521 + 1)).sum()


def refuse_differences(facts: Mapping[str, str], group: Group, device: torch.device) -> None:
    """Raise SettingsError unless all processes have the same facts: versions, settings, recordings."""
    own = "\n".join(f"{name} = {value}" for name, value in facts.items())
    first, *others = group.texts(own, device)
    for rank, other in enumerate(others, start=1):
        if other != first:
            ours, theirs = set(first.splitlines()), set(other.splitlines())
            missing = [line for line in first.splitlines() if line not in theirs]
            added = [line for line in other.splitlines() if line not in ours]
            raise SettingsError(
                f"The processes of this training differ: process 0 has {missing[0] if missing else 'nothing'}, and "
                f"process {rank} has {added[0] if added else 'nothing'} in its place. Start all of them with the same "
                "settings, recordings and versions."
            )


def first_alone(group: Group | None, device: torch.device, work: Callable[[], Made]) -> Made:
    """Let process 0 do some work alone, and then the others, which find what it prepared."""
    if group is not None and group.rank:
        group.wait(device)
    made = work()
    if group is not None and not group.rank:
        group.wait(device)
    return made


def settings_facts(tables: Tables) -> dict[str, str]:
    """Return every setting by its name, for `refuse_differences`."""
    return {f"{table}.{name}": repr(value) for table, held in tables.items() for name, value in held.items()}
