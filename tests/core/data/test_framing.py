"""Frames of a recording: counts, positions, resampling, and which lead-frames can be used."""

from __future__ import annotations

import cmath
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.contracts.records import Drop, Episode, Framing, Record
from clocs_core.data.framing import cut_frames, frame_labels
from clocs_core.errors import DataError

KINDS = ["one_of", "any_of"]


def make_record(samples, rate=100.0, channels=None):
    samples = np.asarray(samples)
    names = channels or tuple(f"L{i}" for i in range(len(samples)))
    return Record("p", "r", names, "mV", rate, samples)


def waves(channels, samples, seed=0):
    return np.random.default_rng(seed).normal(size=(channels, samples))


def fourier_stretch(signal, length):
    """Plain-loop Fourier interpolation of one lead, from the definition of the discrete transform."""
    n = len(signal)
    spectrum = [sum(signal[t] * cmath.exp(-2j * math.pi * k * t / n) for t in range(n)) for k in range(n // 2 + 1)]
    kept = min(n, length)
    stretched = []
    for t in range(length):
        value = spectrum[0]
        for k in range(1, (kept - 1) // 2 + 1):
            value += 2 * (spectrum[k] * cmath.exp(2j * math.pi * k * t / length)).real
        if kept % 2 == 0:  # the middle frequency of the shorter of the two appears once, or folded onto itself
            folds = 1 if n <= length else 2
            value += folds * (spectrum[kept // 2] * cmath.exp(1j * math.pi * kept * t / length)).real
        stretched.append(value.real / n)
    return stretched


def test_own_rate_cuts_without_overlap_and_drops_the_remainder():
    """The paper's frames: sample j of frame i is sample i * length + j of the recording, and nothing is twice."""
    signal = waves(2, 23)
    frames = cut_frames(make_record(signal), Framing(frame_samples=5))
    assert frames.samples.shape == (4, 2, 5)
    assert frames.samples.dtype == np.float32
    for i in range(4):
        for lead in range(2):
            for j in range(5):
                assert frames.samples[i, lead, j] == np.float32(signal[lead, i * 5 + j])
    assert frames.start.tolist() == [0, 5, 10, 15]
    assert frames.start.dtype == np.int64
    assert frames.valid.all()
    assert frames.drops == ()


def test_a_recording_of_exactly_one_frame_is_one_frame():
    """An off-by-one here loses every recording of a set whose recordings are one frame long."""
    assert len(cut_frames(make_record(waves(1, 5)), Framing(frame_samples=5)).samples) == 1


@pytest.mark.parametrize(
    ("samples", "framing"),
    [
        (4, Framing(frame_samples=5)),
        (9, Framing(frame_samples=5, sampling_rate=50.0)),
        (4, Framing(frame_samples=10, source_samples=5)),
        (0, Framing(frame_samples=5, frames_per_record=2)),
        (0, Framing(frame_samples=5, sampling_rate=50.0)),
    ],
)
def test_a_recording_too_short_gives_no_frame_and_one_drop(samples, framing):
    """A short recording must be counted, not vanish."""
    frames = cut_frames(make_record(waves(3, samples)), framing)
    assert frames.samples.shape == (0, 3, framing.frame_samples)
    assert frames.valid.shape == (0, 3)
    assert frames.start.shape == (0,)
    assert frames.drops == (Drop("shorter than a frame", "r"),)


@pytest.mark.parametrize(("n", "rate", "new_rate"), [(40, 500.0, 250.0), (41, 500.0, 250.0), (30, 100.0, 150.0)])
def test_resampling_by_rate_is_fourier_interpolation_of_the_whole_recording(n, rate, new_rate):
    """500 Hz to 250 Hz, as the paper does it: resample first, cut after, length rounded."""
    signal = waves(2, n)
    frames = cut_frames(make_record(signal, rate), Framing(frame_samples=6, sampling_rate=new_rate))
    length = round(n * new_rate / rate)
    assert len(frames.samples) == length // 6
    for lead in range(2):
        expected = fourier_stretch(signal[lead], length)[: length // 6 * 6]
        np.testing.assert_allclose(frames.samples[:, lead].ravel(), expected, rtol=1e-5, atol=1e-6)
    assert frames.start.tolist() == [math.floor(i * 6 * n / length) for i in range(length // 6)]


def test_cut_then_stretch_treats_every_window_by_itself():
    """256 source samples to 2500, as for single-lead patches: a window must not see its neighbours."""
    signal = waves(2, 35)
    frames = cut_frames(make_record(signal), Framing(frame_samples=20, source_samples=8))
    assert frames.start.tolist() == [0, 8, 16, 24]
    for i in range(4):
        for lead in range(2):
            expected = fourier_stretch(signal[lead, i * 8 : i * 8 + 8], 20)
            np.testing.assert_allclose(frames.samples[i, lead], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("samples", [990, 999, 1000, 1003])
def test_a_recording_that_lasts_nearly_as_long_as_frames_of_a_rate_is_stretched_to_them(samples):
    """Some copies of a data set lack the last sample, and were dropped as shorter than a frame."""
    record = make_record(waves(2, samples))
    either = cut_frames(record, Framing(250, frames_per_record=1, sampling_rate=25.0))
    np.testing.assert_array_equal(either.samples, cut_frames(record, Framing(250, frames_per_record=1)).samples)
    assert either.samples.shape == (1, 2, 250)


@pytest.mark.parametrize("samples", [500, 980, 1020, 2500])
def test_a_recording_of_another_length_is_resampled_to_the_rate(samples):
    record = make_record(waves(2, samples))
    either = cut_frames(record, Framing(250, frames_per_record=1, sampling_rate=25.0))
    np.testing.assert_array_equal(either.samples, cut_frames(record, Framing(250, sampling_rate=25.0)).samples)


@pytest.mark.parametrize("n", [24, 25, 61])
def test_a_whole_recording_is_stretched_to_so_many_frames_whatever_its_length(n):
    """frames_per_record makes one count for all recordings, and the starts divide the source evenly."""
    signal = waves(1, n)
    frames = cut_frames(make_record(signal), Framing(frame_samples=10, frames_per_record=3))
    assert frames.samples.shape == (3, 1, 10)
    np.testing.assert_allclose(frames.samples[:, 0].ravel(), fourier_stretch(signal[0], 30), rtol=1e-5, atol=1e-6)
    assert frames.start.tolist() == [0, n // 3, 2 * n // 3]


@pytest.mark.parametrize(
    "framing",
    [
        Framing(frame_samples=50, sampling_rate=50.0, resampler="polyphase"),
        Framing(frame_samples=150, source_samples=100, resampler="polyphase"),
        Framing(frame_samples=123, frames_per_record=4, resampler="polyphase"),
    ],
)
@pytest.mark.parametrize("n", [400, 401, 403])
def test_polyphase_keeps_a_slow_wave_where_it_was(framing, n):
    """A sine with an offset, sampled anew, must stay the same sine: in time, in amplitude, up to the ends."""
    at = np.arange(n)
    frames = cut_frames(make_record(5 + np.sin(2 * np.pi * at / 100)[None]), framing)
    if framing.source_samples:
        step = framing.source_samples / framing.frame_samples
    elif framing.frames_per_record:
        step = n / (4 * 123)
    else:
        step = 2.0
    assert len(frames.samples) == 4
    for i, frame in enumerate(frames.samples[:, 0]):
        begin = i * 100 if framing.source_samples else i * framing.frame_samples * step
        times = begin + step * np.arange(framing.frame_samples)
        np.testing.assert_allclose(frame, 5 + np.sin(2 * np.pi * times / 100), atol=0.12)
        np.testing.assert_allclose(frame[20:-20], (5 + np.sin(2 * np.pi * times / 100))[20:-20], atol=0.02)


WAYS = [
    Framing(frame_samples=20),
    Framing(frame_samples=10, sampling_rate=50.0),
    Framing(frame_samples=10, sampling_rate=50.0, resampler="polyphase"),
    Framing(frame_samples=30, source_samples=20),
    Framing(frame_samples=30, frames_per_record=5),
]


@pytest.mark.parametrize("framing", WAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_nan_costs_one_lead_frame_and_no_other(framing, bad):
    """A single missing sample must not take the lead, let alone the recording, with it."""
    signal = waves(3, 100)
    signal[1, 47] = bad
    frames = cut_frames(make_record(signal), framing)
    assert np.isfinite(frames.samples).all()
    assert np.argwhere(~frames.valid).tolist() == [[2, 1]]
    assert not frames.samples[2, 1].any()
    assert frames.drops == (Drop("NaN", "r", "L1 frame 2"),)


def test_a_nan_on_the_border_of_two_stretched_frames_costs_both():
    """25 samples in two frames: sample 12 lies in the last half-step of the first and begins the second."""
    signal = waves(1, 25)
    signal[0, 12] = np.nan
    frames = cut_frames(make_record(signal), Framing(frame_samples=10, frames_per_record=2))
    assert frames.valid.tolist() == [[False], [False]]


@pytest.mark.parametrize("framing", WAYS)
def test_a_lead_without_a_finite_sample_is_lost_alone(framing):
    """A lead that was not connected leaves the others as they are."""
    signal = waves(2, 100)
    whole = cut_frames(make_record(signal), framing)
    signal[0] = np.nan
    frames = cut_frames(make_record(signal), framing)
    assert not frames.valid[:, 0].any()
    assert frames.valid[:, 1].all()
    np.testing.assert_array_equal(frames.samples[:, 1], whole.samples[:, 1])
    assert {drop.reason for drop in frames.drops} == {"NaN"}
    assert len(frames.drops) == 5


@pytest.mark.parametrize("framing", WAYS)
def test_a_flat_stretch_is_flat_even_after_resampling(framing):
    """Fourier ripples of 1e-17 must not pass for a heartbeat: min-max would blow them up to full scale."""
    signal = waves(2, 100)
    signal[0, 60:80] = 0.3
    frames = cut_frames(make_record(signal), framing)
    assert np.argwhere(~frames.valid).tolist() == [[3, 0]]
    assert frames.drops == (Drop("flat", "r", "L0 frame 3"),)
    assert not frames.samples[3, 0].any()


def test_what_float32_cannot_hold_is_not_valid():
    """1e300 is finite in a file and infinite on a device; a difference below its precision is a flat line."""
    signal = waves(3, 20)
    signal[0, 3] = 1e300
    signal[1] = 1e9 + 1e-3 * signal[1]
    frames = cut_frames(make_record(signal), Framing(frame_samples=20))
    assert frames.valid.tolist() == [[False, False, True]]
    assert [drop.reason for drop in frames.drops] == ["NaN", "flat"]


def test_integers_are_read_and_the_record_is_left_alone():
    """Readers hand over raw counts, and one record may be framed twice in different ways."""
    counts = np.arange(-50, 50, dtype=np.int16).reshape(2, 50)
    gaps = waves(2, 50)
    gaps[0, 3] = np.nan
    for samples in (counts, gaps):
        before = samples.copy()
        samples.flags.writeable = False
        for framing in WAYS:
            frames = cut_frames(make_record(samples), framing)
            assert not np.shares_memory(frames.samples, samples)
        np.testing.assert_array_equal(samples, before)


@settings(max_examples=60)
@given(
    n=st.integers(0, 200),
    rate=st.sampled_from([100.0, 128.0, 257.3, 360.0, 500.0]),
    new_rate=st.sampled_from([None, 50.0, 99.7, 100.0, 250.0]),
    resampler=st.sampled_from(["fft", "polyphase"]),
)
def test_frames_start_in_order_inside_the_recording(n, rate, new_rate, resampler):
    """Whatever the rates, starts rise, stay inside, and the arrays agree in shape."""
    framing = Framing(frame_samples=7, sampling_rate=new_rate, resampler=resampler)
    frames = cut_frames(make_record(waves(2, n), rate), framing)
    expected = round(n * new_rate / rate) // 7 if new_rate else n // 7
    assert frames.samples.shape == (expected, 2, 7)
    assert frames.valid.all()
    starts = frames.start.tolist()
    assert starts == sorted(set(starts))
    assert all(0 <= start < n for start in starts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_or_a_set_of_classes_holds_for_every_frame(kind):
    """A label of the recording is the label of its frames."""
    assert frame_labels(3, np.array([0, 5]), kind) == [3, 3]
    assert frame_labels(frozenset({1, 2}), np.array([0]), kind) == [frozenset({1, 2})]
    assert frame_labels(None, np.array([0, 5, 10]), kind) == [None, None, None]


def test_an_episode_labels_the_frames_whose_first_sample_it_holds():
    """Both ends included; a frame in a gap has no label rather than the one before it."""
    episodes = (Episode(20, 29, 1), Episode(0, 9, 0))
    starts = np.array([0, 9, 10, 19, 20, 29, 30])
    assert frame_labels(episodes, starts, "one_of") == [0, 0, None, None, 1, 1, None]
    one, zero = frozenset({1}), frozenset({0})
    assert frame_labels(episodes, starts, "any_of") == [zero, zero, None, None, one, one, None]
    assert frame_labels((), np.array([0]), "one_of") == frame_labels((), np.array([0]), "any_of") == [None]


def test_of_overlapping_episodes_the_one_that_starts_last_counts_where_one_class_holds():
    """The later onset says what the rhythm changed to, in whichever order a file lists them."""
    episodes = (Episode(10, 15, 2), Episode(0, 20, 1))
    assert frame_labels(episodes, np.array([9, 10, 15, 16]), "one_of") == [1, 2, 2, 1]
    assert frame_labels((Episode(0, 5, 1), Episode(0, 5, 2)), np.array([0]), "one_of") == [2]


def test_overlapping_episodes_are_united_where_any_class_may_hold():
    """An arousal during an apnoea is both; a stretch that was looked at and holds neither is not unlabelled."""
    episodes = (Episode(0, 40, frozenset()), Episode(10, 20, 0), Episode(15, 30, frozenset({1, 2})))
    found = frame_labels(episodes, [0, 10, 15, 20, 21, 31, 40, 41], "any_of")
    assert [None if one is None else sorted(one) for one in found] == [
        [], [0], [0, 1, 2], [0, 1, 2], [1, 2], [], [], None
    ]  # fmt: skip


def test_a_set_of_classes_is_refused_where_one_class_holds():
    """Nothing says which of them to take."""
    with pytest.raises(DataError, match="An episode has a set of classes, in a task whose frames have one class"):
        frame_labels((Episode(0, 5, frozenset({1})),), [0], "one_of")


def labels_in_loops(episodes, starts, kind):
    """Look at every episode for every frame."""
    found = []
    for start in starts:
        here = [one for one in episodes if one.onset <= start <= one.offset]
        if kind == "any_of":
            found.append(frozenset(number for one in here for number in one.classes) if here else None)
        else:
            latest = None
            for one in here:
                latest = one if latest is None or one.onset >= latest.onset else latest
            found.append(None if latest is None else latest.label)
    return found


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_labels_of_frames_are_those_that_loops_find(data, kind):
    """Episodes in any order, nested, touching, equal, even backwards; frames in any order, twice too."""
    classes = st.integers(0, 3)
    label = classes if kind == "one_of" else classes | st.frozensets(classes)
    episode = st.builds(Episode, st.integers(0, 30), st.integers(0, 35), label)
    episodes = tuple(data.draw(st.lists(episode, max_size=9)))
    starts = data.draw(st.lists(st.integers(0, 40), max_size=12))
    assert frame_labels(episodes, starts, kind) == labels_in_loops(episodes, starts, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_episodes_are_swept_once(kind):
    """A night of events: every episode times every frame takes 12 s, a sweep a few hundredths of one."""
    episodes = tuple(Episode(1600 * i, 1600 * i + 2000, i % 3) for i in range(10_000))
    before = time.process_time()
    assert None not in frame_labels(episodes, range(0, 16_000_000, 1000), kind)
    assert time.process_time() - before < 2


def test_framing_imports_neither_torch_nor_scipy_signal_unless_it_filters():
    """Workers frame recordings; 1.5 s per worker for what only a polyphase filter needs is too much."""
    program = (
        "import sys, numpy as np\n"
        "from clocs_core.data.framing import cut_frames\n"
        "from clocs_core.contracts.records import Framing, Record\n"
        "record = Record('p', 'r', ('I',), 'mV', 100.0, np.arange(9.0)[None])\n"
        "for rate, resampler in ((None, 'fft'), (50.0, 'fft'), (50.0, 'polyphase')):\n"
        "    cut_frames(record, Framing(frame_samples=4, sampling_rate=rate, resampler=resampler))\n"
        "    print('torch' in sys.modules, 'scipy.signal' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["False False", "False False", "False True"]


@pytest.mark.parametrize(("n", "length"), [(10, 5), (10, 7), (10, 20), (10, 21), (9, 5), (9, 4), (9, 18), (999, 2500)])
def test_stretching_a_spectrum_is_what_scipy_does(n, length):
    """Odd and even, up and down: the line at half the sampling rate is where implementations differ."""
    from scipy.signal import resample

    samples = np.random.default_rng(n).normal(size=(2, n))
    frames = cut_frames(make_record(samples), Framing(frame_samples=length, frames_per_record=1))
    np.testing.assert_allclose(frames.samples[0], resample(samples, length, axis=1), rtol=0, atol=2e-6)


def test_a_gap_is_bridged_by_a_line_before_resampling():
    """A lead with an offset falls to zero in the gap otherwise, and the step rings through all of its frames."""
    n, new_rate = 400, 50.0
    samples = 5.0 + waves(1, n)
    gap, line = samples.copy(), samples.copy()
    gap[0, 100:120] = np.nan
    line[0, 100:120] = samples[0, 99] + (samples[0, 120] - samples[0, 99]) * np.arange(1, 21) / 21
    framing = Framing(frame_samples=50, sampling_rate=new_rate)
    found, expected = (cut_frames(Record("p", "r", ("I",), "mV", 100.0, one), framing) for one in (gap, line))
    assert found.valid[:, 0].tolist() == [True, False, True, True]
    np.testing.assert_allclose(found.samples[[0, 2, 3]], expected.samples[[0, 2, 3]], rtol=0, atol=1e-6)
