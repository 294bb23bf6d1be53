"""Methods that are presets: what these do to parts that others offer."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
import torch

from clocs_core import SignalFacts
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import load_plugins
from clocs_core.testing.synthetic import synthetic_batch
from clocs_core.train.build import build_learner, build_views
from clocs_core.train.step import train_step
from clocs_plugins.many_segments import clocs_methods

NEEDED = ("classification", "cnn", "contrastive_losses", "demo", "many_segments", "patient_contrast")


@pytest.fixture
def plan():
    points = [EntryPoint(name, f"clocs_plugins.{name}", "clocs") for name in NEEDED]
    catalogue, host = build_catalogue(load_plugins(points))
    assert host.broken == ()
    return lambda *assignments: resolve(catalogue, {"run": {"method": "cmsc-many", "dataset": "demo"}}, assignments)


def test_an_instance_has_four_segments_unless_told_otherwise(plan):
    """A preset is a default: what a user asks for stands above it."""
    assert plan().needs.segments == 4
    assert plan("segments=3").needs.segments == 3


def test_four_segments_become_four_views_and_train_one_step(plan):
    """Views, encoder and loss come from elsewhere and take any number of views; together they change the weights."""
    made, signals = plan("embedding_dim=8"), SignalFacts(unit="mV", channels=("II",))
    learner = build_learner(made, signals, torch.device("cpu"))
    batch = synthetic_batch(5, 4, 1, made.pretrain_framing.frame_samples)
    views = build_views(made, signals)(batch, torch.Generator().manual_seed(0))
    assert views.signal.shape == (4, 5, 1, made.pretrain_framing.frame_samples)
    before = [one.detach().clone() for one in learner.encoders.parameters()]
    loss = train_step(list(learner.encoders), learner.objective, learner.optimiser, views)
    assert loss.isfinite()
    after = list(learner.encoders.parameters())
    assert not any(torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_vicreg_has_four_segments_of_all_leads_and_a_wide_expander():
    method = next(one for one in clocs_methods() if one.name == "vicreg-many")
    assert method.presets["views"] == {"segments": 4, "leads": "all"}
    assert method.presets["objective"] == {"expander": [2048, 2048, 2048]}
