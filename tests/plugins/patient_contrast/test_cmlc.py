"""The views of CMLC and CMSMLC."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from clocs_core import Batch, NoOptions
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_plugins.patient_contrast import clocs_methods, clocs_views
from clocs_plugins.patient_contrast.cmsmlc import SegmentsLeadsOptions

CATALOGUE, _ = build_catalogue(load_plugins(installed_entry_points()))
OFFERS = {offer.name: offer for offer in clocs_views()}


def batch_of(segments, channels, batch=3, samples=5):
    ids = torch.arange(batch)
    signal = torch.arange(batch * segments * channels * samples, dtype=torch.float32)
    return Batch(signal.reshape(batch, segments, channels, samples), ids, ids, ids, ids)


def both(segments, channels, **options):
    batch = batch_of(segments, channels)
    made = OFFERS["segments-leads"].build(SegmentsLeadsOptions(segments=segments, **options))
    return made(batch, torch.Generator()), batch


@pytest.mark.parametrize("channels", [2, 4, 12])
def test_each_lead_is_a_view_of_one_channel_in_its_order(channels):
    """At the same time: the same segment of the same recording, seen from elsewhere."""
    batch = batch_of(1, channels)
    views = OFFERS["leads"].build(NoOptions())(batch, torch.Generator())
    assert views.signal.shape == (channels, 3, 1, 5)
    for instance in range(3):
        for lead in range(channels):
            assert torch.equal(views.signal[lead, instance, 0], batch.signal[instance, 0, lead])
    assert views.signal.untyped_storage().data_ptr() == batch.signal.untyped_storage().data_ptr()


@pytest.mark.parametrize(("segments", "channels"), [(2, 4), (3, 2), (2, 12)])
def test_each_segment_of_each_lead_is_a_view_lead_by_lead(segments, channels):
    """The released variant trains the last pair: by this order, two segments of one lead."""
    views, batch = both(segments, channels)
    assert views.signal.shape == (segments * channels, 3, 1, 5)
    for lead in range(channels):
        for segment in range(segments):
            for instance in range(3):
                view = views.signal[lead * segments + segment, instance, 0]
                assert torch.equal(view, batch.signal[instance, segment, lead])


@pytest.mark.parametrize(("channels", "pairs"), [(4, 28), (12, 276)])
def test_all_pairs_enter_the_loss_unless_others_are_asked_for(channels, pairs):
    """The paper's 4 and 12 leads, two segments: the loss of all views is the mean of the losses of every pair."""
    views, batch = both(2, channels)
    assert views.pairs == ()
    (offer,) = (item.offer for item in CATALOGUE.losses if item.offer.name == "patient-nce")
    loss = offer.build(offer.options())
    z = torch.randn(len(views.signal), 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    each = [loss(torch.stack((z[a], z[b])), batch.patient) for a, b in combinations(range(len(z)), 2)]
    assert len(each) == pairs
    assert torch.allclose(loss(z, batch.patient), torch.stack(each).mean(), atol=1e-10)


@pytest.mark.parametrize(("segments", "channels"), [(2, 2), (2, 4), (3, 4), (2, 12)])
def test_cross_pairs_differ_in_segment_and_in_lead_and_none_is_missing(segments, channels):
    """Read off the signal: which instance values the two views hold says where they were cut."""
    views, batch = both(segments, channels, pairs="cross")
    place = {
        tuple(batch.signal[0, segment, lead].tolist()): (segment, lead)
        for segment in range(segments)
        for lead in range(channels)
    }
    places = [place[tuple(view[0, 0].tolist())] for view in views.signal]
    expected = {
        (a, b)
        for a, b in combinations(range(len(places)), 2)
        if places[a][0] != places[b][0] and places[a][1] != places[b][1]
    }
    assert set(views.pairs) == expected
    assert len(views.pairs) == channels * (channels - 1) // 2 * segments * (segments - 1)


def test_an_instance_holds_all_leads_and_at_least_two():
    """With one lead there is nothing to contrast, which core refuses before anything is read."""
    for name, options in (("leads", NoOptions()), ("segments-leads", SegmentsLeadsOptions(segments=3))):
        needs = OFFERS[name].needs(options)
        assert (needs.channels, needs.least_channels, needs.encoder_channels) == ("all", 2, "one")
    assert needs.segments == 3


@pytest.mark.parametrize(("segments", "channels"), [(2, 4), (1, 1)])
def test_leads_of_other_instances_are_refused(segments, channels):
    with pytest.raises(ValueError, match=r"the views `leads` got a signal of shape .* with one segment"):
        OFFERS["leads"].build(NoOptions())(batch_of(segments, channels), torch.Generator())


@pytest.mark.parametrize(("segments", "channels"), [(1, 4), (2, 1), (3, 4)])
def test_segments_of_leads_of_other_instances_are_refused(segments, channels):
    with pytest.raises(ValueError, match=r"the views `segments-leads` got .* with 2 segments and two channels"):
        OFFERS["segments-leads"].build(SegmentsLeadsOptions())(batch_of(segments, channels), torch.Generator())


def test_the_family_shares_encoder_loss_and_variants():
    methods = {method.name: method for method in clocs_methods()}
    assert list(methods) == ["cmsc", "cmlc", "cmsmlc"]
    assert {(method.encoder, method.loss) for method in methods.values()} == {("cnn", "patient-nce")}
    for method in methods.values():
        assert method.variants["released"].presets["loss"] == {"formula": "released"}
        assert method.variants["paper"].presets == {}
