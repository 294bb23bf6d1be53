"""The views of random lead masking."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core import Batch, Needs
from clocs_core.train.normalise import min_max
from clocs_core.train.step import ViewMaker
from clocs_plugins.lead_masking import clocs_methods, clocs_views
from clocs_plugins.lead_masking.masked_leads import MaskedLeadsOptions


def batch_of(batch=3, segments=2, leads=4, samples=5, dtype=torch.float32):
    """A batch in which no sample is zero and no two are equal."""
    ids = torch.arange(batch)
    signal = 1 + torch.arange(batch * segments * leads * samples, dtype=dtype)
    return Batch(signal.reshape(batch, segments, leads, samples), ids, ids, ids, ids)


def make(batch, seed=0, **options):
    (offer,) = clocs_views()
    return offer.build(offer.options(**options))(batch, torch.Generator().manual_seed(seed))


def kept(views):
    """Which leads of each view are there, (view, batch, lead)."""
    return (views.signal != 0).all(-1)


@pytest.mark.parametrize("segments", [2, 3])
def test_a_lead_is_as_it_was_or_all_zero(segments):
    """Segment by segment in their order: a mixed-up axis would contrast patients and train without complaint."""
    batch = batch_of(segments=segments, leads=6)
    views = make(batch, segments=segments)
    assert views.signal.shape == (segments, 3, 6, 5)
    assert views.batch is batch
    states = set()
    for segment in range(segments):
        for instance in range(3):
            for lead in range(6):
                found, whole = views.signal[segment, instance, lead], batch.signal[instance, segment, lead]
                states.add("kept" if torch.equal(found, whole) else "zero" if not found.any() else "other")
    assert states == {"kept", "zero"}


@given(
    seed=st.integers(0, 2**31),
    leads=st.integers(2, 12),
    probability=st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.999, 1.0]),
)
@settings(max_examples=30)
def test_a_view_never_loses_all_of_its_leads(seed, leads, probability):
    """Of a silent view nothing can be learnt, and with two leads it would be one in four."""
    views = make(batch_of(batch=50, leads=leads), seed, probability=probability)
    assert kept(views).any(-1).all()


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
def test_each_lead_is_masked_with_the_probability_that_was_asked_for(probability):
    """Of 12 leads the one that is kept at last hardly counts: P(all silent) = p^12, of which 1/12 for each lead."""
    found = kept(make(batch_of(batch=4000, leads=12, samples=1), probability=probability)).float()
    expected = 1 - probability + probability**12 / 12
    assert found.mean((0, 1)).tolist() == pytest.approx([expected] * 12, abs=0.03)


def test_leads_views_and_instances_are_masked_independently():
    """The same leads masked in both views would leave nothing to learn across leads."""
    found = kept(make(batch_of(batch=4000, leads=6, samples=1))).float()
    columns = torch.cat([found[0], found[1]], dim=1)  # (batch, 12): six leads of each of two views
    between = torch.corrcoef(columns.T) - torch.eye(12)
    assert between.abs().max() < 0.08
    assert len({tuple(row) for row in columns[:50].tolist()}) > 45


def test_of_two_leads_three_states_are_left():
    """Both with 1/4, either one with 3/8: the lead that is kept at last is any of them alike."""
    found = kept(make(batch_of(batch=8000, leads=2, samples=1))).flatten(0, 1)
    assert (found.all(-1)).float().mean().item() == pytest.approx(1 / 4, abs=0.02)
    assert (found[:, 0] & ~found[:, 1]).float().mean().item() == pytest.approx(3 / 8, abs=0.02)


def test_the_ends_of_the_scale_are_all_leads_and_one_lead():
    """A sweep over the probability has no surprise at its ends."""
    batch = batch_of(batch=200, leads=5)
    assert torch.equal(make(batch, probability=0.0).signal, batch.signal.transpose(0, 1))
    one = kept(make(batch, probability=1.0))
    assert (one.sum(-1) == 1).all()
    assert one.any(1).all()  # each lead is the one in some view


def test_all_masks_come_from_the_generator():
    """The same generator gives the same masks, another gives others, and the global one is left alone."""
    batch, before = batch_of(batch=20), torch.random.get_rng_state()
    first = make(batch, seed=5).signal
    assert torch.equal(first, make(batch, seed=5).signal)
    assert not torch.equal(first, make(batch, seed=6).signal)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_type_of_the_signal_decides_no_mask():
    """A run in float64 is the same run, with more digits."""
    short, long = (make(batch_of(dtype=dtype)).signal for dtype in (torch.float32, torch.float64))
    assert (short.dtype, long.dtype) == (torch.float32, torch.float64)
    assert torch.equal(short.double(), long)


def test_the_batch_is_left_as_it_was():
    """Batches are shared with the store, and a view may share their memory."""
    batch = batch_of()
    before = batch.signal.clone()
    make(batch, probability=1.0)
    assert torch.equal(batch.signal, before)


def test_a_lead_that_is_not_a_number_can_be_silenced():
    """Zero times NaN is NaN: masked is zero whatever was there."""
    batch = batch_of(batch=50)
    batch.signal[:] = float("nan")
    assert (make(batch, probability=1.0).signal == 0).float().mean() == 3 / 4


def test_a_silent_lead_is_still_silent_after_the_normalisation():
    """Zero is what evaluation gives for a lead that nobody has."""
    (offer,) = clocs_views()
    maker = ViewMaker(offer.build(offer.options(probability=1.0)), (), normalise=min_max)
    signal = maker(batch_of(), torch.Generator().manual_seed(0)).signal
    assert (signal.any(-1).sum(-1) == 1).all()
    assert signal.amax().item() == pytest.approx(1)


def test_an_instance_is_all_leads_of_adjacent_frames():
    """The store and the encoder are made by this; one lead cannot be masked and kept."""
    (offer,) = clocs_views()
    expected = Needs(segments=3, channels="all", encoder_channels="all", least_channels=2)
    assert offer.needs(offer.options(segments=3)) == expected


def test_another_number_of_segments_is_refused():
    """Two segments of three would silently be another method."""
    with pytest.raises(ValueError, match=r"`masked-leads` got a signal of shape \(3, 3, 4, 5\).*with 2 segments"):
        make(batch_of(segments=3))


@pytest.mark.parametrize("wrong", [{"segments": 1}, {"probability": -0.1}, {"probability": 1.1}])
def test_options_that_make_no_sense_are_refused(wrong):
    """By the option's name, before anything is prepared."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        MaskedLeadsOptions(**wrong)


def test_cmsc_rlm_is_put_together_by_name():
    """Its views are here, its encoder and loss in other plugins."""
    (method,) = clocs_methods()
    assert (method.name, method.views, method.loss) == ("cmsc-rlm", "masked-leads", "patient-nce")
    assert method.encoder == "cnn"


def test_the_card_imports_no_torch():
    """It imports this file's subject, and listing plugins must stay instant."""
    code = "import sys, clocs_plugins.lead_masking; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
