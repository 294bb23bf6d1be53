"""Pictures: they can be drawn from odd input, they are the same every time, and they stay small."""

import math
import struct
from io import BytesIO

import attrs
import matplotlib
import numpy as np
import pytest
from PIL import Image

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.contracts.events import EmbeddingMap, Picture
from clocs_core.contracts.scores import Score
from clocs_core.report import figures
from clocs_core.report.figures import embedding_map, health_curves, loss_curves, score_bars
from clocs_core.report.traces import traces

HOSTILE = ("$x_{$", "_hidden", "<script>", "患者\n7", "", "a" * 300)


def rows(count: int) -> list[EpochRow]:
    return [
        EpochRow(
            epoch=number,
            train_loss=5.0 / number,
            validation_loss=6.0 / number,
            effective_rank=float(number),
            same_patient=0.9,
            other_patient=0.2,
            margin=0.7,
            loss_over_log_batch=1.0 / number,
            improved=True,
            seconds=1.0,
            instances=10,
        )
        for number in range(1, count + 1)
    ]


def scores() -> list[Score]:
    inits = (("linear", "m"), ("linear", "random"), ("finetune", "supervised"), ("prior", "random"))
    return [Score(p, i, "d", 1.0, "auroc", "frame", 0.8, 0.7, 0.9) for p, i in inits]


def embeddings(count: int, dim: int = 8) -> EmbeddingMap:
    rng = np.random.default_rng(0)
    names = tuple(HOSTILE[place % len(HOSTILE)] for place in range(count))
    patients = tuple(f"P{place % 40}" for place in range(count))
    return EmbeddingMap(rng.normal(size=(count, dim)).astype(np.float32), patients, names, names)


def noise(instances: int = 3, views: int = 2) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(instances, views, 2500)).astype(np.float32)


def is_drawn(picture: Picture) -> bool:
    """A picture of a sensible size that is not one colour all over."""
    with Image.open(BytesIO(picture.png)) as image:
        return min(size_of(picture)) > 100 and len(image.convert("RGB").getcolors(1 << 24)) > 1


def size_of(picture: Picture) -> tuple[int, int]:
    assert picture.png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture.png[16:24])
    return width, height


def has_colour(picture: Picture, colour: str) -> bool:
    pixels = np.asarray(Image.open(BytesIO(picture.png)).convert("RGB")).astype(int)
    wanted = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)])
    return bool((np.abs(pixels - wanted).sum(axis=2) < 30).any())


def test_every_picture_is_a_small_png_with_words():
    """A page carries its pictures inside; a heavy one cannot be sent by mail."""
    drawn = [
        loss_curves(rows(40), 30),
        health_curves(rows(40)),
        score_bars(scores()),
        embedding_map(embeddings(3000), "label"),
        embedding_map(embeddings(3000), "patient"),
        traces(noise(), ["one", "two", "three"], ["first", "second"], sampling_rate=500),
    ]
    assert [picture.name for picture in drawn] == [
        "loss",
        "health",
        "scores",
        "embedding-by-label",
        "embedding-by-patient",
        "traces",
    ]
    for picture in drawn:
        width, height = size_of(picture)
        assert 600 < width < 1500
        assert 250 < height < 1500
        assert len(picture.png) < 150_000
        assert picture.title
        assert picture.caption.endswith(".")


def test_the_same_numbers_give_the_same_bytes():
    """Two runs that agree can be compared file by file; a date inside a picture would spoil that."""
    assert loss_curves(rows(5), 3).png == loss_curves(rows(5), 3).png
    assert embedding_map(embeddings(90), "patient").png == embedding_map(embeddings(90), "patient").png
    assert b"tEXt" not in loss_curves(rows(5), 3).png


def test_drawing_leaves_matplotlib_as_it_was():
    """A notebook that calls this has its own style and its own open figures."""
    before = dict(matplotlib.rcParams)
    loss_curves(rows(3), 1)
    assert dict(matplotlib.rcParams) == before


def test_the_best_epoch_is_marked():
    """The dot says which weights were kept; a best epoch that is not among the rows marks nothing."""
    assert loss_curves(rows(9), 5).png != loss_curves(rows(9), 6).png
    assert loss_curves(rows(9), 77).png == loss_curves(rows(9), 78).png


@pytest.mark.parametrize("count", [0, 1])
def test_curves_of_no_epoch_and_of_one(count):
    """A run that stops at once still gets its report."""
    assert is_drawn(loss_curves(rows(count), 1))
    assert is_drawn(health_curves(rows(count)))


def test_losses_that_are_not_numbers_leave_a_gap():
    odd = [attrs.evolve(row, validation_loss=math.nan, effective_rank=math.nan) for row in rows(3)]
    for draw in (lambda these: loss_curves(these, 2), health_curves):
        assert is_drawn(draw(odd))
        assert draw(odd).png != draw(rows(3)).png


def test_method_and_controls_have_colours_of_their_own():
    """The eye should find the method beside random and the class prior at once."""
    picture = score_bars(scores())
    for colour in (figures.BLUE, figures.ORANGE, figures.GREEN, figures.GREY):
        assert has_colour(picture, colour)
    assert not has_colour(score_bars(scores()[:1]), figures.ORANGE)


def test_scores_without_an_interval_and_no_scores_at_all():
    assert is_drawn(score_bars([attrs.evolve(scores()[0], low=math.nan, high=math.nan)]))
    assert not is_drawn(score_bars([]))  # an empty sheet, and no error


@pytest.mark.parametrize(("count", "dim"), [(0, 4), (1, 4), (2, 4), (5, 1)])
def test_maps_of_hardly_any_embeddings(count, dim):
    """A tiny test part, or a one-dimensional embedding, has no plane; the picture is drawn all the same."""
    assert is_drawn(embedding_map(embeddings(count, dim), "label"))


def test_embeddings_that_are_not_numbers_are_left_out():
    broken = embeddings(20)
    broken.embedding[3] = np.nan
    assert "19 of 20" in embedding_map(broken, "label").caption


def test_a_large_map_is_thinned_out_and_says_so():
    assert "1,500 of 3,001 embeddings" in embedding_map(embeddings(3001), "patient").caption


def test_the_principal_plane_keeps_the_longest_axes():
    """Oracle: points on a known plane come back with their distances; the shares are those of the variances."""
    rng = np.random.default_rng(3)
    flat = rng.normal(size=(50, 2)) * [5.0, 1.0]
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    plane, share = figures._principal_plane(flat @ turn[:2] + 7)
    for one in range(50):
        for other in range(50):
            apart = math.dist(flat[one], flat[other])
            assert math.dist(plane[one], plane[other]) == pytest.approx(apart, abs=1e-9)
    assert sum(share) == pytest.approx(1.0)
    assert share[0] > 0.8


def test_names_that_matplotlib_would_trip_over():
    """Patient ids come from files: mathematics, missing glyphs, underscores and line breaks are only text."""
    assert is_drawn(embedding_map(embeddings(60), "label"))
    assert is_drawn(traces(noise(2, 2), ["$x_{$", "患者\n7"], ["_v", "$"]))
    assert is_drawn(score_bars([attrs.evolve(scores()[0], init="$x_{$", metric="$y^$")]))


def test_traces_that_are_flat_or_not_numbers():
    """A flat lead has no range; a lead that fell off has no numbers."""
    signal = np.zeros((2, 1, 100), dtype=np.float32)
    signal[1] = np.nan
    assert is_drawn(traces(signal, ["flat", "gone"], ["view"]))
