"""A recording on paper: any channels, any unit, gaps and all."""

import struct

import numpy as np
import pytest

from clocs_core.contracts.records import Record
from clocs_core.report.paper import draw_paper, draw_recording


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def record(samples, unit="mV", rate=100.0, gain=1.0):
    names = tuple(f"L{number}" for number in range(len(samples)))
    return Record("p", "r", names, unit, rate, samples, gain=gain)


@pytest.mark.parametrize("unit", ["mV", "uV", "counts", ""])
@pytest.mark.parametrize("channels", [1, 12])
def test_any_unit_and_number_of_channels_is_drawn(unit, channels):
    noise = np.random.default_rng(0).normal(size=(channels, 200))
    assert min(size(draw_recording(record(noise, unit), "title"))) > 100


def test_missing_samples_flat_and_empty_leads_are_drawn_without_a_warning():
    """Warnings are errors here: an all-NaN lead must not reach nanmedian."""
    samples = np.random.default_rng(0).normal(size=(3, 200))
    samples[0, 20:40] = np.nan
    samples[1] = np.nan
    samples[2] = 5.0
    for unit in ("mV", "counts"):
        assert size(draw_recording(record(samples, unit), "title"))


def test_the_counts_of_a_recorder_are_drawn_in_its_unit():
    """The same signal as integers with a gain and as floats gives the same picture."""
    counts = np.random.default_rng(0).integers(-500, 500, (2, 300)).astype(np.int16)
    assert draw_recording(record(counts, gain=1000.0), "t") == draw_recording(record(counts / 1000.0), "t")


def test_only_the_seconds_asked_for_are_drawn():
    noise = np.random.default_rng(0).normal(size=(1, 1000))
    narrow, wide = (size(draw_recording(record(noise), "t", seconds))[0] for seconds in (2.0, 8.0))
    assert wide > 2 * narrow


@pytest.mark.parametrize("name", ["$\\foo$", "$x^$", "心電図", "a\nb", "_", "L" * 300])
def test_names_are_drawn_as_they_are_and_never_as_mathematics(name):
    """matplotlib reads text between two dollars as a formula, and raises where it is none."""
    whole = Record(name, name, (name,), name, 100.0, np.zeros((1, 200)))
    assert size(draw_recording(whole, name))


@pytest.mark.parametrize("seconds", [0.2, 1.0, 10.0])
@pytest.mark.parametrize(
    "title", ["cardiology  r1  patient 7  AFIB", ", ".join(f"AFIB from sample {n:,}" for n in range(20))]
)
def test_a_title_of_any_length_is_within_the_picture_whole(title, seconds):
    """A recording of many rhythms has a long one, and a picture of a second has little room."""
    figure = draw_paper(record(np.random.default_rng(0).normal(size=(2, 1000))), title, seconds)
    figure.canvas.draw()
    drawn, paper = figure._suptitle.get_window_extent(), figure.bbox
    assert drawn.x0 >= 0
    assert drawn.x1 <= paper.x1
    assert drawn.y1 <= paper.y1
    words = " ".join(figure._suptitle.get_text().split())
    assert words.startswith(" ".join(title.split()))
    assert words.endswith("25 mm/s, 10 mm/mV, 100 Hz")
    axes = figure.axes[0].get_window_extent()
    assert drawn.y0 >= axes.y1 - 1, "the title must not cover the traces"


@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_a_picture_is_of_the_format_of_its_ending_and_always_the_same(ending, start):
    one = record(np.random.default_rng(0).normal(size=(1, 200)))
    first, second = (draw_recording(one, "title", ending=ending) for _ in range(2))
    assert first.startswith(start)
    assert first == second
