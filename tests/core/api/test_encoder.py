"""An encoder in a notebook: signals as they are in, representations out; and as a step of a pipeline."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import torch
from fake_encoders import ALL_AT_ONCE, installed, plan_of, write_encoder
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clocs_core as clocs
from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.contracts.offers import Needs

FIRST = Needs(channels="all", least_channels=2, encoders=2, first_channels=(0, 1))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Files of encoders that never trained: of one channel, four at once, not normalised, and the first of two."""
    catalogue, found = installed(), {}
    for name, plan in (
        ("one", plan_of(catalogue, channels=["II", "V2"])),
        ("wide", plan_of(catalogue, ALL_AT_ONCE)),
        ("raw", plan_of(catalogue, normalise="none")),
        ("first", plan_of(catalogue, FIRST, channels=["II", "V2"])),
    ):
        folder = tmp_path_factory.mktemp(name)
        found[name] = write_encoder(folder, plan, versions={"clocs": "0.1", "plugin gone": "clocs-gone 2.0"})[1]
    return found


@pytest.fixture(scope="module")
def encoders(places):
    return {name: clocs.load(path) for name, path in places.items()}


def changed(path, folder, change):
    """A copy of a file with another description."""
    tensors, about = read_tensors(path)
    change(about)
    save_tensors(tensors, about, folder / path.name)
    return folder / path.name


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def by_loops(encoder, signal):
    """Frames of 2500 samples, each channel between 0 and 1, one forward pass each: (frame, channel, E)."""
    found = []
    for first in range(0, signal.shape[1] - 2499, 2500):
        row = []
        for channel in signal[:, first : first + 2500]:
            frame = (channel - channel.min()) / (channel.max() - channel.min())
            with torch.no_grad():
                row.append(encoder.network(torch.from_numpy(frame).float()[None, None])[0].numpy())
        found.append(row)
    return np.array(found)


# -------------------------------------------------------------------------------------------------------------- opening


def test_a_name_that_clocs_does_not_have_is_said_as_of_any_module():
    """`load` comes when it is asked for, since it needs torch; nothing else does."""
    assert {"Embedded", "Embedder", "load"} <= set(clocs.__all__)
    with pytest.raises(AttributeError, match=r"^No clocs_core attribute laod$"):
        clocs.laod  # noqa: B018


def test_a_file_and_its_folder_open_the_same_encoder_and_say_what_it_is(places, encoders):
    card = encoders["one"].about
    assert clocs.load(str(places["one"].parent)).about == card
    assert (card.method, card.dataset, card.channels, card.unit) == ("cmsc", "demo", ("II", "V2"), "mV")
    assert card.task.classes
    assert len(card.split_hash) > 8


def test_only_the_encoders_own_plugin_is_needed(places, tmp_path):
    """Whoever uses an encoder has neither the data set nor the method that made it."""

    def change(about):
        about.update(dataset="gone", method="gone")

    clocs.load(changed(places["one"], tmp_path, change))
    missing = changed(places["one"], tmp_path, lambda about: about["encoder"].update(name="gone"))
    with pytest.raises(
        clocs.UnknownName, match=r"holds an encoder 'gone' that is not installed .*: gone \(clocs-gone 2"
    ):
        clocs.load(missing)


# ------------------------------------------------------------------------------------------------------------ embedding


def test_every_frame_and_channel_has_the_encoders_answer(encoders):
    """One by one, by loops: (frame, channel, E), and where each frame begins."""
    signal = noise(2, 6000)
    found = encoders["one"].embed(signal, sampling_rate=500, channels=["II", "V2"])
    assert found.embedding.shape == (2, 2, 8)
    assert found.embedding.dtype == np.float32
    np.testing.assert_allclose(found.embedding, by_loops(encoders["one"], signal), atol=1e-5)
    assert found.start.tolist() == [0, 2500]
    assert found.channels == ("II", "V2")


def test_rows_that_only_another_encoder_of_the_run_read_are_not_embedded(encoders):
    """A recording of two modalities is given as it is; who means the other one has to say so."""
    signal = noise(2, 2500)
    found = encoders["first"].embed(signal, sampling_rate=500, channels=["Lead II", "v2"], unit="mV")
    assert found.channels == ("II",)
    np.testing.assert_allclose(found.embedding, by_loops(encoders["first"], signal[:1]), atol=1e-5)
    with pytest.raises(clocs.DataError, match="trained on II, not on 'V2'"):
        encoders["first"].embed(signal[1], sampling_rate=500, channels=["V2"], unit="mV")
    with pytest.warns(clocs.ClocsWarning, match="trained on II; V2 is new to it"):
        both = encoders["first"].embed(signal, sampling_rate=500, channels="II,V2", unit="mV", unseen_channels=True)
    assert both.channels == ("II", "V2")


def test_a_tensor_a_list_and_one_channel_alone_will_do(encoders):
    signal, embed = noise(1, 2500), encoders["one"].embed
    expected = embed(signal, sampling_rate=500, channels=["II"]).embedding
    for same in (signal[0], torch.from_numpy(signal), signal[0].tolist(), torch.from_numpy(signal[0])):
        np.testing.assert_array_equal(embed(same, sampling_rate=500.0, channels="II").embedding, expected)


@pytest.mark.parametrize("name", ["ii", "Lead II", " II "])
def test_a_channel_may_be_spelt_in_its_other_ways(encoders, name):
    assert encoders["one"].embed(noise(2500), sampling_rate=500, channels=[name]).channels == ("II",)


def test_another_rate_is_brought_to_that_of_training(encoders):
    """A heart beats no faster for being sampled less often: 10 s at 250 Hz are two frames, as at 500 Hz."""

    def wave(rate):
        seconds = np.arange(10 * rate) / rate
        return np.sin(2 * np.pi * 3 * seconds) + 0.3 * np.cos(2 * np.pi * 7 * seconds)

    embed = encoders["one"].embed
    slow, own = (embed(wave(rate), sampling_rate=rate, channels="II") for rate in (250, 500))
    np.testing.assert_allclose(slow.embedding, own.embedding, atol=1e-4)
    assert slow.start.tolist() == [0, 1250]


@pytest.mark.parametrize(("unit", "factor"), [("V", 0.001), ("uV", 1000.0)])
def test_volts_of_all_sizes_are_converted(encoders, unit, factor):
    embed, signal = encoders["raw"].embed, noise(2500)
    expected = embed(signal, sampling_rate=500, channels="II", unit="mV").embedding
    np.testing.assert_allclose(
        embed(signal * factor, sampling_rate=500, channels="II", unit=unit).embedding, expected, rtol=1e-4, atol=1e-6
    )


def test_an_encoder_of_several_channels_finds_them_by_name(encoders):
    names, signal = ["aVR", "I", "V2", "aVL", "ii"], noise(5, 2500)
    found = encoders["wide"].embed(signal, sampling_rate=500, channels=names)
    order = [4, 2, 3, 0]  # II, V2, aVL, aVR
    straight = encoders["wide"].embed(signal[order], sampling_rate=500, channels=["II", "V2", "aVL", "aVR"])
    np.testing.assert_array_equal(found.embedding, straight.embedding)
    assert (found.embedding.shape, found.channels) == ((1, 1, 8), ("all",))


def test_what_cannot_be_used_is_nan_and_told_of(encoders):
    signal = noise(2, 5000)
    signal[1, 3000] = np.nan
    with pytest.warns(clocs.ClocsWarning, match="The signal: dropped 1: 1 NaN") as heard:
        found = encoders["one"].embed(signal, sampling_rate=500, channels=["II", "V2"])
    assert heard[0].filename == __file__
    assert np.isnan(found.embedding[1, 1]).all()
    assert np.isfinite(found.embedding[[0, 0, 1], [0, 1, 0]]).all()


def test_masked_samples_are_missing_ones(encoders):
    """They were embedded with whatever lay under the mask."""
    signal = noise(1, 5000)
    masked = np.ma.MaskedArray(signal, mask=np.zeros(signal.shape, dtype=bool))
    masked[0, 3000:3010] = np.ma.masked
    with pytest.warns(clocs.ClocsWarning, match="The signal: dropped 1: 1 NaN"):
        found = encoders["one"].embed(masked, sampling_rate=500, channels=["II"])
    assert np.isnan(found.embedding[1, 0]).all()
    np.testing.assert_array_equal(
        found.embedding[0], encoders["one"].embed(signal[:, :2500], sampling_rate=500, channels=["II"]).embedding[0]
    )


@pytest.mark.parametrize("name", ["PLETH", "V9", "MLII"])
def test_a_channel_that_it_never_saw_is_embedded_only_where_it_is_meant(encoders, name):
    """An encoder of ECG leads answers a pulse wave with numbers, too."""
    signal = noise(2500)
    with pytest.raises(clocs.DataError, match=f"trained on II, V2, not on {name!r}.* add `unseen_channels=True`"):
        encoders["one"].embed(signal, sampling_rate=500, channels=[name])
    with pytest.raises(clocs.DataError, match="Without it, the others can be read"):
        encoders["one"].embed(noise(2, 2500), sampling_rate=500, channels=["II", name])
    with pytest.warns(clocs.ClocsWarning, match=f"was trained on II, V2; {name} is new to it"):
        found = encoders["one"].embed(signal, sampling_rate=500, channels=[name], unseen_channels=True)
    assert found.channels == (name,)
    np.testing.assert_allclose(found.embedding, by_loops(encoders["one"], signal[None]), atol=1e-5)


@pytest.mark.parametrize("rate", [0, -500, float("nan"), float("inf"), "500", None])
def test_a_rate_that_no_recording_has_is_refused(encoders, rate):
    for name, words in (("sampling_rate", {}), ("trained_at", {"sampling_rate": 500})):
        given = rate if name == "sampling_rate" else rate or 0  # no rate of training at all may be right
        message = rf"^`{name}` must be a positive number of Hz, got {re.escape(repr(given))}\.$"
        with pytest.raises(clocs.SettingsError, match=message):
            encoders["one"].embed(noise(2500), channels="II", **words, **{name: given})


def test_a_rate_may_be_any_kind_of_number(encoders):
    """16 bits of 500 Hz, times a frame of 2500 samples, would overflow."""
    embed, signal = encoders["one"].embed, noise(5000)
    expected = embed(signal, sampling_rate=250, channels="II").embedding
    for rate in (np.int16(250), np.float32(250), 250.0):
        np.testing.assert_array_equal(embed(signal, sampling_rate=rate, channels="II").embedding, expected)


@pytest.mark.parametrize(
    ("which", "signal", "words", "error", "message"),
    [
        ("one", noise(2500, 2), {"channels": ["II", "V2"]}, clocs.DataError, "channels are 2: II, V2; its transpose"),
        ("one", noise(2, 2500), {"channels": ["II"]}, clocs.DataError, r"\(2, 2500\), and channels are 1: II\. Name"),
        ("one", noise(2, 2, 9), {"channels": ["II"]}, clocs.DataError, r"expected \(channel, sample\) or \(sample,\)"),
        ("one", ["x"], {"channels": "II"}, clocs.DataError, "expected real numbers"),
        ("one", noise(2500), {"channels": "II", "sampling_rate": 0.5}, clocs.DataError, "has 2.5 samples for a frame"),
        ("one", noise(100), {"channels": "II"}, clocs.DataError, r"reads frames of 5 s\..* `sampling_rate=HZ`"),
        ("one", noise(2500), {"channels": "II", "unit": "mmHg"}, clocs.DataError, "another word, add `unit='mV'`"),
        ("raw", noise(2500), {"channels": "II"}, clocs.DataError, "not normalised; add `unit='mV'`"),
        ("wide", noise(1, 2500), {"channels": "II"}, clocs.DataError, "no channel 'V2'.* II, V2, aVL, aVR, at once"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(encoders, which, signal, words, error, message):
    with pytest.raises(error, match=message):
        encoders[which].embed(signal, **{"sampling_rate": 500, **words})


def test_a_file_that_does_not_say_its_rate_asks_for_it(places, tmp_path):
    silent = clocs.load(changed(places["one"], tmp_path, lambda about: about["signal"].pop("frame_rate")))
    with pytest.raises(clocs.SettingsError, match="say it with `trained_at=HZ`"):
        silent.embed(noise(2500), sampling_rate=500, channels="II")
    assert len(silent.embed(noise(2500), sampling_rate=500, channels="II", trained_at=500).embedding) == 1


# --------------------------------------------------------------------------------------------------------- scikit-learn


def test_it_is_a_step_of_a_pipeline(encoders):
    """Frames in, classes out, and the encoder stays as it was."""
    frames, label = noise(40, 2500), np.arange(40) % 2
    frames[label == 1] = np.cumsum(frames[label == 1], axis=1)
    pipeline = make_pipeline(encoders["one"], StandardScaler(), LogisticRegression())
    assert pipeline.fit(frames, label).score(frames, label) > 0.8
    assert clone(pipeline).fit(frames[:, None], label).score(frames, label) > 0.8
    names = pipeline[:-1].get_feature_names_out()
    assert names.tolist() == [f"embedder{n}" for n in range(8)]
    assert pipeline.n_features_in_ == 2500


def test_frames_become_what_the_recording_made_of_them_becomes(encoders):
    signal = noise(4, 5000)
    rows = encoders["one"].transform(signal.reshape(8, 2500))
    names = ["II", "V2", "V5", "I"]
    with pytest.warns(clocs.ClocsWarning, match="V5, I is new to it"):
        whole = encoders["one"].embed(signal, sampling_rate=500, channels=names, unseen_channels=True)
    np.testing.assert_allclose(rows.reshape(4, 2, 8), whole.embedding.transpose(1, 0, 2), atol=1e-5)
    together = encoders["wide"].transform(torch.from_numpy(noise(3, 4, 2500)))
    assert (together.shape, together.dtype) == ((3, 8), np.float32)


def test_a_clone_and_a_copy_in_another_process_open_the_file_again(places, encoders):
    """Cross-validation clones; processes of joblib are sent copies, and no weights travel in a pickle."""
    frames = noise(3, 2500)
    expected = encoders["one"].fit().transform(frames)
    sent = pickle.dumps(encoders["one"])
    assert len(sent) < 1000
    for other in (clone(encoders["one"]), pickle.loads(sent)):
        assert other.get_params() == {"path": places["one"], "device": "cpu"}
        np.testing.assert_array_equal(other.transform(frames), expected)
    moved = clone(encoders["one"]).set_params(path=places["wide"])
    assert moved.about.input_channels == 4


@pytest.mark.parametrize(
    ("which", "frames", "message"),
    [
        ("one", noise(3, 2400), r"\(3, 2400\), and the encoder reads frames \(n, 1, 2500\) or \(n, 2500\)\. `embed`"),
        ("one", noise(3, 2, 2500), r"reads frames \(n, 1, 2500\)"),
        ("wide", noise(3, 2500), r"reads frames \(n, 4, 2500\): II, V2, aVL, aVR\."),
        ("one", np.where(np.arange(2500) == 7, np.nan, noise(2, 2500)), "in 2 frames, the first is 0; leave them out"),
    ],
)
def test_frames_of_another_shape_are_refused(encoders, which, frames, message):
    with pytest.raises(clocs.DataError, match=message):
        encoders[which].transform(frames)


@pytest.mark.parametrize(
    "signal", [5.0, None, [[1.0, 2.0], [1.0]], [], "abc"], ids=["number", "none", "ragged", "empty", "text"]
)
def test_what_is_no_signal_is_a_sentence(encoders, signal):
    with pytest.raises(clocs.DataError):
        encoders["one"].embed(signal, sampling_rate=500, channels=["II"])
