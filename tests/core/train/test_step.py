"""One step: normalisation, the encoders' calls, the gradient, what an objective may do."""

import attrs
import pytest
import torch
from torch import nn

from clocs_core.contracts.batches import Batch, Views
from clocs_core.train.adam import Adam
from clocs_core.train.normalise import leave, min_max, z_score
from clocs_core.train.step import ContrastiveObjective, Encoding, ViewMaker, encode, train_step, validation_step


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


@pytest.mark.parametrize("which", [(0, 1, 0), (0, 0, 1), (1, 0, 1, 1)])
def test_views_of_an_encoder_need_not_stand_together(which):
    """Leads of two modalities may be named in any order."""
    views, encoders = make_views(views=len(which)), [Flat(), Flat()]
    z = encode(encoders, which, views.signal)
    for view, number in enumerate(which):
        assert torch.allclose(z[view], encoders[number].linear(views.signal[view, :, 0]))
    assert [encoder.calls for encoder in encoders] == [1, 1]


@pytest.mark.cuda
@pytest.mark.parametrize("which", [(0, 1, 0), (0, 0, 1)])
def test_views_of_several_encoders_can_be_captured(which):
    """A copy from the host within a step, such as an index by a list, would break the capture of a graph."""
    views, encoders = make_views(views=3).signal.cuda(), [Flat().cuda(), Flat().cuda()]
    expected = encode(encoders, which, views)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = encode(encoders, which, views)
    graph.replay()
    assert torch.allclose(found, expected)


def test_perturbations_come_in_the_order_given_and_before_the_normalisation():
    """The released code applies its own order whatever the list says; the order here is the user's."""
    seen = []

    def note(name, factor):
        def perturb(signal, generator):
            seen.append(name)
            return signal * factor

        return perturb

    views = make_views()
    maker = ViewMaker(lambda batch, generator: views, (note("first", 2.0), note("second", -1.0)), normalise=min_max)
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
        maker = ViewMaker(lambda batch, generator: views, (), normalise=min_max)
        made = maker(views.batch, torch.Generator())
        assert made.signal.shape == (2, 3, 1, 8)
        assert attrs.evolve(made).batch is views.batch


def noise_of(value):
    def perturb(signal, generator):
        return signal + value * torch.rand(signal.shape, generator=generator)

    return perturb


def made(views, *perturbations, normalise=leave):
    maker = ViewMaker(lambda batch, generator: views, perturbations, normalise)
    return maker(views.batch, torch.Generator().manual_seed(1))


def test_the_first_view_stays_clean_where_the_method_asks_for_it():
    """`perturb=one` of the paper: an instance beside its perturbed counterpart."""
    views = attrs.evolve(make_views(views=3), perturb="but the first")
    found = made(views, noise_of(1.0)).signal
    assert torch.equal(found[0], views.signal[0])
    assert not torch.isclose(found[1:], views.signal[1:]).all(-1).any()


def test_each_perturbation_makes_a_view_of_its_own_of_the_clean_one():
    """Pretext tasks: the original, and one counterpart per task, in the order of the perturbations."""
    views = attrs.evolve(make_views(views=1), perturb="one each")
    found = made(views, lambda signal, _: -signal, lambda signal, _: signal.flip(-1)).signal
    assert found.shape == (3, 3, 1, 8)
    assert torch.equal(found[0], views.signal[0])
    assert torch.equal(found[1], -views.signal[0])
    assert torch.equal(found[2], views.signal[0].flip(-1))


def test_views_of_one_signal_keep_its_scale_so_that_a_smaller_one_is_seen_to_be_smaller():
    """By its own minimum and maximum, a signal times 0.5 would be the signal itself, and the task unsolvable."""
    views = attrs.evolve(make_views(views=1), perturb="one each")
    clean, smaller = made(views, lambda signal, _: 0.5 * signal, normalise=min_max).signal
    low, high = views.signal[0].aminmax(dim=-1, keepdim=True)
    assert torch.allclose(clean, min_max(views.signal[0]))
    assert torch.allclose(smaller, (0.5 * views.signal[0] - low) / (high - low), atol=1e-6)
    assert not torch.allclose(clean, smaller, atol=0.05)


def double(views):
    return attrs.evolve(views, batch=attrs.evolve(views.batch, signal=views.batch.signal.double()))


def test_the_channels_of_an_encoder_are_normalised_without_those_of_another():
    """z-score has one deviation for all channels: a larger modality would flatten a smaller one."""
    signal = torch.randn(2, 3, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signal[:, :, 2] *= 1000
    views = double(attrs.evolve(make_views(views=2), signal=signal, encoder_of_view=(1, 0)))
    maker = ViewMaker(lambda batch, generator: views, (), z_score, read=((0, 2), (2, None)))
    found = maker(views.batch, torch.Generator()).signal
    for instance in range(3):
        small, large = signal[1, instance, :2], signal[0, instance, 2:]
        for own, normal in ((small, found[1, instance, :2]), (large, found[0, instance, 2:])):
            centred = own - own.mean(dim=-1, keepdim=True)
            assert torch.allclose(normal, centred / centred.square().mean().sqrt())


def test_perturbed_copies_for_one_encoder_keep_the_scale_of_its_clean_channels():
    signal = torch.randn(1, 3, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signal[:, :, 2] *= 1000
    views = double(attrs.evolve(make_views(views=1), signal=signal, encoder_of_view=(0, 0), perturb="one each"))
    maker = ViewMaker(lambda batch, generator: views, (lambda one, _: 0.5 * one,), z_score, read=((0, 2),))
    found = maker(views.batch, torch.Generator()).signal  # (view, batch, channel, sample)
    for instance in range(3):
        own = signal[0, instance, :2]
        mean = own.mean(dim=-1, keepdim=True)
        deviation = (own - mean).square().mean().sqrt()
        assert torch.allclose(found[0, instance, :2], (own - mean) / deviation)
        assert torch.allclose(found[1, instance, :2], (0.5 * own - mean) / deviation)


def test_a_loss_of_chosen_pairs_is_the_mean_of_the_losses_of_each_pair():
    """In the order of the pairs, and no other view takes part."""
    views = attrs.evolve(make_views(views=4), pairs=((0, 2), (3, 1)))
    z = torch.randn(4, 3, 5, requires_grad=True)
    seen = []

    def loss(pair, patient):
        seen.append(pair.detach().clone())
        return (pair[0] - 2 * pair[1]).square().mean() + patient.sum()

    found = ContrastiveObjective(loss)(lambda signal: z, views)
    expected = sum((z[a] - 2 * z[b]).square().mean() + 3 for a, b in ((0, 2), (3, 1))) / 2
    assert torch.allclose(found, expected)
    assert [pair.shape for pair in seen] == [(2, 3, 5)] * 2


class Watching(nn.Module):
    """An encoder that notes what it computes with, and an objective that notes what it gets."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(20, 4), []

    def forward(self, signal):
        z = self.layer(signal.flatten(1))
        self.seen.append((z.dtype, torch.is_autocast_enabled(signal.device.type)))
        return z


class Noting(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, encode, views):
        z = encode(views.signal)
        self.seen.append((z.dtype, torch.is_autocast_enabled(z.device.type)))
        return z.square().mean()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_in_bf16_the_encoder_runs_under_autocast_and_nothing_else_does(device):
    """Weights, their gradients, embeddings and the loss stay float32, so the encoder's file is what it was."""
    torch.manual_seed(0)
    encoder, objective = Watching().to(device), Noting()
    views = Views(torch.randn(2, 6, 1, 20, device=device), None)
    optimiser = Adam(encoder.parameters(), 1e-2)
    loss = train_step([encoder], objective, optimiser, views, autocast="bf16")
    assert encoder.seen == [(torch.bfloat16, True)]
    assert objective.seen == [(torch.float32, False)]
    assert loss.dtype == encoder.layer.weight.dtype == encoder.layer.weight.grad.dtype == torch.float32
    held, z = validation_step([encoder], objective, views, "bf16")
    assert (held.dtype, z.dtype, encoder.seen[-1]) == (torch.float32, torch.float32, (torch.bfloat16, True))
    plain = encode([encoder], (), views.signal)
    torch.testing.assert_close(encode([encoder], (), views.signal, autocast="bf16"), plain, atol=0.02, rtol=0.02)
    assert not torch.equal(encode([encoder], (), views.signal, autocast="bf16"), plain)


def test_by_view_each_view_is_normalised_by_its_own_batch_statistics():
    """The released code's BatchNorm: together, a view far from the others shifts them all."""
    views, encoder = make_views(views=2), nn.Sequential(nn.BatchNorm1d(1), nn.Flatten())
    signal = views.signal + torch.tensor([0.0, 100.0]).view(2, 1, 1, 1)
    apart = encode([encoder], (), signal, per_view=True)
    assert torch.allclose(apart.mean((1, 2)), torch.zeros(2), atol=1e-4)
    together = encode([encoder], (), signal)
    assert together[1].mean() > 0.9
    assert torch.allclose(together.mean(), torch.zeros(()), atol=1e-4)


def test_by_view_each_view_goes_to_its_own_encoder():
    views, encoders = make_views(views=3), [Flat(), Flat()]
    found = encode(encoders, (1, 0, 1), views.signal, per_view=True)
    assert torch.allclose(found, encode(encoders, (1, 0, 1), views.signal))
    assert [encoder.calls for encoder in encoders] == [2, 3]


@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_a_frame_that_hardly_varies_gives_views_of_ordinary_size(noise):
    """2 mV and nothing else: by its own range, a changed sign would be hundreds of times the height of any signal."""
    clean = 2.0 + noise * torch.rand(1, 3, 1, 50)
    views = attrs.evolve(make_views(views=1, sample=50), signal=clean, perturb="one each")
    found = made(views, lambda signal, _: -signal, lambda signal, _: 0.9 * signal, normalise=min_max).signal
    assert found.abs().max() <= 1.0


class Steps(nn.Module):
    """A sequence of every second sample, twice as wide for the second of two encoders' views; counts its calls."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor, self.calls = factor, 0

    def sequence(self, signal):
        self.calls += 1
        return self.factor * signal[:, 0, ::2, None].expand(-1, -1, 3)


@pytest.mark.parametrize("per_view", [False, True])
def test_sequences_come_by_view_with_one_call_per_encoder(per_view):
    """As embeddings do: (view, batch, time, width), each view from the encoder that it names."""
    views, encoders = make_views(views=3), [Steps(2.0), Steps(-1.0)]
    found = Encoding(encoders, (1, 0, 1), per_view).sequence(views.signal)
    assert found.shape == (3, 3, 4, 3)
    factor = torch.tensor([-1.0, 2.0, -1.0]).view(3, 1, 1)
    assert torch.equal(found[..., 0], factor * views.signal[:, :, 0, ::2])
    assert [encoder.calls for encoder in encoders] == ([1, 2] if per_view else [1, 1])
    assert Encoding(encoders[:1]).sequence(views.signal[..., :6]).shape == (3, 3, 3, 3)


class Summed(Steps):
    """Its embedding is the sum of its sequence over time."""

    def forward(self, signal):
        return self.of_sequence(self.sequence(signal))

    def of_sequence(self, sequence):
        return sequence.sum(1)


def test_embeddings_and_sequences_take_one_pass_where_one_is_made_of_the_other():
    views, encoders = make_views(views=3), [Summed(2.0), Summed(-1.0)]
    encode = Encoding(encoders, (1, 0, 1))
    z, sequence = encode.both(views.signal)
    assert [encoder.calls for encoder in encoders] == [1, 1]
    assert torch.equal(z, encode(views.signal))
    assert torch.equal(sequence, encode.sequence(views.signal))


def test_an_encoder_that_does_not_make_one_of_the_other_takes_two_passes():
    class Apart(Steps):
        def forward(self, signal):
            return signal[:, 0, :3]

    encode, views = Encoding([Apart()]), make_views()
    z, sequence = encode.both(views.signal)
    assert torch.equal(z, encode(views.signal))
    assert torch.equal(sequence, encode.sequence(views.signal))


def test_validation_measures_the_embeddings_that_come_with_sequences():
    class OfBoth(nn.Module):
        def forward(self, encode, views):
            z, sequence = encode.both(views.signal)
            return z.mean() + sequence.mean()

    encoder, views = Summed(), make_views()
    _, z = validation_step([encoder], OfBoth(), views)
    assert encoder.calls == 1
    assert torch.equal(z, encode([encoder], (), views.signal))


def test_an_objective_that_reads_sequences_only_leaves_the_embeddings_of_its_views_for_validation():
    class OfSequences(nn.Module):
        def forward(self, encode, views):
            return encode.sequence(views.signal).mean()

    class Both(Flat):
        def sequence(self, signal):
            return signal[:, 0, :, None]

    encoder, views = Both(), make_views()
    loss, z = validation_step([encoder], OfSequences(), views)
    assert torch.equal(loss, views.signal.mean())
    assert torch.equal(z, encode([encoder], (), views.signal))


class Drawing(nn.Module):
    """Draws from the generator that it is given, and looks at the encoders that it is given."""

    def forward(self, encode, views, generator):
        mask = torch.rand(views.signal.shape, generator=generator) < 0.5
        return encode(views.signal * mask).square().mean()

    def after_step(self, encoders):
        self.seen = list(encoders)


def test_an_objective_that_asks_for_a_generator_draws_from_that_of_the_step():
    """In training and in validation; the same state gives the same loss, and the state moves on."""
    views, losses = make_views(), []
    for _ in range(2):
        torch.manual_seed(0)
        encoder, generator = Flat(), torch.Generator().manual_seed(5)
        optimiser = torch.optim.SGD(encoder.parameters(), lr=0.1)
        losses.append(train_step([encoder], Drawing(), optimiser, views, generator=generator))
        assert not torch.equal(generator.get_state(), torch.Generator().manual_seed(5).get_state())
    assert torch.equal(*losses)
    first, again, other = (
        validation_step([encoder], Drawing(), views, generator=torch.Generator().manual_seed(seed))[0]
        for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_after_step_gets_all_encoders_where_it_asks_for_them():
    """By the name of its argument; an `encoder` is the first one."""
    encoders, objective = [Flat(), Flat()], Drawing()
    optimiser = torch.optim.SGD(encoders[0].parameters(), lr=0.1)
    train_step(encoders, objective, optimiser, make_views(encoder_of_view=(0, 1)), generator=torch.Generator())
    assert objective.seen == encoders


def test_sequences_are_float32_under_autocast_too():
    """As embeddings are: a loss of half precision would round away what it compares."""

    class Convolved(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = nn.Conv1d(1, 4, 2, stride=2), None

        def sequence(self, signal):
            made = self.layer(signal).transpose(1, 2)
            self.seen = made.dtype
            return made

    encoder = Convolved()
    assert Encoding([encoder], autocast="bf16").sequence(make_views().signal).dtype == torch.float32
    assert encoder.seen == torch.bfloat16


def test_views_without_instances_are_embedded_by_any_encoder():
    """One of several processes may have none in the last batch; FFTs, for one, refuse an empty batch."""

    class Picky(Flat):
        def forward(self, signal):
            assert len(signal)
            return super().forward(signal)

    encoder = Picky()
    z = encode([encoder], (), torch.ones(3, 0, 1, 8))
    assert z.shape == (3, 0, 4)
    z.sum().backward()
    assert torch.equal(encoder.linear.weight.grad, torch.zeros(4, 8))
