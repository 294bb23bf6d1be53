"""What a plugin returns in a step is checked and named: its author should not have to read a traceback of core."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from clocs_core.errors import PluginError
from clocs_core.train.normalise import leave
from clocs_core.train.promises import loss_and_components_from, loss_from, name_of, perturbed_from
from clocs_core.train.step import ContrastiveObjective, ViewMaker

Z = torch.ones(2, 3, 4)
PATIENT = torch.arange(3)


def as_float(z, patient):
    return float(z.mean())


def each_row(z, patient):
    return z.mean((0, 2))


def shortened(signal, generator):
    return signal[..., :-1]


@pytest.mark.parametrize("pairs", [(), ((0, 1),)])
@pytest.mark.parametrize(
    ("loss", "said"), [(as_float, r"1\.0, which is no tensor"), (each_row, r"a tensor of shape \(3,\)")]
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
        PluginError, match=r"shortened returned a tensor of shape \(1, 2, 1, 9\), expected .* \(1, 2, 1, 10\)"
    ):
        perturbed_from(shortened(views, None), views, shortened)
    maker = ViewMaker(lambda batch, generator: batch, (shortened,), leave)
    with pytest.raises(PluginError, match=r"The perturbation .*shortened returned"):
        maker._perturbed(views, shortened, torch.Generator())


def test_functions_are_named_through_partial():
    assert name_of(partial(partial(as_float), patient=1)).endswith("test_promises.as_float")
