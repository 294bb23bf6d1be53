"""Frames last as long as in training, whatever the rate of the recordings: a folder of files, and single files."""

from __future__ import annotations

from pathlib import Path

import attrs
import made_files
import numpy as np
import pytest
from fake_encoders import CPU, installed, plan_of, write_encoder

from clocs_core.artifacts.encoder import load_encoder
from clocs_core.errors import DataError
from clocs_core.inference.embed import Wanted, choose_recordings, embed_files, embed_recordings, get_recordings
from clocs_core.inference.signals import Unsaid

TRAINED = 500.0  # Hz: `demo`, of which a frame lasts 5 s


class Told:
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)

    def stage(self, text):
        """Nothing is shown."""

    def tick(self, done, total):
        """Nothing is shown."""

    def warn(self, text):
        """The kind of signal is another, which other tests look at."""


@pytest.fixture(scope="module")
def catalogue():
    return installed()


@pytest.fixture
def loaded(tmp_path, catalogue):
    (tmp_path / "run").mkdir()
    write_encoder(tmp_path / "run", plan_of(catalogue))
    return load_encoder(tmp_path / "run", catalogue, CPU)


def folder_of(path: Path, rates, seconds: float) -> Path:
    path.mkdir()
    for number, rate in enumerate(rates):
        made_files.write_wfdb(path / f"r{number}.hea", made_files.wave(rate, seconds, seed=number), rate)
    return path


def chosen(loaded, catalogue, root, assignments=()):
    given = {"data": {"root": str(root), "data_root": str(root.parent / "prepared")}}
    return choose_recordings(loaded.card, catalogue, "arrays", given, ["channels=II", *assignments])


@pytest.mark.parametrize(("rate", "seconds", "frames"), [(250, 20.0, 4), (100, 10.0, 2), (1000, 10.0, 2)])
def test_recordings_of_another_rate_are_read_as_single_files_are(tmp_path, catalogue, loaded, rate, seconds, frames):
    """At 100 Hz, ten seconds have too few samples for a frame before they are resampled."""
    root, show = folder_of(tmp_path / "own", [rate] * 5, seconds), Told()
    target = chosen(loaded, catalogue, root)
    cohort = get_recordings(loaded.card, target, 1, show)
    found = embed_recordings(loaded, target, cohort, Wanted("all"), CPU, show).rows
    assert cohort.evaluate.frame_rate == TRAINED
    assert show.said == [f"recordings at {rate} Hz are resampled, so that a frame lasts as long as in training"]
    for number in range(5):
        alone = embed_files(loaded, [root / f"r{number}.hea"], Unsaid(channels=("II",)), CPU, Told())
        mine = found.features.embedding[found.features.record == number]
        assert len(mine) == frames
        np.testing.assert_allclose(mine, alone.embedding, atol=1e-5)


def test_recordings_of_several_rates_are_brought_to_one(tmp_path, catalogue, loaded):
    show = Told()
    cohort = get_recordings(
        loaded.card, chosen(loaded, catalogue, folder_of(tmp_path / "own", [500, 250, 500, 250, 500], 10.0)), 1, show
    )
    assert cohort.evaluate.frame_rate == TRAINED
    assert np.bincount(cohort.evaluate.record).tolist() == [2] * 5
    assert show.said == ["recordings at 250, 500 Hz are resampled, so that a frame lasts as long as in training"]


def test_recordings_of_the_rate_of_training_are_prepared_once_and_as_they_are(tmp_path, catalogue, loaded):
    root, show = folder_of(tmp_path / "own", [500] * 5, 10.0), Told()
    cohort = get_recordings(loaded.card, chosen(loaded, catalogue, root), 1, show)
    assert (cohort.evaluate.framing.sampling_rate, show.said) == (None, [])
    assert len(list((tmp_path / "prepared" / "prepared" / "arrays").glob("*/manifest.json"))) == 1


def test_a_framing_that_is_asked_for_is_kept_to(tmp_path, catalogue, loaded):
    root, show = folder_of(tmp_path / "own", [250] * 5, 20.0), Told()
    cohort = get_recordings(loaded.card, chosen(loaded, catalogue, root, ["source_samples=1000"]), 1, show)
    assert (cohort.evaluate.frame_rate, show.said) == (625.0, [])


def test_a_data_set_with_a_time_scale_of_its_own_keeps_it(catalogue, loaded):
    assert not choose_recordings(loaded.card, catalogue, "ptbxl", {}).keeps_time
    assert choose_recordings(loaded.card, catalogue, "demo", {}).keeps_time


def test_an_encoder_of_frames_of_several_time_scales_asks_for_none(catalogue, loaded):
    card = attrs.evolve(loaded.card, frame_rate=None)
    assert not choose_recordings(card, catalogue, "demo", {}).keeps_time


def test_recordings_that_are_too_short_at_any_rate_are_refused(tmp_path, catalogue, loaded):
    with pytest.raises(DataError, match="no recording gives a frame"):
        get_recordings(loaded.card, chosen(loaded, catalogue, folder_of(tmp_path / "own", [250] * 5, 2.0)), 1, Told())
