"""From a plan to the objects that train: device, encoders, objective, views."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from clocs_core import seeds
from clocs_core.errors import SettingsError
from clocs_core.extend.offers import Setup
from clocs_core.extend.plan import Plan
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import RunEpoch, plain_epoch
from clocs_core.train.gradcache import gradcache_epoch
from clocs_core.train.learner import Learner, start
from clocs_core.train.step import ContrastiveObjective, ViewMaker

__all__ = ["build_encoders", "build_learner", "build_views", "choose_device", "choose_epochs"]


def choose_device(asked: str) -> torch.device:
    """The device of a name; `auto` is the GPU if there is one."""
    found = torch.cuda.is_available()
    if asked == "cuda" and not found:
        raise SettingsError("`--device cuda` was asked for, but torch finds no GPU here; use `--device cpu` or `auto`.")
    return torch.device("cuda" if found and asked != "cpu" else "cpu")


def build_encoders(plan: Plan, channels: int, device: torch.device) -> nn.ModuleList:
    """Encoders with their first, random weights: the same seed gives the same ones. `channels` were chosen."""
    torch.manual_seed(seeds.derive(plan.run.seed, "weights"))  # layers draw their weights from torch's own generator
    inputs = channels if plan.needs.encoder_channels == "all" else 1
    samples = plan.pretrain_framing.frame_samples
    try:
        made = [
            plan.encoder.offer.build(plan.encoder.options, inputs, samples, plan.run.embedding_dim)
            for _ in range(plan.needs.encoders)
        ]
    except ValueError as problem:
        raise SettingsError(f"Encoder {plan.encoder.offer.name!r} cannot be built: {problem}") from None
    return nn.ModuleList(made).to(device)


def build_learner(plan: Plan, channels: int, device: torch.device) -> Learner:
    """A learner for the plan's method that has not learnt yet."""
    encoders = build_encoders(plan, channels, device)
    if plan.loss is not None:
        objective: nn.Module = ContrastiveObjective(plan.loss.offer.build(plan.loss.options))
    else:
        assert plan.objective is not None  # a Method names one of the two
        setup = Setup(
            encoder=encoders[0],
            embedding_dim=plan.run.embedding_dim,
            task=plan.task,
            perturbations=tuple(chosen.offer.name for chosen in plan.perturbations),
        )
        try:
            objective = plan.objective.offer.build(plan.objective.options, setup)
        except ValueError as problem:
            raise SettingsError(f"Objective {plan.objective.offer.name!r} cannot be built: {problem}") from None
    return start(encoders, objective.to(device), plan.train.learning_rate)


def choose_epochs(plan: Plan, device: torch.device, warn: Callable[[str], None]) -> RunEpoch:
    """What runs the epochs of a plan: captured steps on a GPU, unless something else is asked for."""
    if plan.run.step == "captured" and device.type != "cuda":
        raise SettingsError("`--step captured` needs a GPU: CUDA graphs are what it captures. Use `--step auto`.")
    if plan.train.contrast_batch is not None:
        return gradcache_epoch
    return plain_epoch if plan.run.step == "plain" or device.type != "cuda" else CapturedEpochs(warn)


def build_views(plan: Plan, unit: str) -> ViewMaker:
    """The plan's view generator, followed by its perturbations and the normalisation."""
    return ViewMaker(
        generate=plan.views.offer.build(plan.views.options),
        perturbations=tuple(chosen.offer.build(chosen.options, unit) for chosen in plan.perturbations),
        normalise=plan.data.normalise == "min-max",
    )
