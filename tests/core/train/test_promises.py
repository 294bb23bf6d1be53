"""What a plugin returns in a step is checked and named: its author should not have to read a traceback of core."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from clocs_core.contracts.batches import Batch, Views
from clocs_core.errors import PluginError
from clocs_core.train.normalise import leave
from clocs_core.train.promises import (
    learnable,
    loss_and_components_from,
    loss_from,
    name_of,
    perturbed_from,
    views_from,
)
from clocs_core.train.step import ContrastiveObjective, ViewMaker

Z = torch.ones(2, 3, 4)
PATIENT = torch.arange(3)


@pytest.fixture
def batch():
    ids = torch.arange(4)
    return Batch(torch.zeros(4, 2, 1, 10), ids, ids, ids, ids)


def as_float(z, patient):
    return float(z.mean())


def each_row(z, patient):
    return z.mean((0, 2))


def shortened(signal, generator):
    return signal[..., :-1]


@pytest.mark.parametrize("pairs", [(), ((0, 1),)])
@pytest.mark.parametrize(
    ("loss", "said"), [(as_float, r"1\.0, which is no tensor"), (each_row, r"a tensor of shape \(3,\), float32 on cpu")]
)
def test_a_loss_that_is_no_number_in_a_tensor_is_named(loss, said, pairs):
    with pytest.raises(
        PluginError, match=rf"test_promises\.{loss.__name__} returned {said}, expected a loss: one number"
    ):
        ContrastiveObjective(loss).of(Z, PATIENT, pairs)


def test_a_loss_of_one_number_may_have_a_dimension():
    assert loss_from(torch.ones(1), as_float).shape == (1,)


def test_an_objective_is_named_by_its_class():
    class Mine(nn.Module):
        """Not called."""

    loss, components = loss_and_components_from((torch.zeros(()), {"part": torch.ones(())}), Mine())
    assert (float(loss), list(components)) == (0.0, ["part"])
    with pytest.raises(PluginError, match=r"test_promises\..*Mine returned None, which is no tensor"):
        loss_and_components_from(None, Mine())


def test_a_perturbation_that_changes_the_shape_is_named():
    """Views of another length would train and be scored without a word."""
    views = torch.zeros(1, 2, 1, 10)
    with pytest.raises(
        PluginError,
        match=r"shortened returned a tensor of shape \(1, 2, 1, 9\), float32 .*, expected .* \(1, 2, 1, 10\)",
    ):
        perturbed_from(shortened(views, None), views, shortened)
    maker = ViewMaker(lambda batch, generator: batch, (shortened,), leave)
    with pytest.raises(PluginError, match=r"The perturbation .*shortened returned"):
        maker._perturbed(views, shortened, torch.Generator())


@pytest.mark.parametrize("change", [torch.Tensor.double, torch.Tensor.int, lambda signal: signal.to("meta")])
def test_a_perturbation_that_changes_type_or_device_is_named(change):
    """The error would come from the encoder, and blame another plugin."""
    views = torch.zeros(1, 2, 1, 10)
    with pytest.raises(PluginError, match=r"returned a tensor of .*, expected signals of .*, float32 on cpu, as"):
        perturbed_from(change(views), views, change)


def made(signal, batch):
    return views_from(Views(signal, batch), batch, made)


@pytest.mark.parametrize("views", [1, 3])
@pytest.mark.parametrize("samples", [5, 20])
def test_views_may_be_any_number_and_of_any_length(batch, views, samples):
    signal = torch.zeros(views, 4, 1, samples)
    assert made(signal, batch).signal is signal


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        (torch.zeros(2, 3, 1, 10), r"a tensor of shape \(2, 3, 1, 10\), float32 on cpu"),  # an instance is missing
        (torch.zeros(2, 4, 10), r"a tensor of shape \(2, 4, 10\), float32 on cpu"),
        (torch.zeros(2, 4, 1, 10).double(), r"a tensor of .*, float64 on cpu"),
        (torch.zeros(2, 4, 1, 10, device="meta"), r"a tensor of .*, float32 on meta"),
        (None, "None, which is no tensor"),
    ],
)
def test_views_of_another_kind_are_named(batch, signal, said):
    wanted = r"expected \(view, batch, channel, sample\) with 4 instances, float32 on cpu"
    with pytest.raises(PluginError, match=rf"The view generator .*\.made returned views of {said}, {wanted}"):
        made(signal, batch)


def test_views_are_an_instance_of_views(batch):
    with pytest.raises(PluginError, match=r"The view generator .*\.made returned None, expected an instance of Views"):
        views_from(None, batch, made)


def test_a_loss_without_a_gradient_is_named():
    loss, objective = Z.mean().requires_grad_(), ContrastiveObjective(as_float)
    assert learnable(loss, objective) is loss
    with pytest.raises(PluginError, match=r"The loss that .*test_promises\.as_float returned has no gradient"):
        learnable(loss.detach(), objective)
    with pytest.raises(PluginError, match=r"The loss that torch\..*Identity returned has no gradient"):
        learnable(loss.detach(), nn.Identity())


def test_functions_are_named_through_partial():
    assert name_of(partial(partial(as_float), patient=1)).endswith("test_promises.as_float")
