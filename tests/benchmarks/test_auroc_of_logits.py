"""The AUROC of logits beside that of probabilities."""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import auroc_of_logits
import numpy as np
import pytest
from grid_folders import write_evaluation
from torch import Tensor

from clocs_core.artifacts.predictions import Predictions, read_predictions, save_predictions
from clocs_core.cli import main
from clocs_core.contracts.records import Task
from clocs_core.errors import RunFolderError
from clocs_core.evaluation import finetune
from clocs_core.grids.cells import GridCell, Pretraining


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def area(score: np.ndarray, is_class: np.ndarray) -> float:
    """The share of pairs in the right order."""
    pairs = [(up > down) + 0.5 * (up == down) for up in score[is_class] for down in score[~is_class]]
    return float(np.mean(pairs))


def test_both_are_printed_and_are_not_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against pairs counted one by one, from logits that sum to 0 as those of a penalised linear model do."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 3
    logits = 2 * rng.normal(size=(60, 3)) + np.eye(3)[label]
    logits -= logits.mean(axis=1, keepdims=True)
    number = np.arange(60)
    rows = Predictions(softmax(logits), label, number, number)
    names = [f"{one:02d}" for one in number]
    save_predictions({("linear", "cmsc", 0.5): rows}, names, names, tmp_path / "predictions.npz")
    assert auroc_of_logits.main([str(tmp_path)]) == 0
    of_probabilities, of_logits = (
        np.mean([area(one[:, k], label == k) for k in range(3)]) for one in (softmax(logits), logits)
    )
    assert f"| linear | cmsc | 0.5 | {of_probabilities:.3f} | {of_logits:.3f} |" in capsys.readouterr().out
    assert abs(of_probabilities - of_logits) > 0.002
    assert auroc_of_logits.main([str(tmp_path), "--csv", str(tmp_path / "both.csv")]) == 0
    assert f"linear,cmsc,0.5,{of_probabilities:.6f},{of_logits:.6f}" in (tmp_path / "both.csv").read_text()


def test_logits_come_back_from_their_probabilities(tmp_path: Path) -> None:
    """Those of a linear model by their mean of 0; those of a network by the sum that was kept, through a file too."""
    logits = np.array([[1.0, -2.0, 1.0], [0.5, 0.25, -0.75]])
    number = np.arange(2)
    linear = Predictions(softmax(logits + 7), number, number, number)
    assert auroc_of_logits.logits_of(linear, "linear") == pytest.approx(logits)
    moved = logits + np.array([[7.0], [-3.0]])
    tuned = attrs.evolve(linear, probability=softmax(moved), log_sum=np.log(np.exp(moved).sum(axis=1)))
    save_predictions({("finetune", "cmsc", 0.5): tuned}, ["a", "b"], ["a", "b"], tmp_path / "predictions.npz")
    read = read_predictions(tmp_path / "predictions.npz")["finetune", "cmsc", 0.5]
    assert auroc_of_logits.logits_of(read, "finetune") == pytest.approx(moved)
    with pytest.raises(RunFolderError, match="the logits of 'finetune' were not kept"):
        auroc_of_logits.logits_of(linear, "finetune")


@pytest.mark.usefixtures("no_pictures")
def test_an_evaluation_keeps_the_logits_of_its_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained and untrained, and where the untrained one was taken from the shared controls."""
    seen: list[np.ndarray] = []
    real = finetune.probability_of

    def spy(logits: Tensor, task: Task) -> np.ndarray:
        seen.append(logits.numpy())
        return real(logits, task)

    monkeypatch.setattr(finetune, "probability_of", spy)
    data = ("--dataset", "demo", "-o", "patients=20", "-o", "resamples=10", "--data-root", str(tmp_path / "data"))
    run = ("run", "--plugin", "cmsc", "--epochs", "1", *data, "--embedding-dim", "8", "--out", str(tmp_path / "run"))
    assert main(run) == 0
    for name in ("first", "second"):
        where = ("--controls", str(tmp_path / "controls"), "--out", str(tmp_path / name))
        tuned = ("--protocol", "finetune", "-o", "epochs=1", "--label-fraction", "1")
        assert main(("evaluate", str(tmp_path / "run"), *tuned, *data, *where)) == 0
        kept = read_predictions(tmp_path / name / "predictions.npz")
        for init in ("cmsc", "random"):
            found = auroc_of_logits.logits_of(kept["finetune", init, 1.0], "finetune")
            assert any(one.shape == found.shape and np.allclose(one, found, atol=1e-5) for one in seen)


def test_an_export_gets_the_logits_of_its_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the names that its scores have, so that pages find them."""
    rng, number, label = np.random.default_rng(0), np.arange(60), np.arange(60) % 3
    names = [f"{one:02d}" for one in number]
    for seed in (0, 1):
        run = Pretraining(method="cmsc", dataset="ptbxl", seed=seed)
        cell = GridCell(pretraining=run, downstream="cardiology", protocol="finetune", label_fraction=0.5)
        folder = write_evaluation(tmp_path / "grid", [cell], ())
        logits = rng.normal(size=(60, 3)) + np.eye(3)[label]
        rows = Predictions(softmax(logits), label, number, number, log_sum=np.log(np.exp(logits).sum(axis=1)))
        predicted = {("finetune", "cmsc", 0.5): rows, ("finetune", "random", 0.5): rows}
        save_predictions(predicted, names, names, folder / "predictions.npz")
    (tmp_path / "files").mkdir()
    assert auroc_of_logits.main(["--grid", str(tmp_path / "grid"), "--export", str(tmp_path / "files")]) == 0
    assert "4 scores" in capsys.readouterr().out
    with (tmp_path / "files" / "beside.csv").open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [(row["method"], row["pretraining"], row["seed"]) for row in found] == [
        *(("cmsc", "ptbxl", seed) for seed in "01"),
        *(("random", "", seed) for seed in "01"),
    ]
    assert {(row["metric"], row["level"], row["label_fraction"]) for row in found} == {
        ("auroc of logits", "frame", "0.5")
    }
    expected = np.mean([area(logits[:, k], label == k) for k in range(3)])
    assert float(found[1]["score"]) == pytest.approx(expected, abs=1e-6)
    assert auroc_of_logits.main(["--grid", str(tmp_path / "grid")]) == 2
    assert "give --grid and --export" in capsys.readouterr().err


def test_a_folder_without_predictions_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert auroc_of_logits.main([str(tmp_path)]) == 2
    assert "predictions.npz" in capsys.readouterr().err
