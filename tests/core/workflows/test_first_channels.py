"""A method with an encoder for each side: what is scored, embedded and found again is of the first one's channels."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
import torch
from fake_offers import TinyOptions, tiny, tiny_load, tiny_scan, together
from fake_plugins import points
from fake_runs import RUN
from safetensors.torch import load_file

from clocs_core import Entry, Needs, NoOptions, ViewGenerator, Views
from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

GAIN = 0.1  # the wave below the noise, so that no score is perfect


def sides_needs(_options: NoOptions) -> Needs:
    return Needs(channels="all", least_channels=2, encoders=2, first_channels=(1, None))


def build_sides(_options: NoOptions):
    return side_by_side


def side_by_side(batch, _generator):
    """The left channel is read by the second encoder, the right one by the first."""
    return Views(signal=batch.signal.permute(2, 0, 1, 3), batch=batch, encoder_of_view=(1, 0))


def numbered_scan(root, task, options):
    return attrs.evolve(tiny_scan(root, task, options), channels=("left", "right"), numbered=True)


def command(*words):
    sides = ViewGenerator(name="sides", summary="s", needs=sides_needs, build=build_sides)
    more = {
        "clocs_datasets": lambda: [tiny(), tiny("numbered", channels=(), presets={}, scan=numbered_scan)],
        "clocs_views": lambda: [sides],
        "clocs_methods": lambda: [together("sides", views="sides")],
    }
    return main([*map(str, words)], points(**more))


def made(folder, dataset, *more):
    words = [{"together": "sides", "tiny": dataset}.get(word, word) for word in RUN]
    assert command(*words, "--data-root", folder / "data", "--out", folder / "run", *more) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("sides"), "tiny", "-o", "people=14", "-o", f"gain={GAIN}")


def report_of(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def evaluated(run, out, *words):
    assert command("evaluate", run, "-o", "resamples=20", "--device", "cpu", "--out", run / out, *words) == 0
    return report_of(run / out)


def points_of(report):
    return {(one["protocol"], one["init"], one["metric"], one["level"]): one["value"] for one in report["scores"]}


def test_a_run_scores_its_first_encoder_on_that_encoders_channels(run):
    """The first encoder never saw the left side; its answers there are noise in the scores."""
    report = report_of(run)
    patients = report["split"]["patients"]  # each has two recordings, of four frames of a side
    assert report["split"]["frames"] == {part: count * 2 * 4 for part, count in patients.items()}
    assert "Scores are of the first of 2 encoders, that of right; left is not read." in report["notes"]
    right, both = evaluated(run, "right", "--channels", "right"), evaluated(run, "both", "--channels", "left,right")
    assert points_of(right) == points_of(report)
    assert points_of(both) != points_of(report)
    assert both["split"]["frames"]["test"] == 2 * report["split"]["frames"]["test"]  # who asks for both gets both


def test_an_evaluation_without_named_channels_is_of_the_same(run):
    found = evaluated(run, "own")
    assert found["settings"]["data"]["channels"] == ["right"]
    assert points_of(found) == points_of(report_of(run))


def test_embeddings_are_the_first_encoders_answers_to_its_channels(run):
    """By loops from the weights in the file: a flat encoder is one matrix."""
    assert command("embed", run, "--out", run / "rows.npz") == 0
    rows = np.load(run / "rows.npz")
    assert set(rows["channel"]) == {"right"}
    weights = load_file(run / "encoder.safetensors")
    matrix, bias = weights["0.1.weight"], weights["0.1.bias"]
    for row in range(0, len(rows["record"]), 17):
        record, start = str(rows["record"][row]), int(rows["start"][row])
        wave = tiny_load(Entry(record, record.split("-")[0], 0), TinyOptions(gain=GAIN)).samples[1, start : start + 50]
        frame = torch.from_numpy((wave - wave.min()) / (wave.max() - wave.min())).float()
        np.testing.assert_allclose(rows["embedding"][row], matrix @ frame + bias, atol=1e-3)  # frames are int16 on disk


def test_neighbours_and_predictions_are_of_the_first_encoders_channels(run, capsys):
    """`similar` and `predict` without named channels: the second by a classifier that an evaluation has trained."""
    assert command("similar", run, "--record", "r1-0", "--level", "frame") == 0
    told = capsys.readouterr().out
    assert "right" in told
    assert "left" not in told
    assert predicted_channels(run) == {"right"}


def predicted_channels(run):
    """Those of the rows that a classifier predicts when no channel is named."""
    evaluated(run, "tuned", "--protocol", "finetune", "--epochs", 1)
    assert command("predict", run / "tuned", "--out", run / "predicted.csv", "--level", "frame") == 0
    lines = (run / "predicted.csv").read_text(encoding="utf-8").splitlines()
    channel = lines[0].split(",").index("channel")
    return {line.split(",")[channel] for line in lines[1:]}


def test_channels_that_the_user_named_because_files_only_number_them_are_found_again(tmp_path):
    """The files cannot say which of them was called PPG; the run can."""
    run = made(tmp_path, "numbered", "--channels", "ECG,PPG")
    assert evaluated(run, "own")["settings"]["data"]["channels"] == ["PPG"]
    assert command("embed", run, "--out", run / "rows.npz") == 0
    assert set(np.load(run / "rows.npz")["channel"]) == {"PPG"}
    assert predicted_channels(run) == {"PPG"}


def test_of_a_file_that_names_no_channels_those_of_the_first_encoder_are_read(run, tmp_path):
    """The user has to name all of them; that is no wish to have them all read."""
    np.save(tmp_path / "one.npy", np.random.default_rng(0).normal(size=(2, 200)))
    words = ("--input", tmp_path / "one.npy", "--sampling-rate", 100, "--unit", "mV", "--out", tmp_path / "rows.npz")
    for names, read in (("Left,Right", {"right"}), ("left,up --unseen-channels", {"left", "up"})):
        assert command("embed", run, *words, "--channels", *names.split()) == 0
        assert set(np.load(tmp_path / "rows.npz")["channel"]) == read
