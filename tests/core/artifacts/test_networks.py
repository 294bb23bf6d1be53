"""A network is built only where the file has weights for it, and is given only weights of its types."""

from __future__ import annotations

import time

import pytest
import torch
from fake_encoders import CPU, installed, plan_of, write_encoder
from torch import nn

from clocs_core.artifacts.encoder import load_encoder
from clocs_core.artifacts.networks import load_weights, no_larger_than
from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.errors import RunFolderError


@pytest.fixture(scope="module")
def catalogue():
    return installed()


@pytest.fixture(scope="module")
def encoder_file(tmp_path_factory, catalogue):
    return write_encoder(tmp_path_factory.mktemp("run"), plan_of(catalogue))[1]


@pytest.mark.parametrize(
    "sizes",
    [
        {"count": 10**6},
        {"embedding_dim": 10**8},
        {"embedding_dim": 2**31 - 1},
        {"frame_samples": 10**9},
        {"input_channels": 10**8},
        {"options": {"widths": [4, 10**7, 32]}},
        {"options": {"widths": [4] * 20_000}},
        {"options": {"kernel": 10**9}},
    ],
    ids=["count", "dim", "largest dim", "samples", "channels", "width", "layers", "kernel"],
)
def test_absurd_sizes_are_refused_before_anything_of_that_size_is_built(tmp_path, catalogue, encoder_file, sizes):
    """A card of a stranger must not cost gigabytes or minutes."""
    tensors, about = read_tensors(encoder_file)
    about["encoder"].update({**sizes, "options": {**about["encoder"]["options"], **sizes.get("options", {})}})
    save_tensors(tensors, about, tmp_path / "encoder.safetensors")
    began = time.process_time()
    with pytest.raises(RunFolderError):
        load_encoder(tmp_path, catalogue, CPU)
    assert time.process_time() - began < 2


def test_only_what_is_built_inside_is_counted():
    with no_larger_than({}):
        nn.Linear(900, 1000)
        with pytest.raises(ValueError, match="declares a far larger network than the file has weights for"):
            nn.Linear(1100, 1000)
    nn.Linear(1100, 1000)


def test_modules_without_weights_are_counted_too():
    with no_larger_than({}), pytest.raises(ValueError, match="far larger network"):
        nn.ModuleList([nn.ReLU()] * 10_001)


@pytest.mark.parametrize("kind", [torch.int8, torch.float16, torch.float64])
def test_weights_of_another_type_are_refused(kind):
    """torch converts them without a word."""
    network = nn.Linear(2, 1)
    weights = {"weight": torch.ones(1, 2).to(kind), "bias": torch.zeros(1)}
    with pytest.raises(ValueError, match=f"weight holds {kind}, expected torch.float32"):
        load_weights(network, weights)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value):
    network = nn.BatchNorm1d(2)
    weights = {**network.state_dict(), "running_mean": torch.tensor([0.0, value])}
    with pytest.raises(ValueError, match="running_mean holds numbers that are not finite"):
        load_weights(network, weights)
    load_weights(network, weights, finite=False)


def test_a_mask_of_infinities_is_no_fault():
    network = nn.Module()
    network.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    load_weights(network, {"mask": torch.tensor([-torch.inf, 0.0])})
    assert network.mask.tolist() == [-torch.inf, 0.0]
