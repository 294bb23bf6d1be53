"""The views of CMSC."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from clocs_core import Batch, Needs
from clocs_plugins.patient_contrast import clocs_methods, clocs_views
from clocs_plugins.patient_contrast.cmsc import SegmentsOptions


def batch_of(segments, batch=3, channels=2, samples=5):
    ids = torch.arange(batch)
    signal = torch.arange(batch * segments * channels * samples, dtype=torch.float32)
    return Batch(signal.reshape(batch, segments, channels, samples), ids, ids, ids, ids)


@pytest.mark.parametrize("segments", [2, 3, 5])
def test_each_segment_is_a_view_in_its_order(segments):
    """A mixed-up axis would contrast patients with each other and train without complaint."""
    offer = next(one for one in clocs_views() if one.name == "segments")
    batch = batch_of(segments)
    views = offer.build(offer.options(segments=segments))(batch, torch.Generator())
    assert views.signal.shape == (segments, 3, 2, 5)
    assert views.batch is batch
    assert views.target is None
    for instance in range(3):
        for segment in range(segments):
            assert torch.equal(views.signal[segment, instance], batch.signal[instance, segment])


def test_views_share_the_memory_of_the_batch():
    """A copy of every batch is bandwidth for nothing."""
    offer = next(one for one in clocs_views() if one.name == "segments")
    batch = batch_of(2)
    views = offer.build(offer.options())(batch, torch.Generator())
    assert views.signal.untyped_storage().data_ptr() == batch.signal.untyped_storage().data_ptr()


def test_nothing_is_drawn():
    """CMSC has no randomness of its own: the generator is left where it was."""
    offer = next(one for one in clocs_views() if one.name == "segments")
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    offer.build(offer.options())(batch_of(2), generator)
    assert torch.equal(before, generator.get_state())


def test_an_instance_is_one_channel_of_adjacent_frames():
    """The store makes instances by this, so it must follow the option."""
    offer = next(one for one in clocs_views() if one.name == "segments")
    assert offer.needs(offer.options()) == Needs(segments=2, channels="each")
    assert offer.needs(offer.options(segments=4)) == Needs(segments=4, channels="each")


def test_another_number_of_segments_is_refused():
    """Two segments of three would silently be another method."""
    offer = next(one for one in clocs_views() if one.name == "segments")
    make = offer.build(offer.options(segments=2))
    with pytest.raises(ValueError, match=r"got a signal of shape \(3, 3, 2, 5\).*with 2 segments"):
        make(batch_of(3), torch.Generator())


def test_one_segment_cannot_be_contrasted():
    """The option is refused before anything is prepared."""
    with pytest.raises(ValueError, match="segments must be 2 or more, got 1"):
        SegmentsOptions(segments=1)


def test_cmsc_is_put_together_as_in_the_paper():
    """Two segments, the paper's encoder and loss, no perturbation."""
    method = next(one for one in clocs_methods() if one.name == "cmsc")
    assert (method.name, method.views, method.encoder, method.loss) == ("cmsc", "segments", "cnn", "patient-nce")
    assert method.objective is None
    assert method.perturbations == ()


def test_the_card_imports_no_torch():
    """It imports this file's subject, and listing plugins must stay instant."""
    code = "import sys, clocs_plugins.patient_contrast; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("leads", "reads"), [("each", "one"), ("all", "all")])
def test_leads_are_read_one_by_one_or_together(leads, reads):
    offer = next(one for one in clocs_views() if one.name == "segments")
    needs = offer.needs(SegmentsOptions(leads=leads))
    assert (needs.segments, needs.channels, needs.encoder_channels) == (2, leads, reads)
