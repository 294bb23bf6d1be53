"""The residual encoder: its shapes, its blocks, and what a checkpoint knows of it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from clocs_core import SettingsError
from clocs_plugins.resnet1d import ResNet1dOptions, clocs_encoders, network
from clocs_plugins.resnet1d.network import Block, strides_for

SMALL = {"widths": (4, 6), "blocks": 2, "kernel": 3}


def build(channels=1, samples=2500, embedding_dim=128, **options):
    (offer,) = clocs_encoders()
    torch.manual_seed(0)
    return offer.build(offer.options(**options), channels, samples, embedding_dim)


def noise(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def wake(module):
    """Give the norms that begin at zero, and all others, weights of a trained network."""
    for number, norm in enumerate(one for one in module.modules() if isinstance(one, torch.nn.BatchNorm1d)):
        norm.weight.data = 0.5 + noise(norm.num_features, seed=number).abs()
        norm.bias.data = noise(norm.num_features, seed=100 + number)
        norm.running_mean = noise(norm.num_features, seed=200 + number)
        norm.running_var = 0.5 + noise(norm.num_features, seed=300 + number).abs()
    return module


def test_the_network_has_the_size_that_its_documentation_says():
    """Whoever compares encoders compares sizes; a number in prose is wrong after the first change."""
    (said,) = re.findall(r"([\d,]+) parameters with one lead and E = 128", network.__doc__)
    assert sum(parameter.numel() for parameter in build().parameters()) == int(said.replace(",", ""))


def test_the_lengths_after_each_stage_are_those_that_its_documentation_says():
    """They are what a receptive field, and the cost of a step, are worked out from."""
    encoder = build()
    features = encoder.stem(noise(1, 1, 2500))
    found = [features.shape[-1]]
    for stage in encoder.stages:
        features = stage(features)
        found.append(features.shape[-1])
    stem, *stages = map(str, found)
    assert f"{stem} after the stem and {', '.join(stages)} after the stages" in network.__doc__


@pytest.mark.parametrize("samples", [2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 100, 999, 2500])
@pytest.mark.parametrize("channels", [1, 12])
def test_frames_of_any_length_and_any_channels_can_be_encoded(samples, channels):
    """In training too, and the last batch of an epoch can be a single frame: BatchNorm needs two positions of it."""
    encoder = build(channels, samples, 7, widths=(4, 5, 6, 7))
    assert encoder(noise(3, channels, samples)).shape == (3, 7)
    assert encoder(noise(1, channels, samples)).shape == (1, 7)
    assert encoder.eval()(noise(1, channels, samples)).isfinite().all()


@pytest.mark.parametrize("samples", [0, 1])
def test_a_frame_of_one_sample_is_refused(samples):
    """A user mistake: the message says what to change."""
    with pytest.raises(SettingsError, match=f"frames of {samples} samples, but needs at least 2. Use longer frames"):
        build(samples=samples)


@pytest.mark.parametrize(
    ("samples", "strides"),
    [(2500, [2, 2, 2, 2, 2]), (33, [2, 2, 2, 2, 2]), (32, [2, 2, 2, 2, 1]), (16, [2, 2, 2, 1, 1]), (2, [1] * 5)],
)
def test_short_frames_are_halved_until_two_positions_are_left(samples, strides):
    """Halved once more, nothing would be left that varies over time."""
    assert strides_for(samples, 5) == strides


def test_a_signal_is_encoded_by_itself_in_evaluation():
    """Scores must not depend on how a test set is cut into batches."""
    encoder, signal = wake(build(samples=200, **SMALL)).double().eval(), noise(5, 1, 200, dtype=torch.float64)
    with torch.no_grad():
        together, alone = encoder(signal), torch.cat([encoder(one[None]) for one in signal])
    torch.testing.assert_close(together, alone)


def test_the_gradient_reaches_every_parameter():
    """A block that is left out of the sum trains without complaint; here every weight must count."""
    encoder = wake(build(3, 100, 5, dropout=0.0, **SMALL))
    encoder(noise(6, 3, 100)).square().sum().backward()
    assert [name for name, one in encoder.named_parameters() if one.grad is None or not one.grad.any()] == []


def test_an_untrained_block_hands_on_its_shortcut():
    """Its last norm begins at zero: on features of a ReLU it is the identity, so depth costs nothing at the start."""
    features = noise(4, 6, 50).relu()
    assert torch.equal(Block(6, 6, kernel=5)(features), features)
    encoder = build(**SMALL)
    begin = {name: bool(one.any()) for name, one in encoder.named_parameters() if "norm" in name and "weight" in name}
    assert {name for name, awake in begin.items() if not awake} == {name for name in begin if "norm2" in name}


def test_an_untrained_block_begins_to_learn():
    """A norm at zero hides the convolutions behind it from the first gradient only."""
    block = Block(3, 3, kernel=3)
    optimiser = torch.optim.SGD(block.parameters(), lr=1e-3)
    for _ in range(2):
        optimiser.zero_grad()
        block(noise(4, 3, 20).relu()).square().sum().backward()
        optimiser.step()
    assert all(one.grad.any() for one in block.parameters())


def convolve(features, weight, stride):
    """Conv1d in loops: zeros beyond the ends, (n, before, sample) to (n, after, …)."""
    after, before, kernel = weight.shape
    rows = []
    for row in features.tolist():
        length = len(row[0])
        at = [
            [
                sum(
                    weight[o][i][k].item() * row[i][centre + k - kernel // 2]
                    for i in range(before)
                    for k in range(kernel)
                    if 0 <= centre + k - kernel // 2 < length
                )
                for centre in range(0, length, stride)
            ]
            for o in range(after)
        ]
        rows.append(at)
    return torch.tensor(rows, dtype=torch.float64)


def normalise(features, norm, training):
    """BatchNorm by its formula: each channel over batch and time in training, by what was seen before in evaluation."""
    made = torch.empty_like(features)
    for channel in range(features.shape[1]):
        values = features[:, channel]
        mean, variance = norm.running_mean[channel], norm.running_var[channel]
        if training:
            mean = sum(values.flatten().tolist()) / values.numel()
            variance = sum((value - mean) ** 2 for value in values.flatten().tolist()) / values.numel()
        scaled = (values - mean) / (variance + norm.eps) ** 0.5
        made[:, channel] = norm.weight[channel] * scaled + norm.bias[channel]
    return made


def average_pairs(features):
    """The mean of every two samples; an odd one at the end is its own."""
    pieces = [features[..., start : start + 2].mean(-1) for start in range(0, features.shape[-1], 2)]
    return torch.stack(pieces, -1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("samples", [10, 11])
@pytest.mark.parametrize("projects", [True, False])
def test_a_block_is_its_formula(projects, samples, training):
    """ReLU(norm(conv(ReLU(norm(conv)))) + shortcut), written from the description, in loops."""
    torch.manual_seed(1)
    sizes = {"before": 2, "after": 3, "stride": 2} if projects else {"before": 3, "after": 3, "stride": 1}
    block = wake(Block(**sizes, kernel=5, projects=projects)).double().train(training)
    features = noise(4, sizes["before"], samples, dtype=torch.float64)
    with torch.no_grad():
        inner = normalise(convolve(features, block.conv1.weight, sizes["stride"]), block.norm1, training).clamp(min=0)
        branch = normalise(convolve(inner, block.conv2.weight, 1), block.norm2, training)
        shortcut = features
        if projects:
            projected = convolve(average_pairs(features), block.shortcut.conv.weight, 1)
            shortcut = normalise(projected, block.shortcut.norm, training)
        torch.testing.assert_close(block(features), (branch + shortcut).clamp(min=0))


def test_dropout_is_between_the_convolutions_and_only_in_training():
    """Where Hannun and Ribeiro have it; on the shortcut it would lose what the block is given."""
    block = Block(4, 4, kernel=3, dropout=0.5)
    features = noise(2, 4, 30).relu()
    assert torch.equal(block(features), features)  # the branch is silent, and the shortcut is whole
    wake(block).norm1.bias.data += 10  # past the ReLU, so that a zero before the second convolution is a drop
    seen = []
    block.conv2.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    assert not torch.equal(block(features), block(features))
    assert 0.3 < (seen[0] == 0).float().mean() < 0.7
    block.eval()
    assert torch.equal(block(features), block(features))


def test_the_representation_is_the_mean_over_time():
    """A beat counts the same wherever it is in the frame."""
    encoder = wake(build(samples=100, embedding_dim=5, **SMALL)).double().eval()
    signal = noise(3, 1, 100, dtype=torch.float64)
    with torch.no_grad():
        features = encoder.stages(encoder.stem(signal))
        mean = sum(features[..., at] for at in range(features.shape[-1])) / features.shape[-1]
        torch.testing.assert_close(encoder(signal), mean @ encoder.linear.weight.T + encoder.linear.bias)


NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def norm(name):
    return [f"{name}.{part}" for part in NORM]


def test_the_names_in_a_checkpoint_do_not_change():
    """Old checkpoints must load."""
    expected = ["stem.conv.weight", *norm("stem.norm")]
    for stage in range(4):
        for block in range(2):
            for part in ("1", "2"):
                expected += [f"stages.{stage}.{block}.conv{part}.weight", *norm(f"stages.{stage}.{block}.norm{part}")]
            if block == 0:
                expected += [f"stages.{stage}.0.shortcut.conv.weight", *norm(f"stages.{stage}.0.shortcut.norm")]
    assert list(build().state_dict()) == [*expected, "linear.weight", "linear.bias"]


@pytest.mark.parametrize("samples", [2, 16, 2500])
def test_weights_do_not_depend_on_the_length_of_a_frame(samples):
    """An encoder of ten seconds can be read for frames of five."""
    build(samples=samples, **SMALL).load_state_dict(build(samples=1000, **SMALL).state_dict())


def test_options_reach_the_network():
    """`-o widths=8,6,4 -o blocks=3 -o kernel=5 -o dropout=0` builds what it says."""
    encoder = build(2, 100, 3, widths=(8, 6, 4), blocks=3, kernel=5, dropout=0.0)
    blocks = [block for stage in encoder.stages for block in stage]
    assert [len(stage) for stage in encoder.stages] == [3, 3, 3]
    assert [block.conv2.out_channels for block in blocks] == [8, 8, 8, 6, 6, 6, 4, 4, 4]
    assert {conv.kernel_size for block in blocks for conv in (block.conv1, block.conv2)} == {(5,)}
    assert {block.dropout.p for block in blocks} == {0.0}
    assert (encoder.stem.conv.in_channels, encoder.stem.conv.kernel_size) == (2, (5,))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"dropout": 1.0}, {"dropout": -0.1}, {"widths": ()}, {"widths": (4, 0)}),
        *({"kernel": 0}, {"kernel": 4}, {"blocks": 0}),
    ],
)
def test_options_that_make_no_network_are_refused(wrong):
    """By the option's name, before anything is built."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        ResNet1dOptions(**wrong)


def test_a_small_one_learns_in_a_few_steps():
    """Two rhythms of different rates are told apart: forward, backward and the norms work together."""
    encoder = build(samples=200, embedding_dim=2, dropout=0.0, **SMALL)
    time, label = torch.arange(200) / 200, torch.arange(32) % 2
    signal = torch.sin(2 * torch.pi * (8 + 12 * label[:, None]) * (time + torch.rand(32, 1)))[:, None]
    optimiser = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(encoder(signal), label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.2


def test_the_card_imports_no_torch():
    """Listing plugins must stay instant."""
    code = "import sys, clocs_plugins.resnet1d; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("samples", [2, 17, 100, 999, 2500])
def test_the_sequence_is_what_the_network_takes_the_mean_of(samples):
    """So it has the same weights, and a representation is the linear layer of its mean."""
    encoder, signal = wake(build(3, samples, 8, **SMALL)).eval(), noise(2, 3, samples)
    sequence = encoder.sequence(signal)
    assert sequence.shape == (2, -(-samples // encoder.stride), encoder.width)
    assert torch.equal(encoder.linear(sequence.transpose(1, 2).mean(-1)), encoder(signal))


@pytest.mark.parametrize(("samples", "stride"), [(2500, 32), (16, 8), (2, 1)])
def test_the_stride_of_a_sequence_is_that_of_all_its_layers(samples, stride):
    """Frames that are too short to be halved again have a smaller one."""
    assert (build(samples=samples).stride, build(samples=samples).width) == (stride, 128)


def test_a_sequence_moves_with_its_signal():
    """By one position for every stride of samples, away from the ends."""
    encoder = wake(build(1, 400, 8, **SMALL)).eval()
    signal = noise(1, 1, 400, dtype=torch.float64)
    encoder, stride = encoder.double(), encoder.stride
    here, moved = encoder.sequence(signal), encoder.sequence(signal.roll(3 * stride, dims=-1))
    assert torch.allclose(moved[:, 13:-10], here[:, 10:-13])
