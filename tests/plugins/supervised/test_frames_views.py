"""The views of supervised pre-training."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from clocs_core import Batch, Needs
from clocs_plugins.supervised import clocs_methods, clocs_views


def batch_of(segments=1, batch=3, channels=1, samples=5):
    ids = torch.arange(batch)
    signal = torch.arange(batch * segments * channels * samples, dtype=torch.float32)
    return Batch(signal.reshape(batch, segments, channels, samples), ids, ids, ids, ids, label=ids)


def generate():
    (offer,) = clocs_views()
    return offer.build(offer.options())


def test_the_frame_is_the_only_view_and_keeps_its_batch():
    """The labels are in the batch, and a copy of every batch is bandwidth for nothing."""
    batch = batch_of()
    views = generate()(batch, torch.Generator())
    assert views.signal.shape == (1, 3, 1, 5)
    assert views.batch is batch
    assert torch.equal(views.signal[0], batch.signal[:, 0])
    assert views.signal.data_ptr() == batch.signal.data_ptr()
    assert views.perturb == "every"


def test_nothing_is_drawn():
    """The generator is left where it was."""
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    generate()(batch_of(), generator)
    assert torch.equal(before, generator.get_state())


def test_an_instance_is_one_channel_of_one_frame():
    """As in evaluation, where frames are classified one by one."""
    (offer,) = clocs_views()
    assert offer.needs(offer.options()) == Needs(segments=1, channels="each")


def test_more_than_one_segment_is_refused():
    """A label of the first segment says nothing of the second."""
    with pytest.raises(ValueError, match=r"`frames` got a signal of shape \(3, 2, 1, 5\).*with 1 segment"):
        generate()(batch_of(segments=2), torch.Generator())


def test_supervised_is_put_together_as_in_the_paper():
    """The paper's encoder, frames as they are, and no perturbation."""
    (method,) = clocs_methods()
    assert (method.name, method.views, method.encoder, method.objective) == ("supervised", "frames", "cnn", "classify")
    assert method.perturbations == ()


def test_the_card_of_supervised_imports_no_torch():
    """It imports this file's subject, and listing plugins must stay instant."""
    code = "import sys, clocs_plugins.supervised; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
