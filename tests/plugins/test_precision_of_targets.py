"""A network that follows the encoder computes as the encoder does: in bf16 where the run asks for it."""

from __future__ import annotations

import pytest
import torch

from clocs_core import Batch, Setup, SignalFacts, Task, Views
from clocs_core.train.step import Encoding, loss_of
from clocs_plugins import byol, jepa, moco
from clocs_plugins.vit1d.network import Vit1d

FOLLOWERS = {"byol": (byol, "target"), "moco": (moco, "slow.0"), "jepa": (jepa, "teacher")}


@pytest.mark.parametrize("name", FOLLOWERS)
@pytest.mark.parametrize(("autocast", "dtype"), [("none", torch.float32), ("bf16", torch.bfloat16)])
def test_the_network_that_follows_has_the_precision_of_the_encoder(name, autocast, dtype):
    plugin, place = FOLLOWERS[name]
    reader = Vit1d(2, 80, 16, patch=4, layers=1, heads=2)
    (offer,) = [one for one in plugin.clocs_objectives() if one.name == name]
    signals = SignalFacts(samples=80, channels=("I", "II"), channel_axis=-2)
    setup = Setup(encoder=reader, embedding_dim=16, task=Task("t", ("a", "b")), signals=signals, autocast=autocast)
    objective, seen = offer.build(offer.options(), setup), []
    objective.get_submodule(place).embed.register_forward_hook(lambda *call: seen.append(call[-1].dtype))
    ids = torch.arange(3)
    signal = torch.randn(2, 3, 2, 80)
    views = Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids))
    loss, _ = loss_of(objective, Encoding([reader], autocast=autocast), views, torch.Generator())
    assert seen == [dtype]
    assert loss.dtype == torch.float32
    assert loss.isfinite()
