"""VICReg as an objective: what is expanded, what is trained, and what a checkpoint holds."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn

from clocs_core import Batch, Setup, Task, Views
from clocs_core.train.step import encode, train_step, validation_step
from clocs_plugins.vicreg import VICRegOptions, clocs_methods, clocs_objectives
from clocs_plugins.vicreg.vicreg import vicreg

DIM = 6


def build(**options):
    (offer,) = clocs_objectives()
    setup = Setup(encoder=nn.Identity(), embedding_dim=DIM, task=Task("rhythm", classes=("a", "b")))
    torch.manual_seed(0)
    return offer.build(offer.options(**options), setup)


def views_of(views=2, batch=8, seed=0, pairs=()):
    ids = torch.arange(batch)
    signal = torch.randn(views, batch, 1, 20, generator=torch.Generator().manual_seed(seed))
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids), pairs=pairs)


def encoder():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(20, DIM))


def test_the_loss_is_of_the_expanded_representations():
    """Linear, BatchNorm over all views, ReLU, linear; then the loss with the weights that were given."""
    objective, reader, views = build(expander=(5, 4), invariance=3, variance=2, covariance=7), encoder(), views_of(3)
    loss = objective(partial(encode, [reader], ()), views)
    first, last = objective.expander[0].linear.weight, objective.expander[1].linear.weight
    rows = reader(views.signal.flatten(0, 1)) @ first.T
    rows = (rows - rows.mean(0)) / (rows.var(0, correction=0) + 1e-5).sqrt()
    z = (rows.clamp(min=0) @ last.T).reshape(3, 8, 4)
    torch.testing.assert_close(loss, vicreg(z, 3, 2, 7))


def test_without_an_expander_the_loss_is_of_the_representation():
    """`-o expander=` is the paper's ablation, and has nothing of its own to train."""
    objective, reader, views = build(expander=()), encoder(), views_of()
    assert list(objective.parameters()) == []
    expected = vicreg(encode([reader], (), views.signal))
    torch.testing.assert_close(objective(partial(encode, [reader], ()), views), expected)


def test_chosen_pairs_of_views_are_the_ones_compared():
    """A view generator may say which views belong together."""
    objective, reader, pairs = build(expander=()), encoder(), ((0, 2),)
    found = objective(partial(encode, [reader], ()), views_of(3, pairs=pairs))
    torch.testing.assert_close(found, vicreg(encode([reader], (), views_of(3).signal)[[0, 2]]))


def test_the_names_in_a_checkpoint_do_not_change():
    """Interrupted runs must go on."""
    norm = [f"norm.{part}" for part in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]
    hidden = [f"expander.{layer}.{part}" for layer in (0, 1) for part in ("linear.weight", *norm)]
    assert list(build().state_dict()) == [*hidden, "expander.2.linear.weight"]


def test_the_default_expander_is_four_times_the_usual_representation():
    """A smaller one than the paper's, with its three layers."""
    assert [layer.linear.out_features for layer in build().expander] == [512, 512, 512]
    assert [len(layer) for layer in build().expander] == [3, 3, 1]


def test_encoder_and_expander_are_trained_together():
    """The loss falls, and every weight of both has moved."""
    objective, reader, views = build(expander=(16, 16)), encoder(), views_of(batch=32)
    parameters = [*reader.parameters(), *objective.parameters()]
    before = [one.detach().clone() for one in parameters]
    optimiser = torch.optim.Adam(parameters, lr=0.01)
    losses = [train_step([reader], objective, optimiser, views).item() for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]
    assert not any(torch.equal(old, new) for old, new in zip(before, parameters, strict=True))


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_of_one_can_be_the_last_of_an_epoch(training):
    """BatchNorm of the expander sees both views at once, so that there are two rows at least."""
    objective, reader = build().train(training), encoder()
    loss = objective(partial(encode, [reader], ()), views_of(batch=1))
    loss.backward()
    assert loss.isfinite()
    assert all(one.grad.isfinite().all() for one in reader.parameters())


def test_validation_does_not_depend_on_the_other_instances_through_the_expander():
    """In evaluation BatchNorm uses what it has seen, and nothing is learnt."""
    objective, reader = build().eval(), encoder()
    before = {name: one.clone() for name, one in objective.state_dict().items()}
    _, z = validation_step([reader], objective, views_of())
    assert z.shape == (2, 8, DIM)  # reports show the representation, not what was expanded
    assert all(torch.equal(one, before[name]) for name, one in objective.state_dict().items())


def test_the_method_contrasts_segments_without_negatives():
    """Put together by name, of parts that other plugins offer."""
    (method,) = clocs_methods()
    assert (method.name, method.views, method.encoder, method.objective) == ("vicreg", "segments", "cnn", "vicreg")
    assert method.loss is None


def test_the_weights_are_the_papers():
    """25, 25 and 1, in their order all the way to the loss."""
    options = VICRegOptions()
    assert (options.invariance, options.variance, options.covariance) == (25, 25, 1)
    assert build().weights == (25, 25, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"invariance": -1.0}, {"variance": float("nan")}, {"covariance": float("inf")}, {"expander": (8, 0)}],
)
def test_options_that_make_no_sense_are_refused(wrong):
    """By the option's name, before anything is built."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        VICRegOptions(**wrong)


def test_the_card_imports_no_torch():
    """Listing plugins must stay instant."""
    code = "import sys, clocs_plugins.vicreg; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
