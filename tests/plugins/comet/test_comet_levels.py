"""COMET: the four levels in loops, weights that switch levels off, and the views."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from clocs_core import Batch, Setup, SignalFacts, Task, Views
from clocs_core.train.projector import Projector
from clocs_core.train.step import Encoding
from clocs_plugins.comet import clocs_methods, clocs_objectives, clocs_views

LEVELS = ("observation", "sample", "trial", "patient")
TAU = 0.2


class Reader(nn.Module):
    """A small encoder with a sequence."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.stride, self.width = 4, 5
        self.convolution, self.linear = nn.Conv1d(2, 5, 4, 4), nn.Linear(5, 3)

    def sequence(self, signal):
        return self.convolution(signal).tanh().transpose(1, 2)

    def forward(self, signal):
        return self.linear(self.sequence(signal).mean(1))


def build(projector=None, **options):
    (offer,) = clocs_objectives()
    setup = Setup(encoder=nn.Identity(), embedding_dim=3, task=Task("t", classes=("a", "b")), projector=projector)
    return offer.build(offer.options(**{"temperature": TAU, **options}), setup).double()


def views_of(records=(1, 2, 3, 4), patients=(7, 8, 7, 9), segments=2):
    record, patient = torch.tensor(records), torch.tensor(patients)
    draw = torch.Generator().manual_seed(0)
    signal = torch.randn(2 * segments, len(record), 2, 16, generator=draw).double()
    return Views(signal, Batch(signal.transpose(0, 1), patient, record, record, record))


def cosine(u, v):
    u, v = u.tolist(), v.tolist()
    product = sum(x * y for x, y in zip(u, v, strict=True))
    return product / math.sqrt(sum(x * x for x in u) * sum(y * y for y in v))


def finds_its_copy(first, second):
    """Each row of either copy finds its partner among all other rows of both."""
    rows, count, losses = [*first, *second], len(first), []
    for i, row in enumerate(rows):
        partner = (i + count) % (2 * count)
        total = sum(math.exp(cosine(row, rows[k]) / TAU) for k in range(2 * count) if k != i)
        losses.append(-math.log(math.exp(cosine(row, rows[partner]) / TAU) / total))
    return sum(losses) / len(losses)


def finds_its_group(first, second, group):
    losses = []
    for a, b in ((first, second), (second, first)):
        for i in range(len(group)):
            total = sum(math.exp(cosine(a[i], b[j]) / TAU) for j in range(len(group)))
            for k in range(len(group)):
                if k != i and group[i] == group[k]:
                    losses.append(-math.log(math.exp(cosine(a[i], b[k]) / TAU) / total))
    return sum(losses) / len(losses) if losses else 0.0


def in_loops(reader, views, projector=None):
    half, batch = len(views.signal) // 2, views.signal.shape[1]
    places = [(segment, row) for segment in range(half) for row in range(batch)]

    def embed(view, row):
        z = reader(views.signal[view, row][None])[0]
        return z if projector is None else projector.layers[0](z)

    first = [embed(segment, row) for segment, row in places]
    second = [embed(segment + half, row) for segment, row in places]
    by_position = []
    for segment, row in places:
        one = reader.sequence(views.signal[segment, row][None])[0]
        other = reader.sequence(views.signal[segment + half, row][None])[0]
        by_position.append(finds_its_copy(list(one), list(other)))
    return {
        "observation": sum(by_position) / len(by_position),
        "sample": finds_its_copy(first, second),
        "trial": finds_its_group(first, second, [int(views.batch.record[row]) for _, row in places]),
        "patient": finds_its_group(first, second, [int(views.batch.patient[row]) for _, row in places]),
    }


@torch.no_grad()
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("segments", [1, 2])
def test_the_levels_are_those_of_the_paper(projected, segments):
    """With one segment of four recordings, no trial has two samples: its level is 0."""
    reader = Reader().double()
    projector = Projector(3, (4,)).double() if projected else None
    views = views_of(segments=segments)
    found, levels = build(projector)(Encoding([reader]), views)
    expected = in_loops(reader, views, projector)
    assert set(levels) == set(LEVELS)
    for level in LEVELS:
        assert float(levels[level]) == pytest.approx(expected[level], abs=1e-10)
    assert (float(levels["trial"]) == 0) == (segments == 1)
    assert float(found) == pytest.approx(sum(expected.values()) / 4, abs=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("off", LEVELS)
def test_a_level_of_weight_zero_is_left_out(off):
    reader, views = Reader().double(), views_of()
    weights = {level: 0.0 if level == off else float(number) for number, level in enumerate(LEVELS, 1)}
    found, levels = build(**weights)(Encoding([reader]), views)
    expected = in_loops(reader, views)
    assert set(levels) == set(LEVELS) - {off}
    assert float(found) == pytest.approx(sum(weights[level] * expected[level] for level in LEVELS), abs=1e-10)


class Counted:
    """Counts the passes of an encoder."""

    def __init__(self, reader):
        self.encoding, self.passes = Encoding([reader]), []

    def __call__(self, signal):
        self.passes.append("embeddings")
        return self.encoding(signal)

    def sequence(self, signal):
        self.passes.append("sequence")
        return self.encoding.sequence(signal)

    def both(self, signal):
        self.passes.append("both")
        return self.encoding.both(signal)


@torch.no_grad()
@pytest.mark.parametrize(
    ("off", "passes"),
    [((), ["both"]), (("observation",), ["embeddings"]), (("sample", "trial", "patient"), ["sequence"])],
)
def test_embeddings_and_positions_are_of_one_pass(off, passes):
    counted = Counted(Reader().double())
    build(**{level: 0.0 if level in off else 1.0 for level in LEVELS})(counted, views_of())
    assert counted.passes == passes


def test_no_level_at_all_is_refused():
    with pytest.raises(ValueError, match="one level at least must have a weight above 0"):
        build(**dict.fromkeys(LEVELS, 0.0))


@pytest.mark.parametrize(("samples", "off", "refused"), [(4, False, True), (4, True, False), (5, False, False)])
def test_a_segment_of_one_position_has_none_to_contrast(samples, off, refused):
    """Its loss would be 0 for every network."""
    (objective,) = clocs_objectives()
    options = objective.options(**({"observation": 0.0} if off else {}))
    reader = Reader()
    reader.stride = 4
    setup = Setup(encoder=reader, embedding_dim=3, task=Task("t", ("a", "b")), signals=SignalFacts(samples=samples))
    if refused:
        with pytest.raises(ValueError, match="one of 4 samples has a single position of 4"):
            objective.build(options, setup)
    else:
        objective.build(options, setup)


def test_views_without_copies_are_refused():
    views = views_of()
    odd = Views(views.signal[:3], views.batch)
    with pytest.raises(ValueError, match="`comet` got 3 views, expected two copies of each segment"):
        build()(Encoding([Reader().double()]), odd)


def test_each_segment_comes_twice_and_both_copies_are_perturbed():
    (offer,) = clocs_views()
    batch = views_of().batch  # four instances of four segments
    views = offer.build(offer.options(segments=4))(batch, torch.Generator())
    assert views.perturb == "every"
    assert views.signal.shape == (8, 4, 2, 16)
    for view in range(8):
        assert torch.equal(views.signal[view], batch.signal[:, view % 4])
    needs = offer.needs(offer.options(segments=4, leads="all"))
    assert (needs.segments, needs.channels, needs.encoder_channels) == (4, "all", "all")
    assert needs.perturbations == "random"
    with pytest.raises(ValueError, match="with 2 segments"):
        offer.build(offer.options())(batch, torch.Generator())


def test_levels_have_equal_weights_unless_told_otherwise():
    (objective,), (method,) = clocs_objectives(), clocs_methods()
    assert {getattr(objective.options(), level) for level in LEVELS} == {0.25}
    assert "objective" not in method.presets
