"""End to end, by the command line: a run on each data set, and transfer of encoders between modalities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from typed import clocs

FEW = ("--data-root", "data", "-o", "resamples=10")


def run(place: Path, root: Path, method: str, dataset: str, *arguments: object) -> dict[str, Any]:
    """Return the report of a run of a few seconds, in the folder `run`."""
    tiny = ("--epochs", 1, "--batch-size", 8, "--embedding-dim", 8, "--workers", 1, "--device", "cpu", "--out", "run")
    clocs(place, "run", "--plugin", method, "--dataset", dataset, "--root", root, *tiny, *FEW, *arguments)
    found: dict[str, Any] = json.loads((place / "run" / "report.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def pulses(made_ppg_bp: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of CMSC on pulse waves."""
    place = tmp_path_factory.mktemp("pulses")
    run(place, made_ppg_bp, "cmsc", "ppg-bp")
    return place


@pytest.fixture(scope="module")
def modalities(made_bidmc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of ECG against PPG; the encoder of the PPG is evaluated."""
    place = tmp_path_factory.mktemp("modalities")
    run(place, made_bidmc, "cross-modal", "bidmc", "--task", "sex", "-o", "evaluated=second")
    return place


def inits(place: Path) -> set[str]:
    report = json.loads((place / "report.json").read_text(encoding="utf-8"))
    return {score["init"] for score in report["scores"]}


def test_a_run_on_pulse_waves_ends_with_scores_beside_an_untrained_encoder(pulses: Path):
    """CMSC needs two frames in each recording of 2.1 s."""
    assert inits(pulses / "run") >= {"cmsc", "random"}


@pytest.mark.parametrize(
    ("method", "options"),
    [("cpc", ("stride=16", "layers=1", "state=4", "ahead=2")), ("jepa", ("layers=1", "heads=2", "stretch=2"))],
)
def test_methods_that_predict_and_mask_run_on_pulse_waves(
    made_ppg_bp: Path, tmp_path: Path, method: str, options: tuple[str, ...]
):
    """They know nothing of leads or of ECGs."""
    run(tmp_path, made_ppg_bp, method, "ppg-bp", *(word for one in options for word in ("-o", one)))
    assert inits(tmp_path / "run") >= {method, "random"}


def test_a_run_of_ecg_against_ppg_keeps_an_encoder_of_each(modalities: Path):
    """The run's file holds both; the first one is evaluated."""
    from safetensors import safe_open

    assert inits(modalities / "run") >= {"cross-modal", "random"}
    with safe_open(modalities / "run" / "encoder.safetensors", "np") as file:
        assert {name.split(".")[0] for name in file.keys()} == {"0", "1"}  # noqa: SIM118  # it is no dictionary


def test_the_encoder_of_a_modality_is_scored_and_embeds_on_its_own_channels(modalities: Path):
    """The run chose II and PLETH, and evaluates the encoder of the second."""
    import numpy as np

    report = json.loads((modalities / "run" / "report.json").read_text(encoding="utf-8"))
    assert "Scores are of the first of 2 encoders, that of PLETH; II is not read." in report["notes"]
    clocs(modalities, "embed", "run", "--out", "rows.npz")
    assert set(np.load(modalities / "rows.npz")["channel"]) == {"PLETH"}


@pytest.mark.slow
def test_an_encoder_of_pulse_waves_is_fine_tuned_on_the_ecg(pulses: Path, made_bidmc: Path):
    """The ECG is cut into frames of the encoder's length without an option."""
    there = ("--dataset", "bidmc", "--task", "sex", "--channels", "II", "--root", made_bidmc, "--out", "there")
    clocs(pulses, "evaluate", "run", *there, *FEW, "--protocol", "finetune", "--epochs", 1)
    assert inits(pulses / "there") >= {"cmsc", "random"}


@pytest.mark.slow
def test_an_encoder_that_saw_the_ecg_too_is_fine_tuned_on_pulse_waves(modalities: Path, made_ppg_bp: Path):
    """The other way round, from a run with two encoders."""
    there = ("--dataset", "ppg-bp", "--root", made_ppg_bp, "--out", "there")
    clocs(modalities, "evaluate", "run", *there, *FEW, "--protocol", "finetune", "--epochs", 1)
    assert inits(modalities / "there") >= {"cross-modal", "random"}


@pytest.mark.slow
def test_vital_signs_are_views_of_one_patient(made_bidmc: Path, tmp_path: Path):
    """The example of intensive care in the paper: saturation and breathing as two views."""
    frames = ("-o", "sampling_rate=none", "-o", "source_samples=1500")  # 12 s
    options = (*frames, "-o", "keep_flat=true", "-o", "normalise=none")
    run(tmp_path, made_bidmc, "cmlc", "bidmc", "--task", "sex", "--channels", "numerics", *options)
    assert inits(tmp_path / "run") >= {"cmlc", "random"}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "perturbed"), [("simclr", True), ("byol", True), ("mt-ssl", False)])
def test_other_methods_run_on_pulse_waves_with_their_perturbations(
    made_ppg_bp: Path, tmp_path: Path, method: str, perturbed: bool
):
    """Methods of other plugins, by name, with perturbations of a pulse wave instead of an ECG."""
    options = ("-o", "perturbations=ppg-drift,ppg-modulation,ppg-motion") if perturbed else ()
    run(tmp_path, made_ppg_bp, method, "ppg-bp", *options)
    assert inits(tmp_path / "run") >= {method, "random"}
