"""The setup of an objective builds the offers that the objective names."""

from __future__ import annotations

import attrs
import pytest
import torch
from torch import nn

from clocs_core import Loss, Objective, Setup, Task, option


@attrs.frozen
class Options:
    scale: float = option(1.0, "Scale.", check=(lambda scale: scale > 0, "be positive"))


class Scaled(nn.Module):
    def __init__(self, options, setup):
        super().__init__()
        self.scale, self.setup = options.scale, setup


def build_scaled(options, setup):
    return Scaled(options, setup)


def build_sum(options):
    return lambda z, patient: options.scale * z.sum()


PARTS = (
    Objective(name="part", summary="A part.", options=Options, build=build_scaled),
    Loss(name="part", summary="A loss of the same name.", options=Options, build=build_sum),
)


def setup_of(*parts):
    return Setup(encoder=nn.Linear(2, 2), embedding_dim=2, task=Task("t", classes=("a", "b")), parts=parts)


def test_a_part_is_built_with_its_options_from_the_same_facts():
    setup = setup_of(*PARTS)
    made = setup.objective("part", scale=3.0)
    assert (made.scale, made.setup) == (3.0, setup)
    assert setup.objective("part").scale == 1.0
    z = torch.ones(2, 3, 2)
    assert float(setup.loss("part", scale=2.0)(z, torch.zeros(3))) == 24


def test_options_of_a_part_keep_to_their_rules():
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        setup_of(*PARTS).objective("part", scale=0.0)


def test_a_part_that_is_not_named_is_refused():
    """A plugin that builds on what it does not name would fail where the other is not installed, after all reading."""
    with pytest.raises(ValueError, match=r"the loss 'part' is not at hand: .* in `losses=\('part',\)`"):
        setup_of(PARTS[0]).loss("part")
    with pytest.raises(ValueError, match="the objective 'other' is not at hand"):
        setup_of(*PARTS).objective("other")
