"""ECG against PPG: which encoder reads which channel, and which pairs attract each other."""

from __future__ import annotations

import pytest
import torch
from clocs_core.testing import synthetic_batch

from clocs_plugin_ppg.modalities import MODALITIES, ModalitiesOptions


def views_of(channels: int, **options: object):
    batch = synthetic_batch(4, 1, channels, 50)
    return batch, MODALITIES.build(ModalitiesOptions(**options))(batch, torch.Generator())


@pytest.mark.parametrize(
    ("channels", "options", "readers", "pairs"),
    [
        (2, {}, (0, 1), {(0, 1)}),
        (2, {"evaluated": "second"}, (1, 0), {(0, 1)}),
        (3, {}, (0, 1, 1), {(0, 1), (0, 2)}),
        (4, {"first_channels": 3, "evaluated": "second"}, (1, 1, 1, 0), {(0, 3), (1, 3), (2, 3)}),
    ],
)
def test_every_modality_has_its_encoder_and_pairs_are_across_modalities(channels, options, readers, pairs):
    """Encoder 0 is the one that is evaluated. Two leads of one modality are no pair here."""
    batch, views = views_of(channels, **options)
    assert views.encoder_of_view == readers
    assert set(views.pairs) == pairs
    for view in range(channels):
        for instance in range(4):
            assert torch.equal(views.signal[view, instance, 0], batch.signal[instance, 0, view])


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({}, ("II",)),
        ({"evaluated": "second"}, ("V", "PLETH")),
        ({"first_channels": 2}, ("II", "V")),
        ({"first_channels": 2, "evaluated": "second"}, ("PLETH",)),
    ],
)
def test_an_encoder_is_evaluated_on_the_channels_of_its_modality(options, read):
    """An ECG encoder's embedding of a pulse wave means nothing, and must not be scored."""
    assert MODALITIES.needs(ModalitiesOptions(**options)).of_first(("II", "V", "PLETH")) == read


def test_channels_of_one_modality_only_are_refused():
    """There would be no pair for the loss."""
    assert MODALITIES.needs(ModalitiesOptions(first_channels=2)).least_channels == 3
    with pytest.raises(ValueError, match="more than 2 channels"):
        views_of(2, first_channels=2)
