"""The transformer: its tokens, its places in time, its attention in loops, and its embedding."""

from __future__ import annotations

import math

import pytest
import torch

from clocs_core import SettingsError
from clocs_plugins.vit1d import clocs_encoders
from clocs_plugins.vit1d.network import Layer, places


def build(channels=2, samples=100, embedding_dim=8, **options):
    (offer,) = clocs_encoders()
    torch.manual_seed(0)
    return offer.build(offer.options(**{"layers": 2, "heads": 2, **options}), channels, samples, embedding_dim).eval()


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_a_layer_is_attention_and_a_perceptron_in_loops():
    torch.manual_seed(0)
    layer, tokens = Layer(6, 2, 0.0).double().eval(), noise(1, 4, 6).double()
    normed = layer.norm1(tokens)[0]
    q, k, v = (
        normed @ layer.to_qkv.weight[i * 6 : i * 6 + 6].T + layer.to_qkv.bias[i * 6 : i * 6 + 6] for i in range(3)
    )
    seen = torch.zeros(4, 6).double()
    for head in range(2):
        cut = slice(head * 3, head * 3 + 3)
        for i in range(4):
            scores = [math.exp(float(q[i, cut] @ k[j, cut]) / math.sqrt(3)) for j in range(4)]
            for j in range(4):
                seen[i, cut] += scores[j] / sum(scores) * v[j, cut]
    middle = tokens[0] + seen @ layer.after.weight.T + layer.after.bias
    expected = middle + layer.perceptron(layer.norm2(middle))
    torch.testing.assert_close(layer(tokens)[0], expected)


@torch.no_grad()
def test_a_joined_token_is_a_patch_of_all_leads():
    """Without layers the sequence is the norm of the linear map of each patch, its place added."""
    made, signal = build(layers=1), noise(3, 2, 100)
    made.layers = torch.nn.Identity()
    for t in range(5):
        patch = torch.cat([signal[:, lead, t * 20 : t * 20 + 20] for lead in range(2)], -1)
        token = made.embed(patch) + made.lead[0, 0] + places(5, 8, signal)[t]
        torch.testing.assert_close(made.sequence(signal)[:, t], made.norm(token))


@torch.no_grad()
def test_leads_as_tokens_are_read_one_by_one_and_meaned():
    made, signal = build(layers=1, leads="tokens"), noise(3, 2, 100)
    made.layers = torch.nn.Identity()
    for t in range(5):
        tokens = [
            made.norm(made.embed(signal[:, lead, t * 20 : t * 20 + 20]) + made.lead[lead, 0] + places(5, 8, signal)[t])
            for lead in range(2)
        ]
        torch.testing.assert_close(made.sequence(signal)[:, t], (tokens[0] + tokens[1]) / 2)


@pytest.mark.parametrize("leads", ["joined", "tokens"])
@pytest.mark.parametrize("samples", [20, 39, 100, 1000])
def test_a_signal_may_have_any_length(leads, samples):
    made = build(leads=leads)
    assert made.sequence(noise(2, 2, samples)).shape == (2, -(-samples // 20), 8)
    assert made(noise(2, 2, samples)).shape == (2, 8)


def test_places_differ():
    """Two positions with one place could not be told apart."""
    found = places(500, 32, torch.zeros(1))
    distances = torch.cdist(found, found) + 9 * torch.eye(500)
    assert float(distances.min()) > 0.5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"samples": 19}, r"frames of 19 samples, but a patch has 20\. Use longer frames, or a smaller `patch`"),
        ({"embedding_dim": 9, "heads": 3}, r"9 dimensions and 3 heads: the dimension must be even and a multiple"),
        ({"embedding_dim": 8, "heads": 3}, r"8 dimensions and 3 heads"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(SettingsError, match=message):
        build(**wrong)
