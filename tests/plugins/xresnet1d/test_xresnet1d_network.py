"""xresnet1d: its sizes, its blocks in plain operations, and its embedding."""

from __future__ import annotations

import re

import pytest
import torch
from torch.nn import functional as F

from clocs_core import SettingsError
from clocs_plugins.xresnet1d import clocs_encoders, network
from clocs_plugins.xresnet1d.network import Block


def build(channels=2, samples=200, embedding_dim=16, **options):
    (offer,) = clocs_encoders()
    torch.manual_seed(0)
    return offer.build(offer.options(**options), channels, samples, embedding_dim)


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def count(module):
    return sum(one.numel() for one in module.parameters())


def test_the_network_has_the_size_that_its_documentation_says():
    (said,) = re.findall(r"With 12 leads and E = 512 it has ([\d,]+) parameters", network.__doc__)
    assert count(build(12, 1000, 512)) == int(said.replace(",", ""))


def test_by_default_it_has_fewer_than_ten_million_parameters_and_it_can_be_deep():
    assert count(build(12, 1000, 512)) < 10e6
    assert len(build(1, 1000, 64, blocks=(3, 4, 6, 3), bottleneck=True).blocks) == 16


@pytest.mark.parametrize("bottleneck", [False, True])
@pytest.mark.parametrize("samples", [32, 33, 200, 999, 2500])
def test_positions_are_a_stride_apart_and_the_embedding_is_their_mean(samples, bottleneck):
    made = build(bottleneck=bottleneck, embedding_dim=32).eval()
    signal = noise(3, 2, samples)
    sequence = made.sequence(signal)
    assert sequence.shape == (3, -(-samples // 32), 32)
    assert made.stride == 32
    torch.testing.assert_close(made(signal), sequence.mean(1))


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 2])
def test_a_block_adds_its_convolutions_to_its_shortcut(stride):
    torch.manual_seed(0)
    block, features = Block(4, 6, 3, stride, bottleneck=False).eval(), noise(2, 4, 9)
    for module in block.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.weight.uniform_(0.5, 2)
            module.running_mean.uniform_(-1, 1)

    def normed(given, norm):
        mean, spread = norm.running_mean[:, None], (norm.running_var[:, None] + 1e-5).sqrt()
        return (given - mean) / spread * norm.weight[:, None] + norm.bias[:, None]

    inner = normed(F.conv1d(features, block.convs[0].weight, stride=stride, padding=1), block.convs[1]).clamp(min=0)
    inner = normed(F.conv1d(inner, block.convs[3].weight, padding=1), block.convs[4])
    pooled = F.avg_pool1d(features, 2, ceil_mode=True) if stride == 2 else features
    outer = normed(F.conv1d(pooled, block.shortcut[1].weight), block.shortcut[2])
    torch.testing.assert_close(block(features), (inner + outer).clamp(min=0))


@pytest.mark.parametrize("bottleneck", [False, True])
def test_an_untrained_block_passes_its_shortcut_and_begins_to_learn(bottleneck):
    made = build(bottleneck=bottleneck, embedding_dim=32)
    block = made.blocks[1]
    features = noise(2, 4, 20).relu()
    assert torch.equal(block(features), features)
    made(noise(4, 2, 200)).square().sum().backward()
    assert all(one.convs[-1].weight.grad.any() for one in made.blocks)


@pytest.mark.parametrize("wrong", [{"samples": 31}, {"embedding_dim": 8}])
def test_sizes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(SettingsError, match=r"needs at least 32 samples and 16 dimensions\. Use longer frames"):
        build(**wrong)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("samples", [64, 97])
def test_pictures_with_channels_last_give_the_same(samples, training):
    """As a GPU computes it: the sequence, the gradients, and the running statistics."""
    signal = noise(3, 2, samples).double()
    found = []
    for run in (network.XResNet1d.sequence, lambda made, x: made.of_pictures(network.as_picture(x))):
        made, leaf = build(bottleneck=True, embedding_dim=32).double().train(training), signal.clone().requires_grad_()
        with torch.no_grad():
            for one in made.parameters():  # the last norms of blocks begin with zeros
                one += 0.1
        sequence = run(made, leaf)
        (sequence * torch.arange(32)).sum().backward()
        found.append([sequence, leaf.grad, *(one.grad for one in made.parameters()), *made.buffers()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("channels", [1, 2, 12])
def test_all_features_of_pictures_have_their_channels_last(channels):
    """Also those of one lead, which are in both orders at once."""
    made, orders = build(channels), []

    def look(module, given, found):
        orders.append(found.is_contiguous(memory_format=torch.channels_last))

    for module in made.modules():
        if isinstance(module, torch.nn.Conv1d | torch.nn.BatchNorm1d | torch.nn.MaxPool1d):
            module.register_forward_hook(look)
    made.of_pictures(network.as_picture(noise(3, channels, 200)))
    assert len(orders) > 20
    assert all(orders)


@pytest.mark.cuda
def test_on_a_gpu_it_computes_what_a_cpu_does():
    made, signal = build().eval(), noise(3, 2, 200)
    expected = made.sequence(signal)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        found = made.cuda().sequence(signal.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
