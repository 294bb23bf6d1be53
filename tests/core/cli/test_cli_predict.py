"""`clocs predict`: as a process once; what it takes, what it writes, and every mistake in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from fake_offers import TinyOptions, tiny_load
from fake_plugins import points
from fake_runs import TUNE, evaluate_run, make_run, rewritten

from clocs_core import Entry
from clocs_core.artifacts.classifier import choose_classifier
from clocs_core.cli import main
from clocs_core.cli.predict import predict_command

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CPU = ["--device", "cpu", "--workers", "1"]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("runs"))
    made = evaluate_run(run, *TUNE, "--label-fraction", "0.5,1")
    for file in (made / "classifiers").iterdir():
        rewritten(file, lambda _, about: about["signal"].update(frame_rate=100.0))
    return made


@pytest.fixture
def place(evaluation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(evaluation.parents[2] / "data"))
    return tmp_path


def predict(*arguments: object) -> int:
    return main(["predict", *map(str, arguments), *CPU], points())


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def write_recording(path: Path, **facts: object) -> Path:
    samples = tiny_load(Entry("r3-1", "p3", 1), TinyOptions()).samples
    np.savez(path, x=samples, channels=["left", "right"], **facts)
    return path


# ----------------------------------------------------------------------------------------------------------- a data set


def test_recordings_of_the_test_patients_are_predicted_by_default(
    evaluation: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it answers is on stdout, how it gets on is on stderr."""
    assert predict(evaluation, "--out", "p.csv") == 0
    out, err = capsys.readouterr()
    rows = table(place / "p.csv")
    assert list(rows[0]) == ["record", "patient", "even", "odd"]
    tested = json.loads((evaluation / "split.json").read_text())["patients"]["test"]
    assert {row["patient"] for row in rows} == set(tested)
    assert len(rows) == 3 * len(tested)
    for row in rows:
        assert float(row["even"]) + float(row["odd"]) == pytest.approx(1, abs=1e-6)
    lines = out.splitlines()
    assert lines[0].split() == ["record", "patient", "even", "odd"]
    first = rows[0]
    assert lines[1].split() == [
        first["record"],
        first["patient"],
        f"{float(first['even']):.3f}",
        f"{float(first['odd']):.3f}",
    ]
    assert lines[-1] == f"{len(rows)} recordings, of {8 * len(rows)} frames: p.csv"
    assert err.splitlines()[0] == (
        f"{evaluation}/classifiers/together-1.safetensors: together at F = 1, fine-tuned on many for 'parity'"
    )
    assert [path.name for path in place.iterdir()] == ["p.csv"]


def test_a_frame_has_a_row_of_its_own_where_it_is_asked_for(evaluation: Path, place: Path) -> None:
    """And a recording is the mean of its frames."""
    assert predict(evaluation, "--out", "r.json", "--part", "all") == 0
    assert predict(evaluation.parent.parent, "--out", "f.csv", "--part", "all", "--level", "frame") == 0
    frames = table(place / "f.csv")
    assert list(frames[0]) == ["record", "patient", "channel", "start", "even", "odd"]
    held = json.loads((place / "r.json").read_text())
    assert (held["init"], held["label_fraction"], held["trained_on"], held["dataset"]) == (
        "together",
        1.0,
        "many",
        "many",
    )
    assert len(held["rows"]) == 72
    for row in held["rows"]:
        mine = [float(frame["odd"]) for frame in frames if frame["record"] == row["record"]]
        assert len(mine) == 8
        assert row["probability"]["odd"] == pytest.approx(sum(mine) / 8, abs=1e-6)


def test_another_classifier_data_set_and_channel_can_be_asked_for(evaluation: Path, place: Path) -> None:
    words = ["--init", "random", "--label-fraction", "0.5", "--dataset", "tiny", "--leads", "right", "-o", "people=4"]
    assert predict(evaluation, *words, "--out", "p.npz") == 0
    with np.load(place / "p.npz", allow_pickle=False) as held:
        about = json.loads(str(held["about"]))
        assert (about["init"], about["label_fraction"], about["dataset"]) == ("random", 0.5, "tiny")
        assert about["channels"] == ["right"]
        assert sorted(set(held["patient"])) == ["p0", "p1", "p2", "p3"]  # all of them: it has seen none
        assert np.isfinite(held["probability"]).all()


def test_a_long_table_is_cut_and_says_so(evaluation: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert predict(evaluation, "--part", "all") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["… and 62 more; `--out FILE.csv` writes them all", "72 recordings, of 576 frames"]
    assert len(lines) == 13
    assert list(place.iterdir()) == []


# --------------------------------------------------------------------------------------------------------------- a file


def test_a_file_of_ones_own_is_predicted(evaluation: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_recording(place / "mine.npz", fs=100)
    assert predict(evaluation, "--input", "mine.npz", "--out", "p.csv") == 0
    assert predict(evaluation, "--part", "all", "--out", "all.csv") == 0
    (row,) = table(place / "p.csv")
    assert (row["record"], row["patient"]) == ("mine", "mine")
    (same,) = [one for one in table(place / "all.csv") if one["record"] == "r3-1"]
    assert float(row["odd"]) == pytest.approx(float(same["odd"]), rel=1e-5)


def test_a_channel_that_it_never_saw_is_predicted_only_where_it_is_meant(
    evaluation: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(place / "mine.npy", tiny_load(Entry("r3-1", "p3", 1), TinyOptions()).samples[0])
    words = [evaluation, "--input", "mine.npy", "--sampling-rate", 100, "--channels", "up"]
    assert predict(*words) == 2
    assert "Error: mine.npy: the classifier was trained on left, right, not on 'up'." in capsys.readouterr().err
    assert predict(*words, "--unseen-channels") == 0
    out, err = capsys.readouterr()
    assert "The classifier was trained on left, right; up is new to it." in err
    assert out.splitlines()[-1] == "1 recording, of 4 frames"


def test_a_file_is_predicted_by_a_classifier_of_the_demonstration(place: Path, type_command) -> None:
    """With the plugins that are installed, from a run to a probability; here of one lead of text."""
    tune = ["--random", "--encoder", "cnn", "--embedding-dim", "8", "--dataset", "demo", "-o", "patients=16"]
    how = ["--protocol", "finetune", "--epochs", "1", "-o", "resamples=2", "--leads", "II", "--device", "cpu"]
    assert main(["evaluate", *tune, *how, "--out", "e"]) == 0
    file = choose_classifier(place / "e")
    rewritten(file, lambda _, about: about["signal"].update(frame_rate=500.0))
    beat = np.sin(np.arange(3000) / 30)
    np.savetxt(place / "my_ecg.csv", beat)
    words = ["--input", "my_ecg.csv", "--sampling-rate", "250", "--channels", "II", "--out", "p.csv"]
    done = type_command("predict", "e", *words)
    assert done.returncode == 0, done.stderr
    (row,) = table(place / "p.csv")
    assert sum(float(value) for name, value in row.items() if name not in ("record", "patient")) == pytest.approx(
        1, abs=1e-5
    )
    assert done.stdout.splitlines()[-1] == "1 recording, of 2 frames: p.csv"
    assert done.stderr.splitlines()[-1] == "predicting my_ecg …"


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not there. Give a folder that `clocs evaluate` made"),
        (["."], ". is no run and no evaluation: `clocs evaluate RUN --protocol finetune` trains one"),
        (
            ["E", "--init", "other"],
            "E has no classifier with `--init other`. It has: `--init random` `--label-fraction 0.5`; ",
        ),
        (
            ["E", "--out", "p.xlsx"],
            "--out p.xlsx: expected a name that ends in .csv or .npz or .json.",
        ),
        (["E", "--out", "gone/p.csv"], "Cannot write gone/p.csv: "),
        (["E", "--dataset", "mnay"], "No dataset 'mnay'. Did you mean 'many'"),
        (["E", "--dataset", "strange"], "Data set 'strange' has no channel 'left'. There is: down, up."),
        (["E", "--unit", "mV"], "`-o dataset.unit=…`: 'dataset' has no option 'unit'."),
        (["E", "--channels", "left,left"], "A channel is named twice in left, left."),
        (["E", "-o", "normalise=none"], "The normalisation comes with the classifier: min-max."),
        (["E", "-o", "colour=red"], "`-o colour=…`: no part of this run has an option 'colour'."),
        (["E", "--input", "gone.csv", "--sampling-rate", "100"], "There is no file gone.csv."),
        (["E", "--input", "x.csv", "--dataset", "many"], "--input reads a file, and --dataset is about a data set;"),
        (["E", "--input", "x.csv", "-o", "a=b"], "--input reads a file, and -o is about a data set;"),
        (
            ["E", "--unseen-channels"],
            "--unseen-channels is about --input; for a data set, choose channels with --channels.",
        ),
        (
            ["E", "--input", "x.csv", "--sampling-rate", "-1"],
            "--sampling-rate must be a positive number of Hz, got -1.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    evaluation: Path, place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert predict(*(evaluation if one == "E" else one for one in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = [one for one in err.splitlines() if not one.endswith(" …") and "fine-tuned on" not in one]
    assert len(lines) == 1, err
    assert lines[0].removeprefix("Error: ").replace(str(evaluation), "E").startswith(message)
    assert list(place.iterdir()) == []


def test_every_flag_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A flag that is only named has to be guessed."""
    for parameter in predict_command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name
    assert main(["predict", "--help"], points()) == 0
    assert "CLASSIFIER" in capsys.readouterr().out
