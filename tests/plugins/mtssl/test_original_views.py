"""The views of MT-SSL: the frame, then one for each perturbation of the run."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from clocs_core import Batch, Needs
from clocs_core.train.normalise import leave
from clocs_core.train.step import ViewMaker
from clocs_plugins.mtssl import clocs_views


def batch_of(segments=1, batch=3, channels=1, samples=5):
    ids = torch.arange(batch)
    signal = torch.arange(batch * segments * channels * samples, dtype=torch.float32)
    return Batch(signal.reshape(batch, segments, channels, samples), ids, ids, ids, ids)


def generate():
    (offer,) = clocs_views()
    return offer.build(offer.options())


def test_the_frame_is_the_only_view_and_shares_the_memory_of_the_batch():
    """A copy of every batch is bandwidth for nothing."""
    batch = batch_of()
    views = generate()(batch, torch.Generator())
    assert views.signal.shape == (1, 3, 1, 5)
    assert views.batch is batch
    assert torch.equal(views.signal[0], batch.signal[:, 0])
    assert views.signal.data_ptr() == batch.signal.data_ptr()


def test_core_appends_a_view_for_each_perturbation_in_their_order():
    """The heads know their views by this order, and the first view must stay clean."""
    perturbations = (lambda signal, _: signal + 100, lambda signal, _: -signal)
    batch = batch_of()
    views = ViewMaker(generate(), perturbations, normalise=leave)(batch, torch.Generator())
    frame = batch.signal[:, 0]
    assert torch.equal(views.signal, torch.stack([frame, frame + 100, -frame]))
    assert views.perturb == "one each"


def test_nothing_is_drawn():
    """The randomness is the perturbations': the generator is left where it was."""
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    generate()(batch_of(), generator)
    assert torch.equal(before, generator.get_state())


def test_an_instance_is_one_channel_of_one_frame_with_something_to_tell_it_from():
    """Without a perturbation there would be no task; core refuses such a run by this."""
    (offer,) = clocs_views()
    assert offer.needs(offer.options()) == Needs(segments=1, channels="each", perturbations="some")


def test_more_than_one_segment_is_refused():
    """Each segment would be taken for a perturbed view."""
    with pytest.raises(ValueError, match=r"`original` got a signal of shape \(3, 2, 1, 5\).*with 1 segment"):
        generate()(batch_of(segments=2), torch.Generator())


def test_the_card_of_mt_ssl_imports_no_torch():
    """It imports this file's subject, and listing plugins must stay instant."""
    code = "import sys, clocs_plugins.mtssl; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
