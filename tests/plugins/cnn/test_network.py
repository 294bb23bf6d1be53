"""The paper's encoder."""

from __future__ import annotations

import pytest
import torch

from clocs_core import SettingsError
from clocs_plugins.cnn import CNNOptions, clocs_encoders
from clocs_plugins.cnn.network import CNN, least_samples, samples_left

STATE = [
    f"blocks.{block}.{part}"
    for block in range(3)
    for part in (
        *("conv.weight", "conv.bias", "norm.weight", "norm.bias"),
        *("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"),
    )
] + ["linear.weight", "linear.bias"]


def build(channels=1, samples=2500, embedding_dim=128, **options):
    (offer,) = clocs_encoders()
    return offer.build(offer.options(**options), channels, samples, embedding_dim)


@pytest.mark.parametrize("layer4_relu", [True, False])
def test_the_network_has_the_papers_size(layer4_relu):
    """45,304 parameters with one lead, 2500 samples and E = 128, and 320 features before the linear layer."""
    network = build(layer4_relu=layer4_relu)
    assert sum(parameter.numel() for parameter in network.parameters()) == 45_304
    assert network.linear.in_features == 320


@pytest.mark.parametrize("layer4_relu", [True, False])
def test_the_names_in_a_checkpoint_do_not_change(layer4_relu):
    """Old checkpoints must load, and with or without the ReLU."""
    assert list(build(layer4_relu=layer4_relu).state_dict()) == STATE


@pytest.mark.parametrize("samples", [388, 389, 400, 500, 999, 1000, 1250, 2499, 2500, 5000])
@pytest.mark.parametrize("channels", [1, 12])
def test_frames_of_any_length_can_be_encoded(samples, channels):
    """The size of the linear layer is arithmetic; one sample off and the first step fails."""
    network = build(channels=channels, samples=samples, embedding_dim=7)
    assert network(torch.randn(2, channels, samples)).shape == (2, 7)


@pytest.mark.parametrize(("blocks", "kernel", "stride"), [(3, 7, 3), (1, 7, 3), (2, 3, 1), (4, 5, 2), (3, 2, 4)])
def test_the_least_length_is_the_least(blocks, kernel, stride):
    """One sample fewer leaves nothing, by the arithmetic and by torch itself."""
    least = least_samples(blocks, kernel, stride)
    assert samples_left(least, blocks, kernel, stride) == 1
    assert samples_left(least - 1, blocks, kernel, stride) == 0
    network = CNN(1, least, 2, widths=(3,) * blocks, kernel=kernel, stride=stride)
    assert network(torch.randn(2, 1, least)).shape == (2, 2)
    with pytest.raises(RuntimeError, match=r"[Oo]utput size|[Kk]ernel size"):
        network(torch.randn(2, 1, least - 1))


@pytest.mark.parametrize("samples", [0, 6, 100, 387])
def test_too_short_a_frame_is_refused_with_the_length_that_works(samples):
    """A user mistake: the message says what to change."""
    with pytest.raises(SettingsError, match=f"frames of {samples} samples.*at least 388. Use longer frames"):
        build(samples=samples)


def test_a_signal_is_encoded_by_itself_in_evaluation():
    """Scores must not depend on how a test set is cut into batches."""
    network = build().eval()
    signal = torch.randn(5, 1, 2500, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        together, alone = network(signal), torch.cat([network(one[None]) for one in signal])
    torch.testing.assert_close(together, alone)


def test_layer_4_ends_in_a_relu_unless_told_otherwise():
    """The paper's table has it, the released code has not; the two must be told apart."""
    network, released = build().eval(), build(layer4_relu=False).eval()
    released.load_state_dict(network.state_dict())
    signal = torch.randn(8, 1, 2500)
    with torch.no_grad():
        assert (released(signal) < 0).any()
        torch.testing.assert_close(network(signal), released(signal).clamp(min=0))


def test_each_block_is_the_papers():
    """Order and constants of the table: what makes a number comparable with the published one."""
    network = build(dropout=0.1)
    for block, (before, after) in zip(network.blocks, [(1, 4), (4, 16), (16, 32)], strict=True):
        conv, norm, relu, pool, dropout = block
        assert (conv.in_channels, conv.out_channels) == (before, after)
        assert (conv.kernel_size, conv.stride, conv.padding) == ((7,), (3,), (0,))
        assert isinstance(norm, torch.nn.BatchNorm1d)
        assert isinstance(relu, torch.nn.ReLU)
        assert (pool.kernel_size, pool.stride) == (2, 2)
        assert dropout.p == 0.1


def test_options_reach_the_network():
    """`-o widths=8,8 -o kernel=5 -o stride=2 -o dropout=0` builds what it says."""
    network = build(widths=(8, 6), kernel=5, stride=2, dropout=0.0, samples=100, embedding_dim=3)
    convolutions = [block.conv for block in network.blocks]
    assert [conv.out_channels for conv in convolutions] == [8, 6]
    assert [(conv.kernel_size, conv.stride) for conv in convolutions] == [((5,), (2,))] * 2
    assert [block.dropout.p for block in network.blocks] == [0.0, 0.0]
    assert network(torch.randn(2, 1, 100)).shape == (2, 3)


@pytest.mark.parametrize(
    "wrong", [{"dropout": 1.0}, {"dropout": -0.1}, {"widths": ()}, {"widths": (4, 0)}, {"kernel": 0}, {"stride": 0}]
)
def test_options_that_make_no_network_are_refused(wrong):
    """By the option's name, before anything is built."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        CNNOptions(**wrong)
