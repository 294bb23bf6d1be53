"""Long recordings are read in windows, and their frames are those of the whole recording."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import attrs
import made_files
import numpy as np
import pytest
from fake_encoders import fake_card

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import Framing
from clocs_core.data.framing import source_span
from clocs_core.data.signal_file import read_signal_file
from clocs_core.errors import DataError
from clocs_core.inference import windows
from clocs_core.inference.signals import Unsaid, cut_own_frames, read_own_frames
from clocs_core.inference.windows import Window, windows_of

RATE = 100
CARD = fake_card(NetworkCard, normalise="none", frame_rate=100.0)
FRAME = CARD.frame_samples
FRAMINGS = {
    "own rate": Framing(frame_samples=FRAME),
    "windows": Framing(frame_samples=FRAME, source_samples=70),
    "polyphase": Framing(frame_samples=FRAME, sampling_rate=130.0, resampler="polyphase"),
    "fourier": Framing(frame_samples=FRAME, sampling_rate=130.0, resampler="fft"),
    "band-pass": Framing(frame_samples=FRAME, band_pass=(0.5, 40.0)),
    "resampled and filtered": Framing(frame_samples=FRAME, sampling_rate=125.0, resampler="polyphase", notch=30.0),
}


@pytest.fixture
def few_at_once(monkeypatch):
    """Windows of 20 s, with 8 s around them where filters need it."""
    monkeypatch.setattr(windows, "_AT_ONCE", 20.0)
    monkeypatch.setattr(windows, "_SETTLED", 8.0)


def smooth(seconds: float) -> np.ndarray:
    """Two channels without steps: noise below 10 Hz, some samples missing and some flat in one of them."""
    draws = np.random.default_rng(0).normal(size=(2, round(seconds * RATE)))
    kernel = np.hanning(41)
    held = np.stack([np.convolve(row, kernel / kernel.sum(), "same") for row in draws])
    held[1, 4000:4300] = np.nan
    held[1, 6000:6600] = 0.25
    return held


@pytest.mark.parametrize("name", FRAMINGS)
@pytest.mark.parametrize("seconds", [61.0, 100.4, 200.0])
def test_frames_of_windows_are_those_of_the_whole_recording(tmp_path: Path, few_at_once, name, seconds):
    path, card = tmp_path / "long.npz", attrs.evolve(CARD, framing=FRAMINGS[name])
    said, told = [], []
    np.savez(path, x=smooth(seconds), channels=["II", "V2"], fs=RATE, unit="mV")
    parts = list(read_own_frames(card, path, Unsaid(), said.append))
    whole = cut_own_frames(card, read_signal_file(path), str(path), Unsaid(), told.append)
    assert len(parts) > 2
    before = np.cumsum([0, *(len(part.starts) for part in parts[:-1])])
    joined = np.concatenate([part.signal for part in parts])
    assert np.concatenate([part.starts for part in parts]).tolist() == whole.starts.tolist()
    assert np.concatenate([part.start for part in parts]).tolist() == whole.start.tolist()
    frames = [count + part.frame for count, part in zip(before, parts, strict=True)]
    assert np.concatenate(frames).tolist() == whole.frame.tolist()
    assert np.concatenate([part.channel for part in parts]).tolist() == whole.channel.tolist()
    # Where a recording ends, the Fourier method sees a step to its beginning, and so it does where a window ends.
    inner = slice(6, -6) if name == "fourier" else slice(None)
    np.testing.assert_allclose(joined[inner], whole.signal[inner], atol={"fourier": 1e-3}.get(name, 5e-5))
    assert said == told


def test_a_recording_that_is_stretched_as_a_whole_is_read_as_a_whole(few_at_once):
    assert windows_of(20_000, 100.0, Framing(frame_samples=50, frames_per_record=4)) == [Window(0, 20_000)]


def test_a_recording_of_less_than_two_windows_is_read_as_a_whole():
    assert windows_of(2 * 360_000 - 1, 100.0, Framing(frame_samples=50)) == [Window(0, 719_999)]
    assert len(windows_of(2 * 360_000, 100.0, Framing(frame_samples=50))) == 2


@pytest.mark.parametrize("rate", [100.0, 128.0, 360.0, 512.2, 1000.0])
def test_every_frame_is_kept_by_one_window(few_at_once, rate):
    """Frames may span a fraction of a sample; windows begin where one begins with a sample."""
    framing = Framing(frame_samples=50, sampling_rate=97.0)
    length = round(155 * rate)
    span = source_span(framing, rate, length)
    assert span is not None
    found = windows_of(length, rate, framing)
    kept = []
    for window in found:
        frames = int((window.last - window.first) / span)
        end = frames if window.end is None else window.end
        assert end <= frames
        assert Fraction(window.first) == window.before * span
        kept += range(window.before + window.begin, window.before + end)
    assert kept == list(range(int(length / span)))


@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_a_rate_that_makes_no_sense_is_refused_by_its_sentence(tmp_path: Path, rate):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 900)), channels=["II", "V2"], fs=rate, unit="mV")
    with pytest.raises(DataError, match="sampling rate"):
        list(read_own_frames(CARD, tmp_path / "x.npz", Unsaid(), lambda text: None))


def test_a_file_of_which_no_window_has_a_usable_frame_is_refused_with_all_reasons(tmp_path: Path, few_at_once):
    path = made_files.write_wfdb(tmp_path / "flat.hea", np.zeros((2, 10_000)), RATE)
    card = attrs.evolve(CARD, channels=("I", "II"))
    with pytest.raises(DataError, match=rf"no frame that can be used: .*{2 * 10_000 // FRAME} flat"):
        list(read_own_frames(card, path, Unsaid(), lambda text: None))
