"""Predictions of a data set and of files: what the evaluation found comes back, and loops over the weights agree."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from fake_offers import TinyOptions, tiny_load
from fake_plugins import points
from fake_runs import TUNE, evaluate_run, expected_probability, rewritten, tune_run

from clocs_core import Entry
from clocs_core.artifacts.classifier import choose_classifier, load_classifier
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.split import from_json
from clocs_core.errors import DataError, SettingsError
from clocs_core.inference.predict import choose_target, predict_files, predict_recordings
from clocs_core.inference.predicted import as_level
from clocs_core.inference.signals import Unsaid
from clocs_core.plugins.session import open_session

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CPU = torch.device("cpu")
RECORD = "r3-1"


class Screen:
    """Remembers what was shown."""

    def __init__(self):
        self.lines, self.warnings, self.stages, self.ticks = [], [], [], []

    def say(self, text):
        self.lines.append(text)

    def warn(self, text):
        self.warnings.append(text)

    def stage(self, text):
        self.stages.append(text)

    def tick(self, done, total):
        self.ticks.append((done, total))


@pytest.fixture(scope="module")
def session():
    return open_session(points(), (), False)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Evaluations on `many`: one of the classes; any, not normalised, of another split; all channels at once."""
    make = tmp_path_factory.mktemp
    one = tune_run(make("one"))
    return {
        "one": one,
        "any": evaluate_run(
            one.parent.parent, *TUNE, "--task", "findings", "-o", "normalise=none", "--split-seed", "3"
        ),
        "wide": tune_run(make("wide"), run=("--plugin", "leads")),
    }


@pytest.fixture(scope="module")
def loaded(places, session):
    return {name: load_classifier(choose_classifier(path), session.catalogue, CPU) for name, path in places.items()}


@pytest.fixture
def predict(session, places, loaded):
    def call(which, *assignments, part="test", dataset="many", screen=None, data=None, trained_at=100.0):
        root = {"data_root": str(places[which].parents[2] / "data")}
        given = {"data": {**root, **(data or {})}}
        target = choose_target(loaded[which].card, session.catalogue, dataset, given, assignments, trained_at)
        return predict_recordings(loaded[which], target, part, 1, CPU, screen or Screen())

    return call


def samples_of(record):
    return tiny_load(Entry(record, record.partition("-")[0], 0), TinyOptions()).samples


def rows_by_loops(loaded, samples):
    """Frames of 50 samples, each channel by itself or both at once: where each begins, and its probabilities."""
    about, found = loaded.card, []
    for first in range(0, samples.shape[1] - 49, 50):
        frame = samples[:, first : first + 50]
        parts = [(None, frame)] if about.input_channels > 1 else [(n, frame[n : n + 1]) for n in range(len(frame))]
        for channel, signal in parts:
            normalise = about.normalise == "min-max"
            found.append((first, channel, expected_probability(loaded.path, signal, about.task.kind, normalise)))
    return found


# ----------------------------------------------------------------------------------------------------------- a data set


@pytest.mark.parametrize("which", ["one", "any", "wide"])
def test_the_test_patients_are_predicted_as_the_evaluation_predicted_them(predict, places, loaded, which):
    """The same frames through the same network: to the last bit. Recordings without a label are there beside them."""
    kept = read_predictions(places[which] / "predictions.npz")
    ((key, before),) = [(k, rows) for k, rows in kept.items() if k[0] == "finetune" and k[1] != "random"]
    with np.load(places[which] / "predictions.npz") as file:
        records, patients = file["record"], file["patient"]
    found = predict(which)
    names = found.columns()["record"]
    labelled = np.isin(names, records)
    assert key[1] == loaded[which].card.init
    assert names[labelled].tolist() == records.tolist()
    assert found.columns()["patient"][labelled].tolist() == patients.tolist()
    assert np.array_equal(found.probability[labelled], before.probability)
    tested = from_json((places[which] / "split.json").read_text()).patients("test")
    assert set(found.columns()["patient"]) == set(tested)


@pytest.mark.parametrize("which", ["one", "any", "wide"])
def test_every_probability_is_what_loops_over_the_weights_give(predict, loaded, which):
    found = predict(which, part="all")
    names = found.columns()["record"]
    assert len(set(names)) == 72
    for record in (RECORD, "r8-0"):  # one with a label, one without
        mine = np.flatnonzero(names == record)
        expected = rows_by_loops(loaded[which], samples_of(record))
        assert found.start[mine].tolist() == [first for first, _, _ in expected]
        channels = [-1 if channel is None else channel for _, channel, _ in expected]
        assert found.channel[mine].tolist() == channels
        assert np.allclose(found.probability[mine], [row for _, _, row in expected], rtol=1e-4)


def test_no_label_and_no_third_patient_is_needed(predict):
    """A ward has neither when it asks."""
    found = predict("one", "people=2", "labelled=false", dataset="tiny", part="all")
    assert sorted(set(found.columns()["patient"])) == ["p0", "p1"]
    with_labels = predict("one", "people=2", dataset="tiny", part="all")
    assert np.array_equal(found.probability, with_labels.probability)


def test_all_patients_of_its_own_data_set_and_another_split_are_told_of(predict):
    screen = Screen()
    predict("one", part="all", screen=screen)
    assert any("among all patients are those that the classifier was trained on" in line for line in screen.lines)
    assert screen.warnings == []
    assert screen.stages == ["preparing recordings", "predicting"]
    assert screen.ticks
    predict("one", "split_seed=7", screen=screen)
    assert "it may have learnt from those of the validation and test part" in screen.warnings[0]


def test_channels_are_chosen_by_name(predict):
    whole, one = predict("one"), predict("one", data={"channels": ["right"]})
    right = whole.columns()["channel"] == "right"
    assert np.array_equal(one.probability, whole.probability[right])
    assert set(one.columns()["channel"]) == {"right"}


def test_a_data_set_without_its_channels_is_refused(predict):
    with pytest.raises(DataError, match=r"Data set 'strange' has no channel 'left'\. There is: down, up\."):
        predict("one", dataset="strange")
    with pytest.raises(SettingsError, match="reads left, right at once, got right"):
        predict("wide", data={"channels": ["right"]})


def test_what_the_classifier_fixes_cannot_be_set(predict):
    with pytest.raises(SettingsError, match="The normalisation comes with the classifier: min-max"):
        predict("one", "normalise=none")
    with pytest.raises(SettingsError, match="no part of this run has an option 'frame_samples'"):
        predict("one", "frame_samples=9")


def test_a_recording_that_gives_no_frame_has_no_row_and_is_told_of(predict, session, loaded, places):
    """Four channels of nothing: what cannot be predicted must not look like a probability."""
    screen = Screen()

    def load(entry, options):
        record = tiny_load(entry, options)
        return attrs.evolve(record, samples=record.samples * 0) if entry.record == "r1-0" else record

    offer = attrs.evolve(session.catalogue.datasets.get("tiny").offer, load=load, revision=2)
    given = {"data": {"data_root": str(places["one"].parents[2] / "data")}}
    target = choose_target(loaded["one"].card, session.catalogue, "tiny", given, (), 100.0)
    chosen = attrs.evolve(target.recordings.dataset, offer=offer)
    target = attrs.evolve(target, recordings=attrs.evolve(target.recordings, dataset=chosen))
    found = predict_recordings(loaded["one"], target, "all", 1, CPU, screen)
    assert "r1-0" not in found.columns()["record"]
    assert screen.warnings[0].startswith(
        "1 of 20 recordings have no frame that can be used, and no row: dropped 8: 8 flat"
    )


def test_another_unit_is_converted(predict, session, loaded, places):
    """Without normalisation a signal in µV is a thousand times too large."""
    expected = predict("any", dataset="tiny", part="all")

    def load(entry, options):
        record = tiny_load(entry, options)
        return attrs.evolve(record, samples=record.samples * 1000, unit="µV")

    offer = attrs.evolve(session.catalogue.datasets.get("tiny").offer, load=load, revision=3)
    given = {"data": {"data_root": str(places["any"].parents[2] / "data")}}
    target = choose_target(loaded["any"].card, session.catalogue, "tiny", given, (), 100.0)
    chosen = attrs.evolve(target.recordings.dataset, offer=offer)
    target = attrs.evolve(target, recordings=attrs.evolve(target.recordings, dataset=chosen))
    found = predict_recordings(loaded["any"], target, "all", 1, CPU, Screen())
    assert np.allclose(found.probability, expected.probability, rtol=1e-4)


# ---------------------------------------------------------------------------------------------------------------- files


def write_file(path, samples, **facts):
    if path.suffix == ".npz":
        np.savez(path, x=samples, **facts)
    elif path.suffix == ".npy":
        np.save(path, samples)
    else:
        heading = ",".join(facts["channels"])
        np.savetxt(path, samples.T, delimiter=",", header=heading, comments="", fmt="%.17g")
    return path


@pytest.mark.parametrize("which", ["one", "any", "wide"])
@pytest.mark.parametrize("ending", ["csv", "npy", "npz"])
def test_a_file_is_predicted_as_the_recording_of_the_data_set_is(predict, loaded, tmp_path, which, ending):
    whole = predict(which, part="all")
    mine = whole.columns()["record"] == RECORD
    path = write_file(tmp_path / f"mine.{ending}", samples_of(RECORD), channels=["left", "right"])
    names = ("left", "right") if ending == "npy" else ()
    unsaid = Unsaid(sampling_rate=100.0, channels=names, unit="mV", trained_at=100.0)
    found = predict_files(loaded[which], [path], unsaid, CPU, Screen())
    assert np.allclose(found.probability, whole.probability[mine], rtol=1e-6)  # batches of another size
    assert found.columns()["channel"].tolist() == whole.columns()["channel"][mine].tolist()
    assert found.start.tolist() == whole.start[mine].tolist()
    assert set(found.columns()["record"]) == set(found.columns()["patient"]) == {"mine"}


def test_channels_of_a_file_may_lie_in_any_order(predict, loaded, tmp_path):
    samples = samples_of(RECORD)
    path = write_file(tmp_path / "mine.csv", samples[[1, 0, 1]], channels=["right", "left", "other"])
    found = predict_files(loaded["wide"], [path], Unsaid(sampling_rate=100.0, trained_at=100.0), CPU, Screen())
    whole = predict("wide", part="all")
    assert np.allclose(found.probability, whole.probability[whole.columns()["record"] == RECORD], rtol=1e-6)


@pytest.mark.parametrize(("unit", "factor"), [("V", 0.001), ("uV", 1000.0)])
def test_a_file_in_volts_or_microvolts_is_converted(loaded, tmp_path, unit, factor):
    samples = samples_of(RECORD)
    facts = {"channels": ["left", "right"], "fs": 100}
    same = write_file(tmp_path / "mv.npz", samples, unit="mV", **facts)
    other = write_file(tmp_path / "other.npz", samples * factor, unit=unit, **facts)
    both = [
        predict_files(loaded["any"], [path], Unsaid(trained_at=100.0), CPU, Screen()).probability
        for path in (same, other)
    ]
    assert np.allclose(*both, rtol=1e-4)


def test_a_file_of_another_rate_is_brought_to_the_time_scale_of_training(loaded, tmp_path):
    """Sampled twice as often, a smooth signal gives nearly the same probabilities, and as many frames."""
    seconds = np.arange(200) / 100
    twice = np.arange(400) / 200

    def wave(time):
        return np.stack([np.sin(2 * np.pi * 3 * time), np.cos(2 * np.pi * 4 * time)])

    slow = write_file(tmp_path / "slow.npz", wave(seconds), fs=100, channels=["left", "right"])
    fast = write_file(tmp_path / "fast.npz", wave(twice), fs=200, channels=["left", "right"])
    first, second = (
        predict_files(loaded["one"], [path], Unsaid(trained_at=100.0), CPU, Screen()) for path in (slow, fast)
    )
    assert len(first) == len(second) == 8
    assert second.start.tolist() == [2 * one for one in first.start.tolist()]
    assert np.allclose(first.probability, second.probability, atol=1e-3)


def test_several_files_are_several_recordings(loaded, tmp_path):
    (tmp_path / "b").mkdir()
    facts = {"fs": 100, "channels": ["left", "right"]}
    paths = [write_file(tmp_path / name, samples_of(RECORD), **facts) for name in ("x.npz", "y.npz", "b/x.npz")]
    found = as_level(predict_files(loaded["one"], paths[:2], Unsaid(trained_at=100.0), CPU, Screen()), "record")
    assert found.columns()["record"].tolist() == ["x", "y"]
    found = as_level(predict_files(loaded["one"], paths, Unsaid(trained_at=100.0), CPU, Screen()), "record")
    assert found.columns()["record"].tolist() == [str(path) for path in paths]


def test_what_a_person_should_know_of_a_file_is_said(loaded, tmp_path):
    samples = samples_of(RECORD)
    samples[0, 60] = np.nan
    path = write_file(tmp_path / "x.npz", samples, fs=250, channels=["up", "right"])
    screen = Screen()
    unsaid = Unsaid(sampling_rate=100.0, channels=("up", "right"), trained_at=100.0, unseen_channels=True)
    assert len(predict_files(loaded["one"], [path], unsaid, CPU, screen)) == 7
    assert screen.lines == [
        f"{path} says 250 Hz; 100 Hz was given, and is used.",
        "The classifier was trained on left, right; up is new to it.",
        f"{path}: dropped 1: 1 NaN (x up frame 1)",
    ]
    assert screen.stages == ["predicting x"]


@pytest.mark.parametrize(
    ("which", "samples", "facts", "unsaid", "message"),
    [
        (
            "one",
            200,
            {"channels": ["left", "right"]},
            {},
            "does not say its sampling rate; give it in Hz: `sampling_rate=HZ`",
        ),
        ("one", 40, {"fs": 100, "channels": ["left", "right"]}, {}, r"40 samples \(0\.4 s at 100 Hz\), .* of 0\.5 s\."),
        ("one", 60, {"fs": 200, "channels": ["left", "right"]}, {}, r"60 samples \(0\.3 s at 200 Hz\), .* of 0\.5 s\."),
        (
            "one",
            200,
            {"fs": 100},
            {},
            r"does not name its 2 channels: name all of them, .*`channels=\['left', 'right'\]`",
        ),
        ("one", 200, {"fs": 100}, {"channels": ("left",)}, "does not name its 2 channels: .* got left"),
        ("one", 200, {"fs": 100, "channels": ["left", "V2"]}, {}, r"no channel 'right'.* add `channels=\['left'\]`"),
        (
            "one",
            200,
            {"fs": 100, "channels": ["left", "V2"]},
            {"channels": ("V2",)},
            "left, right, not on 'V2'.* add `unseen_channels=True`",
        ),
        ("one", 200, {"fs": 100}, {"channels": ("left", "rihgt")}, r"not on 'rihgt' \(nearest in name: right\)"),
        ("one", 200, {"fs": 100, "channels": ["left", "right"], "unit": "mmHg"}, {}, "is in mmHg, .* be converted"),
        ("any", 200, {"fs": 100, "channels": ["left", "right"]}, {}, "does not say its unit"),
        ("wide", 200, {"fs": 100, "channels": ["left", "V2"]}, {}, r"no channel 'right'.* left, right, at once\."),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_a_way_out(loaded, tmp_path, which, samples, facts, unsaid, message):
    path = write_file(tmp_path / "mine.npz", np.random.default_rng(0).normal(size=(2, samples)), **facts)
    with pytest.raises(DataError, match=message):
        predict_files(loaded[which], [path], Unsaid(trained_at=100.0, **unsaid), CPU, Screen())


def test_nothing_that_is_no_number_comes_out(loaded, tmp_path):
    facts = {"fs": 100, "unit": "mV", "channels": ["left", "right"]}
    flat = write_file(tmp_path / "flat.npz", np.ones((2, 200)), **facts)
    with pytest.raises(DataError, match="has no frame that can be used: dropped 8: 8 flat"):
        predict_files(loaded["any"], [flat], Unsaid(trained_at=100.0), CPU, Screen())
    huge = np.random.default_rng(0).uniform(-3e38, 3e38, size=(2, 200))
    with pytest.raises(DataError, match=r"gives no number for \d of 8 frames, the first of record huge"):
        predict_files(
            loaded["any"], [write_file(tmp_path / "huge.npz", huge, **facts)], Unsaid(trained_at=100.0), CPU, Screen()
        )


def test_a_classifier_that_says_its_rate_needs_nobody_to_say_it(places, session, tmp_path):
    file = tmp_path / "c.safetensors"
    file.write_bytes(choose_classifier(places["one"]).read_bytes())
    path = write_file(tmp_path / "x.npz", samples_of(RECORD), fs=100, channels=["left", "right"])
    says = load_classifier(
        rewritten(file, lambda _, about: about["signal"].update(frame_rate=100.0)), session.catalogue, CPU
    )
    assert len(predict_files(says, [path], Unsaid(), CPU, Screen())) == 8
    silent = load_classifier(
        rewritten(file, lambda _, about: about["signal"].pop("frame_rate", None)), session.catalogue, CPU
    )
    with pytest.raises(SettingsError, match="`trained_at=HZ`"):
        predict_files(silent, [path], Unsaid(), CPU, Screen())
