"""Encoders as ONNX: which windows, the same numbers as PyTorch on real recordings, and no file where they differ."""

from __future__ import annotations

import json
import sys

import attrs
import numpy as np
import pytest
import torch
from fake_encoders import ALL_AT_ONCE, CPU, installed, plan_of, write_encoder

from clocs_core.artifacts.encoder import load_encoder
from clocs_core.contracts.records import Framing
from clocs_core.data.framing import cut_frames
from clocs_core.errors import SettingsError, Unavailable
from clocs_core.inference import onnx_file as export
from clocs_core.inference.onnx_file import as_module, choose_window, export_onnx
from clocs_core.plan.data import resolve_data
from clocs_core.plan.pretraining import resolve

REAL = {"chapman": ("chapman", 500.0), "cardiology": ("cardiology", 200.0)}


@pytest.fixture(scope="module")
def catalogue():
    return installed()


def open_encoder(folder, catalogue, needs=None, **changes):
    write_encoder(folder, plan_of(catalogue, needs))
    loaded = load_encoder(folder, catalogue, CPU)
    return attrs.evolve(loaded, card=attrs.evolve(loaded.card, **changes))


# ------------------------------------------------------------------------------------------------------- which windows


@pytest.mark.parametrize(
    ("framing", "frame_rate", "rate", "expected"),
    [
        (Framing(), 500.0, None, (2500, 500.0)),
        (Framing(), 500.0, 400.0, (2000, 400.0)),
        (Framing(sampling_rate=250.0), 250.0, None, (2500, 250.0)),
        (Framing(sampling_rate=250.0), 250.0, 500.0, (5000, 500.0)),
        (Framing(source_samples=256), 2500 / 1.28, None, (256, 200.0)),
        (Framing(source_samples=256), 2500 / 1.28, 400.0, (512, 400.0)),
        (Framing(frames_per_record=2), None, None, (2500, None)),
        (Framing(frames_per_record=2), 500.0, None, (2500, 500.0)),  # recordings of 10 s
        (Framing(frames_per_record=2), 500.0, 1000.0, (5000, 1000.0)),
    ],
)
def test_a_window_lasts_as_long_as_a_frame(tmp_path, catalogue, framing, frame_rate, rate, expected):
    """At the rate that is asked for, or at that of the recordings of the run."""
    card = open_encoder(tmp_path, catalogue, framing=framing, frame_rate=frame_rate).card
    window = choose_window(card, rate)
    assert (window.samples, window.rate) == expected


def test_windows_that_cannot_be_are_refused(tmp_path, catalogue):
    card = open_encoder(tmp_path, catalogue, framing=Framing(), frame_rate=500.0).card
    with pytest.raises(
        SettingsError, match=r"lasts 5 s, which at 250\.5 Hz are 1252\.5 samples, .* resample to 500 Hz"
    ):
        choose_window(card, 250.5)
    with pytest.raises(SettingsError, match="stretched whole recordings to 2 frames"):
        choose_window(attrs.evolve(card, framing=Framing(frames_per_record=2), frame_rate=None), 500.0)


# ------------------------------------------------------------------------------------------------------ real recordings


def real_windows(catalogue, test_data, name, card, rate, most=2):
    """Windows of real recordings (n, 1, sample) in their own unit, and the frames that clocs makes of them."""
    folder, _ = REAL[name]
    recordings = resolve_data(catalogue, name, {"data": {"root": str(test_data / folder)}})
    offer = recordings.dataset.offer
    listing = offer.scan(test_data / folder, recordings.task, recordings.dataset.options)
    windows, frames = [], []
    for entry in listing.entries[:3]:
        record = offer.load(entry, recordings.dataset.options)
        assert record.sampling_rate == rate
        size = choose_window(card, rate).samples
        made = cut_frames(record, card.framing)  # as a run cuts them
        signal = record.physical()
        for frame, first in enumerate(made.start[:2]):
            for channel in np.flatnonzero(made.valid[frame])[:most]:
                windows.append(signal[channel, first : first + size])
                frames.append(made.samples[frame, channel] / made.gain)
    return np.array(windows, dtype=np.float32)[:, None], np.array(frames, dtype=np.float32)[:, None]


def by_pytorch(loaded, frames):
    """The encoder on frames, one at a time, normalised by hand in float64."""
    found = []
    for frame in frames.astype(np.float64):
        low, high = frame.min(), frame.max()
        signal = (frame - low) / (high - low + 1e-8) if loaded.card.normalise == "min-max" else frame
        with torch.no_grad():
            found.append(loaded.encoder(torch.from_numpy(signal).float()[None])[0].numpy())
    return np.array(found)


def real_encoder(folder, catalogue, name):
    """An encoder that cuts as the data set asks for; normalised, since a gain is not known of every recorder."""
    framing = catalogue.datasets.get(name).offer.framing(1)
    rate = REAL[name][1] * framing.frame_samples / framing.source_samples if framing.source_samples else 250.0
    return open_encoder(folder, catalogue, framing=framing, frame_rate=rate, normalise="min-max")


@pytest.mark.parametrize("name", ["cardiology", pytest.param("chapman", marks=pytest.mark.slow)])
def test_what_is_exported_gives_the_embeddings_of_real_recordings(tmp_path, catalogue, test_data, name):
    """At their own rates, to 1e-5: 10 s at 500 Hz become 2500 samples inside, and so do 1.28 s at 200 Hz."""
    loaded = real_encoder(tmp_path, catalogue, name)
    rate = REAL[name][1]
    windows, frames = real_windows(catalogue, test_data, name, loaded.card, rate)
    assert len(windows) >= 4
    module = as_module(loaded, choose_window(loaded.card, rate))
    with torch.no_grad():
        found = module(torch.from_numpy(windows)).numpy()
    np.testing.assert_allclose(found, by_pytorch(loaded, frames), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(REAL))
def test_the_file_gives_the_embeddings_of_real_recordings(tmp_path, catalogue, test_data, name):
    """The same of the file itself, as another program reads it, in batches of any size."""
    onnxruntime = pytest.importorskip("onnxruntime")
    loaded = real_encoder(tmp_path, catalogue, name)
    rate = REAL[name][1]
    windows, frames = real_windows(catalogue, test_data, name, loaded.card, rate)
    path = tmp_path / "encoder.onnx"
    assert export_onnx(loaded, choose_window(loaded.card, rate), path) <= 1e-5
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = by_pytorch(loaded, frames)
    for batch in (windows, windows[:1]):
        (found,) = session.run(["embedding"], {"signal": batch})
        np.testing.assert_allclose(found, expected[: len(batch)], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "constant"), [("z-score", None), ("constant", 0.2), ("none", None)])
def test_every_normalisation_is_inside_the_file(tmp_path, catalogue, name, constant):
    """`export_onnx` compares onnxruntime with PyTorch."""
    onnxruntime = pytest.importorskip("onnxruntime")
    loaded = open_encoder(tmp_path, catalogue, ALL_AT_ONCE, normalise=name, constant=constant)
    window = choose_window(loaded.card)
    assert export_onnx(loaded, window, tmp_path / "e.onnx") <= 1e-5
    signal = np.random.default_rng(0).normal(3, 2, (2, 4, window.samples)).astype(np.float32)
    scaled = {"constant": signal / 0.2, "none": signal}.get(name)
    if scaled is None:
        centred = signal - signal.mean(axis=2, keepdims=True)
        scaled = centred / np.sqrt(np.square(centred).mean(axis=(1, 2), keepdims=True))
    with torch.no_grad():
        expected = loaded.encoder(torch.from_numpy(scaled)).numpy()
    session = onnxruntime.InferenceSession(tmp_path / "e.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"signal": signal})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "constant"), [("min-max", None), ("z-score", None), ("constant", 0.2)])
def test_flat_windows_are_those_of_pytorch_and_missing_samples_give_no_numbers(tmp_path, catalogue, name, constant):
    """An optimiser took the 1e-8 of the normalisation away: a detached lead became 1e37. Relu made numbers of NaN."""
    onnxruntime = pytest.importorskip("onnxruntime")
    loaded = open_encoder(tmp_path, catalogue, normalise=name, constant=constant)
    window = choose_window(loaded.card)
    export_onnx(loaded, window, tmp_path / "e.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "e.onnx", providers=["CPUExecutionProvider"])
    signal = np.random.default_rng(0).normal(size=(4, 1, window.samples)).astype(np.float32)
    signal[0], signal[1, 0, 7], signal[2, 0, 9] = 0.0, np.nan, -np.inf
    (found,) = session.run(None, {"signal": signal})
    with torch.no_grad():
        expected = as_module(loaded, window)(torch.from_numpy(signal)).numpy()
    assert np.isnan(expected).all(axis=1).tolist() == [False, True, True, False]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_file_that_makes_numbers_of_missing_samples_is_not_written(tmp_path, catalogue, monkeypatch):
    from types import ModuleType, SimpleNamespace

    def blind(_names, given):
        with torch.no_grad():
            return (module(torch.nan_to_num(torch.from_numpy(given["signal"]))).numpy(),)

    runtime = ModuleType("onnxruntime")
    runtime.SessionOptions = SimpleNamespace
    runtime.InferenceSession = lambda *_, **__: SimpleNamespace(run=blind)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    loaded = open_encoder(tmp_path, catalogue)
    module = as_module(loaded, choose_window(loaded.card))
    assert np.isnan(export._compare(loaded, choose_window(loaded.card), b"")[0])


# ------------------------------------------------------------------------------------------------------------- the file


@pytest.mark.slow
def test_the_file_says_what_it_reads_and_where_it_comes_from(tmp_path, catalogue):
    """A file that is passed on has to say it itself, and nothing of the folders of whoever made it."""
    onnx = pytest.importorskip("onnx")
    loaded = open_encoder(tmp_path, catalogue, ALL_AT_ONCE)
    export_onnx(loaded, choose_window(loaded.card, 400.0), tmp_path / "e.onnx")
    model = onnx.load(tmp_path / "e.onnx")
    (held,) = [json.loads(one.value) for one in model.metadata_props if one.key == "clocs"]
    assert held["input"] == {
        "samples": 2000,
        "sampling_rate": 400.0,
        "unit": "mV",
        "channels": ["II", "V2", "aVL", "aVR"],
    }
    assert (held["method"], held["dataset"], held["normalise"]) == ("cmsc", "demo", "min-max")
    assert (held["task"]["classes"], held["split_hash"]) == (list(loaded.card.task.classes), loaded.card.split_hash)
    assert held["licence"] == loaded.card.licence
    assert "settings" not in held
    sizes = [[side.dim_param or side.dim_value for side in one.type.tensor_type.shape.dim] for one in model.graph.input]
    assert sizes == [["n", 4, 2000]]


def test_a_file_that_disagrees_with_pytorch_is_not_written(tmp_path, catalogue, monkeypatch):
    pytest.importorskip("onnxruntime")
    loaded = open_encoder(tmp_path, catalogue)
    monkeypatch.setattr(export, "_refuse_without", lambda: None)
    monkeypatch.setattr(export, "_to_onnx", lambda loaded, window: b"")
    for difference, rounding, most in ((2e-5, 1e-7, "1e-05"), (float("nan"), 1.0, "16"), (5e-5, 2e-6, "3.2e-05")):
        monkeypatch.setattr(export, "_compare", lambda *_, found=(difference, rounding): found)
        with pytest.raises(SettingsError, match=rf"differs from PyTorch by .*, more than {most}, and was not written"):
            export_onnx(loaded, choose_window(loaded.card), tmp_path / "e.onnx")
    assert not (tmp_path / "e.onnx").exists()
    monkeypatch.setattr(export, "_compare", lambda *_: (2e-5, 6e-6))  # PyTorch itself is that far from float64
    assert export_onnx(loaded, choose_window(loaded.card), tmp_path / "e.onnx") == 2e-5


class Shrinking(torch.nn.Module):
    """Subtracts two large numbers, so that rounding shows; `only` is the type that it takes."""

    def __init__(self, only: torch.dtype | None = None):
        super().__init__()
        self.only = only

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        if self.only not in (None, signal.dtype):
            raise RuntimeError("expected scalar type Float but found Double")
        return (signal + 1000.0).mean(dim=2) - 1000.0


@pytest.mark.parametrize(("only", "low", "high"), [(None, 1e-6, 1e-3), (torch.float32, 0.0, 0.0)])
def test_rounding_is_how_far_pytorch_is_from_float64(tmp_path, catalogue, monkeypatch, only, low, high):
    from types import ModuleType, SimpleNamespace

    runtime = ModuleType("onnxruntime")
    runtime.SessionOptions = SimpleNamespace
    runtime.InferenceSession = lambda *_, **__: SimpleNamespace(
        run=lambda _, given: (np.where(np.isfinite(given["signal"]).all(axis=(1, 2)), 0.0, np.nan)[:, None],)
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    loaded = attrs.evolve(
        open_encoder(tmp_path, catalogue, normalise="none"), modules=torch.nn.ModuleList([Shrinking(only)])
    )
    difference, rounding = export._compare(loaded, choose_window(loaded.card), b"")
    assert low <= rounding <= high
    assert difference > 0.1


def test_a_file_that_takes_one_number_of_windows_only_is_not_written(tmp_path, catalogue, monkeypatch):
    """As where an encoder asks for the length of a batch: the export keeps that of the example."""
    from types import ModuleType, SimpleNamespace

    def refuse(_names, given):
        raise RuntimeError(f"Got: {len(given['signal'])} Expected: 2\nmore")

    runtime = ModuleType("onnxruntime")
    runtime.SessionOptions = SimpleNamespace
    runtime.InferenceSession = lambda *_, **__: SimpleNamespace(run=refuse)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setattr(export, "_refuse_without", lambda: None)
    monkeypatch.setattr(export, "_to_onnx", lambda loaded, window: b"")
    loaded = open_encoder(tmp_path, catalogue)
    with pytest.raises(SettingsError, match=r"cannot compute a batch of 1, and was not written.*Expected: 2\)\.$"):
        export_onnx(loaded, choose_window(loaded.card), tmp_path / "e.onnx")
    assert not (tmp_path / "e.onnx").exists()


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path, catalogue, monkeypatch):
    loaded = open_encoder(tmp_path, catalogue)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(Unavailable, match=r"^Exporting needs onnx: `pip install 'clocs\[onnx\]'`\.$"):
        export_onnx(loaded, choose_window(loaded.card), tmp_path / "e.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        ("s4d", {"layers": 1, "state": 4, "stride": 16}),
        ("vit1d", {"layers": 1, "heads": 2, "patch": 50}),
        ("xresnet1d", {"blocks": [1, 1, 1, 1]}),
    ],
)
def test_encoders_of_all_leads_are_the_same_as_onnx(tmp_path, catalogue, encoder, options):
    """Windows of other numbers than the example has, one among them."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    run = {"method": "supervised", "dataset": "demo", "encoder": encoder, "embedding_dim": 16}
    plan = resolve(
        catalogue, {"run": run, "encoder": options, "data": {"channels": ["I", "II"], "normalise": "min-max"}}
    )
    write_encoder(tmp_path, plan)
    loaded = load_encoder(tmp_path, catalogue, CPU)
    assert export_onnx(loaded, choose_window(loaded.card, 500.0), tmp_path / "encoder.onnx") <= export.TOLERANCE
