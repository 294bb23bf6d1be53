"""A block in rows is the plain block: outputs, gradients, running statistics. And what is its own: its dropout."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.cnn import block_rows
from clocs_plugins.cnn.block_rows import draw_levels
from clocs_plugins.cnn.dropout_bits import LEVELS
from clocs_plugins.cnn.implementations import choose
from clocs_plugins.cnn.network import CNN, least_samples


def network(channels=1, samples=100, widths=(4, 6), dtype=torch.float64, seed=0, gammas="any", **options):
    """A plain network with weights that are not near zero, gammas of both signs, and statistics of its own."""
    torch.manual_seed(seed)
    made = CNN(channels, samples, 5, widths=widths, implementation="plain", **({"dropout": 0.0} | options)).to(dtype)
    with torch.no_grad():
        for block in made.blocks:
            block.conv.weight.copy_(_away_from_zero(block.conv.weight))
            block.norm.weight.copy_(_away_from_zero(block.norm.weight))
            if gammas == "negative":
                block.norm.weight.copy_(-block.norm.weight.abs())
            for tensor in (block.norm.bias, block.norm.running_mean):
                tensor.normal_()
            block.norm.running_var.uniform_(0.5, 2)
    return made


def _away_from_zero(like):
    return torch.where(torch.rand_like(like) < 0.5, -1.0, 1.0).to(like) * (0.3 + torch.rand_like(like))


def in_rows(plain):
    """The same network, computed in rows."""
    made = copy.deepcopy(plain)
    made.implementation = "rows"
    return made


def signals(made, n=3, channels=1, samples=100, seed=1):
    dtype = made.linear.weight.dtype
    return torch.randn(n, channels, samples, generator=torch.Generator().manual_seed(seed)).to(dtype)


def results(made, signal, encode=None):
    """Everything that a step computes and changes, and what is encoded in evaluation afterwards."""
    signal = signal.clone().requires_grad_()
    output = (encode or made)(signal)
    output.backward(torch.randn(output.shape, generator=torch.Generator().manual_seed(2)).to(output))
    found = {"output": output.detach(), "signal": signal.grad}
    found |= {f"gradient of {name}": parameter.grad for name, parameter in made.named_parameters()}
    found |= {name: buffer.clone() for name, buffer in made.named_buffers()}
    with torch.no_grad():
        return found | {"evaluation": copy.deepcopy(made).eval()(signal.detach())}


def assert_same(found, expected, tolerance):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        scale = max(1.0, float(tensor.abs().max()))
        torch.testing.assert_close(
            found[name], tensor, rtol=0, atol=tolerance * scale, msg=lambda m, n=name: f"{n}: {m}"
        )


@settings(max_examples=60, derandomize=True)
@given(
    kernel=st.integers(1, 10),
    stride=st.integers(1, 5),
    channels=st.integers(1, 4),
    widths=st.lists(st.sampled_from([1, 2, 4, 5, 16]), min_size=1, max_size=3),
    longer=st.integers(0, 40),
    n=st.integers(1, 5),
)
def test_any_network_gives_what_the_plain_one_gives(kernel, stride, channels, widths, longer, n):
    """Kernels shorter than their stride, odd lengths, one signal, gammas of both signs: to eleven digits."""
    samples = least_samples(len(widths), kernel, stride) + longer
    plain = network(channels, samples, tuple(widths), kernel=kernel, stride=stride, seed=longer)
    signal = signals(plain, n, channels, samples)
    rows = in_rows(plain)
    assert choose(rows.blocks, signal, "rows") == "rows"
    assert_same(results(rows, signal), results(plain, signal), 1e-11)


@pytest.mark.parametrize("gammas", ["any", "negative"])
def test_the_papers_network_gives_what_the_plain_one_gives(gammas):
    """2500 samples: 832, 137 and 21 positions, even and odd, of which the first share rows."""
    plain = network(1, 2500, (4, 16, 32), gammas=gammas)
    signal = signals(plain, 5, 1, 2500)
    assert_same(results(in_rows(plain), signal), results(plain, signal), 1e-11)


@pytest.mark.parametrize("channels", [1, 2])
def test_of_equal_positions_the_first_has_the_gradient(channels):
    """A flat line is nothing but ties. Whole numbers, so that no rounding tells equal values apart."""
    plain = network(channels, 60, (4,), kernel=3, stride=1)
    with torch.no_grad():
        plain.blocks[0].conv.weight.round_()
    signal = signals(plain, 4, channels, 60).round().clamp(-1, 1)
    signal[0] = 1.0
    signal[1, :, 10:30] = 0.0
    assert_same(results(in_rows(plain), signal), results(plain, signal), 1e-12)


def test_a_gamma_of_zero_gives_what_the_plain_network_gives():
    """Then all positions are equal, and only the plain block knows which was the first."""
    plain = network()
    with torch.no_grad():
        plain.blocks[1].norm.weight[2] = 0.0
    signal = signals(plain)
    rows = in_rows(plain)
    assert choose(rows.blocks, signal, "rows") == "plain"
    assert_same(results(rows, signal), results(plain, signal), 0.0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.99])
def test_dropout_is_that_of_the_plain_block_for_the_same_choice_of_values(p, monkeypatch):
    """By chosen numbers instead of random ones: what is kept is divided by the chance to be kept."""
    plain, drawn = network(dropout=p), []
    edge = round(p * LEVELS)  # the first level that is kept

    def draw(like):
        generator = torch.Generator().manual_seed(len(drawn))
        drawn.append(torch.randint(edge - 2, edge + 2, like.shape, generator=generator).to(like))
        return drawn[-1]

    monkeypatch.setattr(block_rows, "draw_levels", draw)
    signal = signals(plain)
    found = results(in_rows(plain), signal)

    def encode(signal):
        features = signal
        for block, levels in zip(plain.blocks, list(drawn), strict=True):
            features = block.pool(block.relu(block.norm(block.conv(features))))
            features = features * (levels >= edge).transpose(1, 2) / (1 - edge / LEVELS)
        return plain.activation(plain.linear(features.flatten(1)))

    assert_same(found, results(plain, signal, encode), 1e-11)


def test_the_bias_that_batchnorm_takes_away_has_the_gradient_zero():
    """Exactly: what rounding leaves there in the plain block, Adam turns into steps of full length."""
    rows = in_rows(network(dtype=torch.float32))
    rows(signals(rows)).square().sum().backward()
    assert all((block.conv.bias.grad == 0).all() for block in rows.blocks)


@pytest.mark.parametrize("momentum", [0.1, 0.9, None, 0.0, 1.0])
def test_running_statistics_move_as_those_of_batchnorm(momentum):
    """Step by step, with any momentum, without it as a plain average, and with the convolution's bias in the mean."""
    plain = network()
    for block in plain.blocks:
        block.norm.momentum = momentum
    rows = in_rows(plain)
    for step in range(3):
        signal = signals(plain, seed=step)
        plain(signal), rows(signal)
    expected = dict(plain.named_buffers())
    assert_same(dict(rows.named_buffers()), expected, 1e-13)
    assert [int(expected[f"blocks.{number}.norm.num_batches_tracked"]) for number in range(2)] == [3, 3]


@pytest.mark.parametrize(("n", "offset", "tolerance"), [(64, 0.0, 2e-4), (65, 0.0, 2e-4), (64, 10.0, 5e-3)])
def test_float32_is_as_good_as_the_plain_network_in_float32(n, offset, tolerance):
    """Beside float64, for the paper's network; with an odd number of positions, and far from zero too."""
    exact = network(1, 2500, (4, 16, 32))
    plain = copy.deepcopy(exact).float()
    signal = signals(plain, n, 1, 2500) + offset
    expected = results(exact, signal.double())
    worst = {}
    for name, made in (("plain", plain), ("rows", in_rows(plain))):
        found = results(made, signal)
        errors = [
            float((found[key].double() - expected[key]).norm() / expected[key].norm())
            for key in expected
            if "conv.bias" not in key and "tracked" not in key
        ]
        worst[name] = max(errors)
    assert worst["rows"] < max(tolerance, 2 * worst["plain"]), worst


def test_training_without_gradients_computes_the_same_and_moves_the_statistics():
    """A target network in training mode, or a first pass that only wants embeddings."""
    plain = network()
    rows, signal = in_rows(plain), signals(plain)
    with torch.no_grad():
        torch.testing.assert_close(rows(signal), plain(signal), rtol=0, atol=1e-12)
    assert_same(dict(rows.named_buffers()), dict(plain.named_buffers()), 1e-12)


@pytest.mark.parametrize("frozen", ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "blocks.0", "blocks.1"])
def test_what_is_frozen_has_no_gradient_and_the_rest_has_its_own(frozen):
    """Part of an encoder may be kept as it is."""
    plain = network()
    for name, parameter in plain.named_parameters():
        parameter.requires_grad_(frozen not in name)
    signal = signals(plain)
    gradients = []
    for made in (plain, in_rows(plain)):
        made(signal).square().sum().backward()
        gradients.append({name: parameter.grad for name, parameter in made.named_parameters()})
    expected, found = gradients
    assert [name for name, gradient in found.items() if gradient is None] == [
        name for name, gradient in expected.items() if gradient is None
    ]
    wanted = {name: gradient for name, gradient in expected.items() if gradient is not None}
    assert_same({name: found[name] for name in wanted}, wanted, 1e-11)


def test_a_loss_that_ignores_the_representations_gives_no_wrong_gradient():
    """Nothing, or zero; not a crash in the middle of a backward pass."""
    rows = in_rows(network())
    output = rows(signals(rows))
    (output * 0).sum().backward()
    assert all((parameter.grad == 0).all() for parameter in rows.parameters())


def test_weights_go_from_the_plain_network_to_rows_and_back():
    """A run may be resumed on another machine: the names, the shapes and the order are the same."""
    plain, rows = network(seed=0), in_rows(network(seed=1))
    assert list(plain.state_dict()) == list(rows.state_dict())
    rows.load_state_dict(plain.state_dict())
    signal = signals(plain)
    torch.testing.assert_close(rows(signal), plain(signal), rtol=0, atol=1e-12)
    plain.load_state_dict(rows.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(rows.eval()(signal), plain.eval()(signal), rtol=0, atol=1e-12)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_computes_the_same_and_shares_nothing(copied):
    """Target networks are copies, and worker processes are sent them."""
    rows = in_rows(network())
    signal = signals(rows)
    other = copied(rows)
    assert other.implementation == "rows"
    torch.testing.assert_close(other(signal), rows(signal), rtol=0, atol=0)
    other(signal)
    assert int(rows.blocks[0].norm.num_batches_tracked) == 1


def test_evaluation_draws_nothing_and_changes_nothing():
    """Validation must not move the numbers of the next epoch."""
    rows = in_rows(network(dropout=0.5)).eval()
    before, state = torch.get_rng_state(), copy.deepcopy(rows.state_dict())
    with torch.no_grad():
        rows(signals(rows))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(tensor, state[name]) for name, tensor in rows.state_dict().items())


def test_a_second_derivative_is_refused():
    """It would be wrong: the backward pass is written out and is not itself followed."""
    rows = in_rows(network())
    signal = signals(rows).requires_grad_()
    (gradient,) = torch.autograd.grad(rows(signal).sum(), signal, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def dropped(n=64, p=0.1, seed=0):
    """What dropout takes away of a block whose outputs are all positive, (n, pair, width) of booleans."""
    torch.manual_seed(seed)
    made = CNN(1, 1000, 2, widths=(4,), dropout=p, implementation="rows")
    with torch.no_grad():
        made.blocks[0].norm.bias.fill_(50.0)
    return block_rows.train_block(made.blocks[0], torch.randn(n, 1000, 1)) == 0


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_takes_its_share(p):
    """Of 42,496 values, within 4.5 standard deviations: of all, of each channel and of each signal."""
    gone = dropped(p=p).double()
    for share, count in ((gone.mean(), gone.numel()), (gone.mean((0, 1)), gone[..., 0].numel())):
        assert ((share - p).abs() < 4.5 * math.sqrt(p * (1 - p) / count)).all()


def test_dropout_keeps_the_mean():
    """What is left is made larger by as much as is lost."""
    torch.manual_seed(0)
    features = torch.randn(64, 1000, 1)
    means = []
    for p in (0.0, 0.3):
        torch.manual_seed(0)
        block = CNN(1, 1000, 2, widths=(4,), dropout=p, implementation="rows").blocks[0]
        means.append(float(block_rows.train_block(block, features).detach().mean()))
    assert means[1] == pytest.approx(means[0], rel=0.02)


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5, 8, 16, 664])
def test_what_is_dropped_here_says_nothing_of_what_is_dropped_there(apart):
    """Four numbers come from one draw: neighbours in memory, so of other channels of one sample, must not agree."""
    gone = dropped(n=256).flatten().double()
    gone = (gone - 0.1) / 0.3
    assert abs(float((gone[apart:] * gone[:-apart]).mean())) < 4.5 / math.sqrt(len(gone))


def test_every_level_has_the_same_chance():
    """A chi-square of 64 bins of 400,000 numbers: its mean is 63, its standard deviation 11."""
    torch.manual_seed(0)
    levels = draw_levels(torch.empty(400_001))
    assert levels.shape == (400_001,)
    assert 0 <= float(levels.min()) < float(levels.max()) <= LEVELS - 1
    counts = torch.bincount(levels.long() // (LEVELS // 64), minlength=64).double()
    expected = len(levels) / 64
    assert 20 < float(((counts - expected) ** 2 / expected).sum()) < 63 + 5 * 11.2


def test_dropout_follows_from_the_seed_of_torch_alone():
    """So (seed, epoch) determines a run, and no two steps of it drop the same."""
    assert torch.equal(dropped(seed=3), dropped(seed=3))
    assert not torch.equal(dropped(seed=3), dropped(seed=4))
    torch.manual_seed(0)
    assert not torch.equal(draw_levels(torch.empty(100)), draw_levels(torch.empty(100)))


@pytest.mark.parametrize("p", [0.0, 1e-7])
def test_without_dropout_nothing_is_drawn(p):
    """Less than the chance of one level is none."""
    rows = in_rows(network(dropout=p))
    before = torch.get_rng_state()
    rows(signals(rows))
    assert torch.equal(before, torch.get_rng_state())
