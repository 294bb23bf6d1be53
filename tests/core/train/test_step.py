"""One step: normalisation, the encoders' calls, the gradient, what an objective may do."""

import attrs
import pytest
import torch
from torch import nn

from clocs_core.data.batches import Batch, Views
from clocs_core.train.step import ContrastiveObjective, ViewMaker, encode, min_max, train_step, validation_step


def make_views(views=2, batch=3, channel=1, sample=8, encoder_of_view=()):
    generator = torch.Generator().manual_seed(0)
    signal = torch.randn(views, batch, channel, sample, generator=generator)
    ids = torch.arange(batch)
    whole = Batch(signal.transpose(0, 1), ids, ids, ids, ids)
    return Views(signal, whole, encoder_of_view=encoder_of_view)


class Flat(nn.Module):
    """A linear encoder that counts its calls."""

    def __init__(self, sample=8, dim=4):
        super().__init__()
        self.linear = nn.Linear(sample, dim)
        self.calls = 0

    def forward(self, signal):
        self.calls += 1
        return self.linear(signal[:, 0])


def test_min_max_puts_every_signal_between_0_and_1_by_itself():
    signal = torch.randn(2, 3, 1, 50) * torch.tensor([1.0, 10.0, 100.0])[:, None, None]
    scaled = min_max(signal)
    assert torch.allclose(scaled.amin(-1), torch.zeros(2, 3, 1))
    assert torch.allclose(scaled.amax(-1), torch.ones(2, 3, 1))


def test_a_flat_signal_is_normalised_to_zeros_not_to_nan():
    assert torch.equal(min_max(torch.full((1, 5), 3.0)), torch.zeros(1, 5))


def test_all_views_go_through_a_shared_encoder_in_one_call():
    """BatchNorm then sees all views together, and the device one large piece of work."""
    views, encoder = make_views(views=3), Flat()
    z = encode([encoder], (), views.signal)
    assert encoder.calls == 1
    assert z.shape == (3, 3, 4)
    assert torch.allclose(z[1, 2], encoder.linear(views.signal[1, 2, 0]))


def test_each_view_goes_to_the_encoder_it_names():
    """Modalities with an encoder each: views 0 and 2 to the second, view 1 to the first."""
    views, encoders = make_views(views=3), [Flat(), Flat()]
    z = encode(encoders, (1, 0, 1), views.signal)
    assert [encoder.calls for encoder in encoders] == [1, 1]
    for view, which in enumerate((1, 0, 1)):
        assert torch.allclose(z[view], encoders[which].linear(views.signal[view, :, 0]))


def test_perturbations_come_in_the_order_given_and_before_the_normalisation():
    """The released code applies its own order whatever the list says; the order here is the user's."""
    seen = []

    def note(name, factor):
        def perturb(signal, generator):
            seen.append(name)
            return signal * factor

        return perturb

    views = make_views()
    maker = ViewMaker(lambda batch, generator: views, (note("first", 2.0), note("second", -1.0)), normalise=True)
    made = maker(views.batch, torch.Generator())
    assert seen == ["first", "second"]
    assert torch.allclose(made.signal, min_max(-2.0 * views.signal))


def test_a_step_lowers_the_loss_and_calls_after_step_without_gradient():
    class WithState(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros(()))
            self.grad_was_on = True

        def forward(self, encode, views):
            return encode(views.signal).square().mean()

        def after_step(self, encoder):
            self.grad_was_on = torch.is_grad_enabled()
            self.steps.add_(1)

    encoder, objective, views = Flat(), WithState(), make_views()
    optimiser = torch.optim.Adam(encoder.parameters(), lr=0.1)
    losses = [train_step([encoder], objective, optimiser, views) for _ in range(20)]
    assert losses[-1] < losses[0]
    assert objective.steps == 20
    assert not objective.grad_was_on
    assert not losses[0].requires_grad


def test_a_validation_step_changes_nothing_and_hands_over_the_embeddings():
    encoder, views = Flat(), make_views()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    objective = ContrastiveObjective(lambda z, patient: z.mean() + patient.sum())
    loss, z = validation_step([encoder], objective, views)
    assert torch.equal(z, encode([encoder], (), views.signal))
    assert loss == pytest.approx(float(z.mean()) + 3)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())


def test_views_are_made_under_fake_tensors():
    """Fake tensors have no values: anything that asks the host for one fails here, without a GPU."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        views = make_views()
        maker = ViewMaker(lambda batch, generator: views, (), normalise=True)
        made = maker(views.batch, torch.Generator())
        assert made.signal.shape == (2, 3, 1, 8)
        assert attrs.evolve(made).batch is views.batch
