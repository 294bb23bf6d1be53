"""Filters and a constant of the data set go with an encoder: from its run to every use of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import torch
from fake_offers import TinyOptions, tiny_load, tiny_scan
from fake_plugins import points
from fake_runs import make_run

from clocs_core.artifacts.encoder import load_encoder
from clocs_core.artifacts.split import from_json
from clocs_core.data.filters import filter_signal
from clocs_core.data.framing import cut_frames
from clocs_core.errors import SettingsError
from clocs_core.inference.embed import choose_recordings
from clocs_core.inference.network import outputs_of
from clocs_core.inference.onnx_file import as_module, choose_window, describe
from clocs_core.inference.rows import as_trained
from clocs_core.inference.signals import Unsaid, read_own_frames
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.plugins.session import open_session
from clocs_core.settings.toml_file import read_tables

CPU = torch.device("cpu")
FILTERS: dict[str, Any] = {"band_pass": (1.0, 30.0), "notch": 40.0}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return open_session(points(), (), False).catalogue


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ("-o", "normalise=constant", "--band-pass", "1,30", "-o", "notch=40", "--epochs", "1")
    return make_run(tmp_path_factory.mktemp("constant"), *words)


def deviations_of(patients: set[str], catalogue: Catalogue) -> list[float]:
    """The deviation of every sample of the patients' frames, filtered, from the mean of its lead-frame."""
    offer = catalogue.datasets.get("tiny").offer
    framing = attrs.evolve(offer.framing(2), **FILTERS)
    found: list[float] = []
    for entry in tiny_scan(Path(), offer.tasks[0], TinyOptions()).entries:
        if entry.patient in patients:
            for frame in cut_frames(tiny_load(entry, TinyOptions()), framing).samples.tolist():
                for lead in frame:
                    mean = sum(lead) / len(lead)
                    found += [value - mean for value in lead]
    return found


def test_the_constant_is_measured_on_training_patients_and_kept(run: Path, catalogue: Catalogue) -> None:
    """In the settings, the report and the encoder's file: each alone says by what the signals were divided."""
    split = from_json((run / "split.json").read_text(encoding="utf-8"))
    deviations = deviations_of(set(split.patients("train")), catalogue)
    expected = (sum(one**2 for one in deviations) / len(deviations)) ** 0.5
    tables, card = read_tables(run / "settings.toml"), load_encoder(run, catalogue, CPU).card
    assert tables["data"]["constant"] == card.constant == pytest.approx(expected, rel=1e-5)
    assert card.settings["data"]["constant"] == card.constant
    assert card.framing.filters == card.pretrain_framing.filters == FILTERS
    assert f'"constant": {card.constant}' in (run / "report.json").read_text(encoding="utf-8")


def test_an_evaluation_filters_and_divides_as_the_run_did(run: Path, catalogue: Catalogue) -> None:
    """On other recordings too: weights for millivolts over a constant read nothing else."""
    opened = open_encoder(run, catalogue)
    for name in ("tiny", "many"):
        plan = resolve_evaluation(catalogue, opened, {"evaluation": {"dataset": name}})
        assert (plan.data.normalise, plan.data.constant) == ("constant", opened.constant)
        assert plan.framing.filters == FILTERS
    other = resolve_evaluation(catalogue, opened, {"evaluation": {"dataset": "many"}}, ["normalise=none", "notch=none"])
    assert (other.data.normalise, other.data.constant, other.framing.notch) == ("none", None, None)


def test_recordings_of_a_data_set_are_embedded_as_the_run_read_them(run: Path, catalogue: Catalogue) -> None:
    card = load_encoder(run, catalogue, CPU).card
    for name in ("tiny", "many"):
        target = choose_recordings(card, catalogue, name, {})
        assert (target.recordings.data.normalise, target.recordings.data.constant) == ("constant", card.constant)
        assert target.framing.filters == FILTERS
    plain = attrs.evolve(card, normalise="min-max", constant=None)
    with pytest.raises(SettingsError, match=r"trained with normalise=min-max and has no constant .*`constant=X`"):
        choose_recordings(plain, catalogue, "many", {}, ["normalise=constant"])
    assert choose_recordings(
        plain, catalogue, "many", {}, ["normalise=constant", "constant=2"]
    ).recordings.data.constant


def test_a_file_is_filtered_whole_then_cut_and_divided(run: Path, catalogue: Catalogue, tmp_path: Path) -> None:
    loaded = load_encoder(run, catalogue, CPU)
    card, size = loaded.card, loaded.card.frame_samples
    signal = np.random.default_rng(0).normal(size=(1, 5 * size + 3)).cumsum(axis=1)
    np.save(tmp_path / "own.npy", signal)
    unsaid = Unsaid(sampling_rate=card.frame_rate, channels=("left",), unit=card.unit)
    (rows,) = read_own_frames(card, tmp_path / "own.npy", unsaid, lambda note: None)
    found = outputs_of(as_trained(loaded.encoder, card, rows.factor), rows.signal, CPU)
    assert card.frame_rate is not None
    whole = filter_signal(signal, card.frame_rate, card.framing)[:, : 5 * size] / card.constant
    with torch.no_grad():
        expected = loaded.encoder(torch.from_numpy(whole.reshape(5, 1, size).astype(np.float32)))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_exported_divides_inside_and_says_what_to_filter_before(run: Path, catalogue: Catalogue) -> None:
    """A window has no past, so a filter of the whole recording cannot be inside."""
    loaded = load_encoder(run, catalogue, CPU)
    window = choose_window(loaded.card)
    assert not window.framing.filters
    signal = torch.randn(3, 1, window.samples)
    with torch.no_grad():
        found = as_module(loaded, window)(signal)
        expected = loaded.encoder(signal / loaded.card.constant)
    torch.testing.assert_close(found, expected)
    told = describe(loaded.card, window)
    assert (told["input"]["filtered"], told["constant"]) == (FILTERS, loaded.card.constant)


@pytest.mark.parametrize("given", ["constant=2", "data.constant=2"])
def test_a_constant_that_nothing_is_divided_by_is_refused(run: Path, catalogue: Catalogue, given: str) -> None:
    opened = attrs.evolve(open_encoder(run, catalogue), normalise="min-max", constant=None, tables={})
    with pytest.raises(
        SettingsError, match=r"`constant=\.\.\.` is the divisor of `normalise='constant'`, and this is "
    ):
        resolve_evaluation(catalogue, opened, {"evaluation": {"dataset": "many"}}, [given])
