"""Encoders that read a part of their input: the cut is compared with loops over channels and samples."""

import numpy as np
import pytest
import torch
from torch import nn

from clocs_core.artifacts.partial_input import Reading, build_coarser, weights_of_reader


class Seen(nn.Module):
    """An encoder that returns its input, flattened, and as a sequence the samples that it is given."""

    stride, width, causal = 1, 2, True

    def forward(self, signal):
        return signal.flatten(1)

    def sequence(self, signal):
        return signal.transpose(1, 2)


def means(signal, first, end, average):
    """The means of adjacent samples of some channels, by loops."""
    rows = []
    for one in signal.tolist():
        rows.append([])
        for channel in one[first:end]:
            for start in range(0, len(channel), average):
                part = channel[start : start + average]
                rows[-1].append(sum(part) / len(part))
    return np.array(rows)


@pytest.mark.parametrize(("first", "end"), [(0, None), (0, 2), (1, 2), (1, None)])
@pytest.mark.parametrize("average", [1, 2, 3, 10])
def test_an_encoder_reads_means_of_its_own_channels(first, end, average):
    signal = torch.randn(4, 3, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = Reading(Seen(), first, end, average)(signal)
    np.testing.assert_allclose(found.numpy(), means(signal, first, end, average), rtol=1e-12)


def test_the_sequence_is_of_the_same_part_and_counts_samples_of_the_whole():
    signal = torch.randn(2, 3, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    reading = Reading(Seen(), 1, None, 4)
    assert (reading.stride, reading.width, reading.causal) == (4, 2, True)
    found = reading.sequence(signal).transpose(1, 2).flatten(1)
    np.testing.assert_allclose(found.numpy(), means(signal, 1, None, 4), rtol=1e-12)
    assert reading.sequence(signal).shape[1] == 3  # samples / stride, rounded up


def test_an_encoder_without_a_sequence_has_no_stride():
    assert not hasattr(Reading(nn.Flatten(), 0, None, 2), "stride")


@pytest.mark.parametrize("average", [1, 3])
def test_the_weights_of_one_reader_fit_the_network_that_its_file_describes(average):
    torch.manual_seed(0)
    parts = [Reading(nn.Linear(4, 2), 0, 1, 1), Reading(nn.Linear(4, 2), 1, 2, average)]
    built = build_coarser(lambda samples: nn.Linear(samples, 2), samples=4 * average, average=average)
    built.load_state_dict(weights_of_reader(nn.ModuleList(parts).state_dict(), 1, average))
    signal = torch.randn(5, 1, 4 * average)
    torch.testing.assert_close(built(signal), parts[1](torch.cat([signal * 0, signal], dim=1)))
