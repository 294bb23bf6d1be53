"""3KG: the change of a vectorcardiogram in loops from the paper's matrices, and leads that cannot serve."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clocs_core import SignalFacts
from clocs_plugins.vectorcardiogram import clocs_methods, clocs_perturbations
from clocs_plugins.vectorcardiogram.changes import rotation_of

TWELVE = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
EIGHT = ("V1", "V2", "V3", "V4", "V5", "V6", "I", "II")
DOWER = np.array(  # as printed, rows in the order of EIGHT, columns X, Y, Z
    [
        [-0.515, 0.157, -0.917],
        [0.044, 0.164, -1.387],
        [0.882, 0.098, -1.277],
        [1.213, 0.127, -0.601],
        [1.125, 0.127, -0.086],
        [0.831, 0.076, 0.230],
        [0.632, -0.235, 0.059],
        [0.235, 1.066, -0.132],
    ]
)
OFFERS = {offer.name: offer for offer in clocs_perturbations()}


def build(channels=TWELVE, axis=-2, **options):
    offer = OFFERS["vectorcardiogram"]
    return offer.make(offer.options(**options), SignalFacts(unit="mV", channels=channels, channel_axis=axis))


def draws(seed=3):
    return torch.Generator().manual_seed(seed)


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def turn(vector, axis, angle):
    """Rotate a point about one axis, by the right hand."""
    turned = list(vector)
    u, v = [(1, 2), (2, 0), (0, 1)][axis]
    turned[u] = math.cos(angle) * vector[u] - math.sin(angle) * vector[v]
    turned[v] = math.sin(angle) * vector[u] + math.cos(angle) * vector[v]
    return turned


def in_loops(signal, channels, drawn, angle, scale):
    """One signal (channel, sample), sample by sample: least squares to X, Y, Z, the change, and back lead by lead."""
    angles = [(2 * number - 1) * math.radians(angle) for number in drawn[:3]]
    factors = [1 + number * (scale - 1) for number in drawn[3:]]
    made = np.zeros(signal.shape)
    for sample in range(signal.shape[1]):
        leads = np.array([signal[channels.index(lead), sample] for lead in EIGHT])
        vector = list(np.linalg.lstsq(DOWER, leads, rcond=None)[0])
        for axis in range(3):
            vector = turn(vector, axis, angles[axis])
        vector = [factor * one for factor, one in zip(factors, vector, strict=True)]
        back = {lead: sum(DOWER[row][k] * vector[k] for k in range(3)) for row, lead in enumerate(EIGHT)}
        back["III"] = back["II"] - back["I"]
        back["aVR"] = -(back["I"] + back["II"]) / 2
        back["aVL"] = (back["I"] - back["III"]) / 2
        back["aVF"] = (back["II"] + back["III"]) / 2
        made[:, sample] = [back[lead] for lead in channels]
    return made


@pytest.mark.parametrize("channels", [TWELVE, EIGHT, (*EIGHT, "aVF")])
def test_the_change_is_that_of_the_paper(channels):
    signal = noise(2, 3, len(channels), 7)
    found = build(channels, angle=30.0, scale=2.0)(signal, draws())
    drawn = torch.rand(2, 3, 6, generator=draws())
    for view in range(2):
        for row in range(3):
            expected = in_loops(signal[view, row].numpy(), channels, drawn[view, row].tolist(), 30.0, 2.0)
            assert np.allclose(found[view, row].numpy(), expected, atol=1e-9)


def test_a_heart_that_is_a_dipole_stays_the_same_without_rotation_and_scaling():
    dipole = noise(3, 9)
    signal = torch.from_numpy(DOWER) @ dipole
    found = build(EIGHT, angle=0.0, scale=1.0)(signal, draws())
    assert torch.allclose(found, signal, atol=1e-12)


def test_a_rotation_keeps_lengths_and_angles_and_the_hand():
    matrix = rotation_of(noise(50, 3))
    assert torch.allclose(matrix @ matrix.mT, torch.eye(3, dtype=torch.float64).expand(50, 3, 3), atol=1e-12)
    assert torch.allclose(torch.linalg.det(matrix), torch.ones(50, dtype=torch.float64))


def test_names_of_leads_are_known_in_any_case():
    signal = noise(12, 5)
    shouted = tuple(name.upper() for name in TWELVE)
    assert torch.equal(build(shouted)(signal, draws()), build()(signal, draws()))


@pytest.mark.parametrize(
    ("channels", "axis", "message"),
    [
        (TWELVE[:-1], -2, "needs the leads I, II and V1 to V6 by name.*; the run has no V6"),
        (("0",), -2, "the run has no I, II, V1, V2, V3, V4, V5, V6"),
        ((*TWELVE, "PPG"), -2, "the run has PPG"),
        (TWELVE, None, "needs all leads of a frame together: use `leads='all'`"),
    ],
)
def test_leads_that_cannot_serve_are_refused(channels, axis, message):
    with pytest.raises(ValueError, match=message):
        build(channels, axis)


@pytest.mark.parametrize(("share", "masked"), [(0.5, 20), (0.0, 0), (0.3, 12)])
def test_a_stretch_of_each_lead_is_set_to_zero(share, masked):
    offer = OFFERS["time_mask"]
    signal = noise(2, 50, 3, 40)
    found = offer.make(offer.options(share=share), SignalFacts())(signal, draws())
    places = set()
    for row, before in zip(found.flatten(0, 2).tolist(), signal.flatten(0, 2).tolist(), strict=True):
        zeros = [at for at, value in enumerate(row) if value == 0]
        assert len(zeros) == masked
        assert not zeros or zeros[-1] - zeros[0] == masked - 1
        assert all(value == before[at] for at, value in enumerate(row) if at not in zeros)
        places.update(zeros[:1])
    assert not masked or {0, 40 - masked} <= places  # the first and the last place, and those between


def test_the_method_contrasts_two_copies_of_all_leads():
    (method,) = clocs_methods()
    assert (method.name, method.views, method.loss) == ("3kg", "perturbed", "nt-xent")
    assert method.presets["views"] == {"leads": "all"}
