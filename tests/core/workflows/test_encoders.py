"""A method whose encoders differ in architecture, channels and length: each is scored, saved and opened again."""

import json

import numpy as np
import pytest
from fake_offers import TinyOptions, flat, tiny, tiny_load, together
from fake_plugins import points
from fake_runs import RUN
from safetensors.torch import load_file
from torch import nn

from clocs_core import Encoder, Entry, Needs, NoOptions, Reader, ViewGenerator, Views, load_run
from clocs_core.artifacts.tensors import read_tensors
from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

GAIN = 0.1  # the wave below the noise, so that no score is perfect


def build_wide(_options, channels, samples, embedding_dim):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 6), nn.Tanh(), nn.Linear(6, embedding_dim))


def two_readers(_options: NoOptions) -> Needs:
    readers = (
        Reader(name="left", channels=(0, 1)),
        Reader(name="both", channels=(0, None), average=5, encoder="wide"),
    )
    return Needs(channels="all", encoder_channels="all", readers=readers)


def build_twice(_options: NoOptions):
    return twice


def twice(batch, _generator):
    """The same frame for both encoders, which take their own part of it."""
    frame = batch.signal[:, 0]  # (batch, channel, sample)
    return Views(signal=frame.expand(2, *frame.shape), batch=batch, encoder_of_view=(0, 1))


def hooks():
    views = ViewGenerator(name="twice", summary="s", needs=two_readers, build=build_twice)
    return {
        "clocs_datasets": lambda: [tiny()],
        "clocs_views": lambda: [views],
        "clocs_encoders": lambda: [flat(), Encoder(name="wide", summary="two layers", build=build_wide)],
        "clocs_methods": lambda: [together("modalities", views="twice")],
    }


def command(*words):
    return main([*map(str, words)], points(**hooks()))


def made(folder, *more):
    words = ["modalities" if word == "together" else word for word in RUN]
    given = ("-o", "people=14", "-o", f"gain={GAIN}", *more)
    assert command(*words, "--data-root", folder / "data", "--out", folder / "run", *given) == 0
    return folder / "run"


@pytest.fixture(scope="module", params=["min-max", "z-score"])
def run(tmp_path_factory, request):
    return made(tmp_path_factory.mktemp("readers"), "--normalise", request.param)


def report_of(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def values(scores):
    return {(one["protocol"], one["init"], one["metric"], one["level"]): one["value"] for one in scores}


def test_every_encoder_is_scored_beside_its_own_control(run):
    report = report_of(run)
    (other,) = report["other_encoders"]
    assert (other["name"], other["encoder"], other["channels"]) == ("both", "wide", ["left", "right"])
    assert {one["init"] for one in other["scores"]} >= {"modalities", "random"}
    assert values(other["scores"]) != values(report["scores"])
    assert other["comparisons"]
    assert "Scores are of encoder left (left); those of both (left, right) stand apart." in report["notes"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Encoder both: wide on left, right" in page


def test_an_evaluation_of_the_file_of_an_encoder_gives_its_scores(run):
    """By the path of every other encoder: what it reads, and how it is normalised, stands in its file."""
    report = report_of(run)
    for file, scores in (
        ("encoder.safetensors", report["scores"]),
        ("encoder-both.safetensors", report["other_encoders"][0]["scores"]),
    ):
        out = run / f"evaluated-{file}"
        assert command("evaluate", run / file, "-o", "resamples=20", "--device", "cpu", "--out", out) == 0
        assert values(report_of(out)["scores"]) == values(scores)


def test_embeddings_of_the_second_encoder_are_those_of_loops_over_its_weights(run):
    assert command("embed", run / "encoder-both.safetensors", "--out", run / "rows.npz") == 0
    rows = np.load(run / "rows.npz")
    weights = {name: one.double().numpy() for name, one in load_file(run / "encoder-both.safetensors").items()}
    scale = report_of(run)["settings"]["data"]["normalise"]
    for row in range(0, len(rows["record"]), 11):
        record, start = str(rows["record"][row]), int(rows["start"][row])
        wave = tiny_load(Entry(record, record.split("-")[0], 0), TinyOptions(gain=GAIN)).samples[:, start : start + 50]
        inputs = []
        for channel in wave:
            low, high = channel.min(), channel.max()
            if scale == "min-max":
                channel = (channel - low) / (high - low)
            else:
                centred = wave - wave.mean(axis=1, keepdims=True)
                channel = (channel - channel.mean()) / np.sqrt((centred**2).mean())
            inputs += [channel[first : first + 5].mean() for first in range(0, 50, 5)]
        hidden = np.tanh(weights["encoder.1.weight"] @ np.array(inputs) + weights["encoder.1.bias"])
        expected = weights["encoder.3.weight"] @ hidden + weights["encoder.3.bias"]
        np.testing.assert_allclose(rows["embedding"][row], expected, atol=2e-3)  # frames are int16 on disk


def test_in_python_every_encoder_has_its_scores_and_its_name(run):
    found = load_run(run)
    assert list(found.report.other_encoders) == list(found.other_encoders) == ["both"]
    assert "Encoder both:" in repr(found.report)
    assert "<p>Encoder both:</p><" in found.report._repr_html_()
    assert repr(found.other_encoders["both"]) == f"Embedder({str(run / 'encoder-both.safetensors')!r}, device='cpu')"
    in_memory = type(found.encoder)((run / "encoder.safetensors").read_bytes())
    assert repr(in_memory) == "Embedder(in memory, device='cpu')"


def test_the_scores_stand_in_the_file_of_each_encoder(run):
    report = report_of(run)
    for file, scores in (("encoder", report["scores"]), ("encoder-both", report["other_encoders"][0]["scores"])):
        assert values(read_tensors(run / f"{file}.safetensors")[1]["scores"]) == values(scores)


def test_an_encoder_that_is_not_installed_is_named_with_its_reader(tmp_path, capsys):
    offered = hooks() | {"clocs_encoders": lambda: [flat()]}
    words = ["modalities" if word == "together" else word for word in RUN]
    assert main([*words, "--data-root", str(tmp_path), "--out", str(tmp_path / "run")], points(**offered)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Method 'modalities' reads 'both' with an encoder that is not there." in said
    assert not (tmp_path / "run").exists()
