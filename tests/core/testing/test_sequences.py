"""Methods that read an encoder's sequence pass every check: a contrast with the future, and masks."""

from __future__ import annotations

import copy
import os

import attrs
import flawed_offers as fake
import pytest
import torch
from fake_encoders import installed
from torch import nn
from torch.nn import functional as F

from clocs_core import Method, Needs, Objective, ViewGenerator, Views
from clocs_core.errors import SettingsError
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import Offered, Shelf
from clocs_core.testing import checks_of, failures

AHEAD = 4  # positions


class Future(nn.Module):
    """Tell the position that follows in time from those of other instances (van den Oord et al., 2018)."""

    def __init__(self, width):
        super().__init__()
        self.step = nn.Linear(width, width, bias=False)

    def forward(self, encode, views):
        sequence = encode.sequence(views.signal)[0]  # (batch, time, width)
        context = sequence.cumsum(1)  # of the past
        guess, truth = self.step(context[:, :-AHEAD]), sequence[:, AHEAD:]  # (batch, time, width)
        scores = torch.einsum("btw,ctw->tbc", guess, truth)
        answer = torch.arange(len(sequence), device=scores.device).expand(len(scores), -1)
        return F.cross_entropy(scores.flatten(0, 1), answer.flatten())


class Masked(nn.Module):
    """Predict the positions of masked samples as a moving average of the encoder sees them, without the mask."""

    def __init__(self, encoder):
        super().__init__()
        self.stride, width = encoder.stride, encoder.width
        self.target = copy.deepcopy(encoder).requires_grad_(False)
        self.predict = nn.Linear(width, width)

    def forward(self, encode, views, generator):
        signal = views.signal[:1]  # (view, batch, channel, sample)
        with torch.no_grad():
            truth = self.target.sequence(signal.flatten(0, 1)).unflatten(0, signal.shape[:2])
        hidden = torch.rand(truth.shape[:3], generator=generator, device=signal.device) < 0.5  # (view, batch, time)
        mask = hidden.repeat_interleave(self.stride, dim=2)[:, :, None, : signal.shape[-1]]
        found = self.predict(encode.sequence(signal.masked_fill(mask, 0.0)))
        error = (found - truth).square().mean(-1) * hidden
        return error.sum() / hidden.sum().clamp(min=1)

    def after_step(self, encoder):
        torch._foreach_lerp_(list(self.target.parameters()), list(encoder.parameters()), 0.01)


def build_future(options, setup):
    return Future(setup.encoder.width)


def build_masked(options, setup):
    return Masked(setup.encoder)


def needs_frame(options):
    return Needs()


def build_frame(options):
    return as_view


def as_view(batch, generator):
    return Views(batch.signal.transpose(0, 1), batch)


FUTURE = Objective(name="future", summary="s", build=build_future, sequence=True)
MASKED = Objective(name="masked", summary="s", build=build_masked, sequence=True)
FRAME = ViewGenerator(name="frame", summary="one frame", needs=needs_frame, build=build_frame)


def catalogue_with(*objectives):
    """Everything that is installed, and a method of the same name for each objective."""
    found = installed()
    plugin = next(iter(found.views)).plugin

    def more(shelf, *offers):
        return Shelf(shelf.kind, (*shelf.offered, *(Offered(offer, plugin) for offer in offers)))

    small = {"encoder": {"widths": [4, 6, 8], "blocks": 1}}
    parts = {"summary": "s", "views": "frame", "encoder": "resnet1d", "presets": small}
    methods = [Method(name=one.name, objective=one.name, **parts) for one in objectives]
    return attrs.evolve(
        found,
        views=more(found.views, FRAME),
        objectives=more(found.objectives, *objectives),
        methods=more(found.methods, *methods),
    )


@pytest.mark.parametrize("objective", [FUTURE, MASKED], ids=lambda offer: offer.name)
def test_an_objective_of_sequences_passes_every_check_with_the_encoder_of_its_method(objective):
    """In training and in evaluation, with state and masks."""
    catalogue = catalogue_with(objective)
    (method,) = [item.offer for item in catalogue.methods if item.offer.objective == objective.name]
    assert failures(checks_of(objective, catalogue=catalogue)) == {}
    assert failures(checks_of(method, catalogue=catalogue)) == {}


@pytest.mark.parametrize("objective", [FUTURE, MASKED], ids=lambda offer: offer.name)
def test_without_a_method_it_is_tried_with_a_small_encoder_that_has_one(objective):
    (scalar,) = [one for one in checks_of(objective) if one.name == "scalar"]
    assert failures([scalar]) == {}


def test_an_encoder_without_a_sequence_is_refused_before_anything_is_read():
    """By one sentence. It names the method's own encoder: the objective may refuse others with a sequence."""
    catalogue = catalogue_with(FUTURE)
    tables = {"run": {"method": "future", "dataset": "demo", "encoder": "cnn"}}
    with pytest.raises(SettingsError, match=r"the encoder 'cnn' has none; use `encoder='resnet1d'`\.$"):
        resolve(catalogue, tables)
    assert resolve(catalogue, {"run": {"method": "future", "dataset": "demo"}}).encoder.offer.name == "resnet1d"


def test_where_no_encoder_has_a_sequence_a_plugin_is_asked_for():
    catalogue = catalogue_with(FUTURE)
    without = [attrs.evolve(item, offer=attrs.evolve(item.offer, sequence=False)) for item in catalogue.encoders]
    catalogue = attrs.evolve(catalogue, encoders=Shelf(catalogue.encoders.kind, tuple(without)))
    with pytest.raises(SettingsError, match="has none; use a plugin that offers such an encoder"):
        resolve(catalogue, {"run": {"method": "future", "dataset": "demo"}})


def test_masks_drawn_by_an_objective_are_those_of_the_generator_that_it_is_given():
    """The check of resuming notices masks that come from elsewhere: the steps after it would differ."""

    class Forgetful(Masked):
        def forward(self, encode, views, generator):
            own = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
            return super().forward(encode, views, own)

    offer = attrs.evolve(MASKED, build=lambda options, setup: Forgetful(setup.encoder))
    (resumes,) = [one for one in checks_of(offer, catalogue=catalogue_with(offer)) if one.name == "resumes"]
    assert failures([resumes])


@pytest.mark.parametrize(
    ("flaw", "rule"),
    [
        ("other-stride", "sequence-shape"),
        ("sequence-cut", "sequence-shape"),
        ("other-stride", "sequence-stride"),
        ("sequence-backwards", "sequence-stride"),
    ],
)
def test_positions_that_are_not_where_the_stride_says_are_noticed(flaw, rule):
    """Too few of them, too many, or in another order: masks of samples would not be masks of positions."""
    checks = [one for one in checks_of(fake.ENCODER, options=fake.Flaw(flaw)) if one.name == rule]
    assert len(failures(checks)) == 1
