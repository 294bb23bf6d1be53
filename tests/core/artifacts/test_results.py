"""A finished run or evaluation is compared in the same way from memory and from its folder."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import attrs
import numpy as np
import pytest
from begun_folders import begin_folder

from clocs_core.artifacts.documents import dump_record
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import Predictions, predicted_rows, save_predictions
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.reports import EncoderSummary, EvaluationReport, Report, SplitSummary
from clocs_core.artifacts.results import candidate_of_evaluation, candidate_of_run, group_by_seed, open_candidate
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError

SPLIT = SplitSummary("abc", "60/20/20", 0, {"test": 2}, {"test": 3}, {"test": 2}, 0, 0)
PATIENTS, RECORDS = ("p2", "p1"), ("r9", "r1", "r5")
PREDICTED = {
    ("linear", "m", 0.1): Predictions(
        np.array([[0.1, 0.9], [1 / 3, 2 / 3], [1.0, 0.0]]),
        np.array([1, 0, 0]),
        np.array([0, 1, 1]),
        np.array([0, 1, 2]),
    )
}
COMMON = {
    "dataset": "tiny", "task": "t", "split": SPLIT, "environment": {}, "notes": ("few patients",),
    "scores": (Score("linear", "m", "tiny", 0.1, "hits", "frame", 1 / 3, 0.0, 1.0),),
}  # fmt: skip


def run_report(seed=0, **data):
    settings = {"run": {"method": "m", "seed": seed}, "evaluate": {"part": "test", "label_fraction": (0.1,)}}
    return Report(
        method="m", seed=seed, settings=settings | {"data": data}, epochs_run=1, best_epoch=1, stopped="all epochs",
        **COMMON,
    )  # fmt: skip


def evaluation_report(encoder=b""):
    digest = sha256(encoder).hexdigest() if encoder else ""
    return EvaluationReport(
        protocol="linear",
        how="",
        init="m",
        encoder=EncoderSummary(name="e", dataset="d", inputs=1, frame_samples=50, embedding_dim=8, sha256=digest),
        part="validation",
        seed=0,
        settings={
            "evaluation": {"seed": 0, "encoder_sha256": digest},
            "framing": {"frame_samples": 50},
            "data": {"root": "/here"},
        },
        **COMMON,
    )


def write(path, report):
    begin_folder(path, report.settings)
    save_predictions(PREDICTED, PATIENTS, RECORDS, RunFolder(path).predictions)
    RunFolder(path).report.write_text(dump_record(report), encoding="utf-8")
    return path


def same(one, other):
    """Whether two candidates hold the same, predictions to the last bit."""
    for field in attrs.fields(type(one)):
        if field.name != "rows":
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert one.rows.predicted.keys() == other.rows.predicted.keys()
    for name in ("patient", "record", "label"):
        np.testing.assert_array_equal(getattr(one.rows, name), getattr(other.rows, name))
    for key, rows in one.rows.predicted.items():
        for name in ("probability", "label", "patient", "record"):
            np.testing.assert_array_equal(getattr(rows, name), getattr(other.rows.predicted[key], name))


def rows():
    return predicted_rows(PREDICTED, PATIENTS, RECORDS)


def test_a_run_from_memory_is_the_run_from_its_folder(tmp_path):
    path = write(tmp_path / "run", run_report(root="/a"))
    same(candidate_of_run(path, run_report(root="/a"), rows()), open_candidate(path))


def test_an_evaluation_from_memory_is_the_evaluation_from_its_folder(tmp_path):
    path = write(tmp_path / "evaluation", evaluation_report(b"of a run that is not here"))
    same(candidate_of_evaluation(path, evaluation_report(b"of a run that is not here"), rows()), open_candidate(path))


def test_the_framing_of_an_evaluation_has_the_name_that_a_run_gives_it(tmp_path):
    settings = open_candidate(write(tmp_path / "evaluation", evaluation_report())).settings
    assert settings["evaluate_framing.frame_samples"] == 50
    assert not [name for name in settings if name.startswith("framing")]


def inside_a_run(tmp_path, held):
    begin_folder(tmp_path / "run", {"loss": {"temperature": 0.5}, "data": {"root": "/there"}, "evaluate": {"a": 1}})
    RunFolder(tmp_path / "run").encoder.write_bytes(held)
    return write(tmp_path / "run" / "evaluations" / "one", evaluation_report(b"weights"))


def test_an_evaluation_inside_its_run_has_settings_of_the_run_and_no_hash(tmp_path):
    """The hash says that two encoders differ; the settings say in what."""
    settings = open_candidate(inside_a_run(tmp_path, b"weights")).settings
    assert settings["loss.temperature"] == 0.5
    assert settings["pre-training data.root"] == "/there"
    assert settings["data.root"] == "/here"
    assert "evaluation.encoder_sha256" not in settings
    assert "evaluate.a" not in settings


def test_an_evaluation_of_another_encoder_than_the_run_around_it_keeps_its_hash(tmp_path):
    settings = open_candidate(inside_a_run(tmp_path, b"trained again")).settings
    assert settings["evaluation.encoder_sha256"] == sha256(b"weights").hexdigest()
    assert "loss.temperature" not in settings


def test_a_run_without_labels_has_no_rows(tmp_path):
    path = write(tmp_path / "run", attrs.evolve(run_report(), task=None))
    RunFolder(path).predictions.unlink()
    found = open_candidate(path)
    assert found.rows is None
    assert found.task == "no labels"


def test_what_cannot_be_compared_says_why(tmp_path):
    begin_folder(tmp_path / "unfinished", {"run": {}})
    for path, why in (
        (tmp_path / "gone", "is not there"),
        (tmp_path / "unfinished", "it is not finished"),
        (tmp_path, "is no run and no evaluation"),
    ):
        with pytest.raises(RunFolderError, match=why):
            open_candidate(path)


def test_only_scores_of_its_own_weights_are_its_own():
    found = candidate_of_run(Path("run"), run_report(), None)
    (score,) = found.scores
    assert found.is_own(score)
    assert not found.is_own(attrs.evolve(score, init="random"))
    assert not found.is_own(attrs.evolve(score, protocol="prior"))


def test_runs_that_differ_by_seed_or_machine_belong_together_in_the_order_given():
    a, b, c, d = (
        candidate_of_run(Path(name), report, None)
        for name, report in (
            ("a", run_report(0, root="/x")),
            ("b", run_report(0, root="/x", channels=["II"])),
            ("c", run_report(1, root="/y")),
            ("d", attrs.evolve(run_report(2), split=attrs.evolve(SPLIT, hash="other"))),
        )
    )
    assert group_by_seed([a, b, c, d]) == ((a, c), (b,), (d,))


def keep_recordings(path, signals):
    """Keep the recordings of a folder, whose frames are named by a word."""
    used = UsedRecordings(
        recordings=3, patients=2, split="hash", labels="labels", files=("",), frames=f"frames {signals}"
    )
    RunFolder(path).recordings.write_text(dump_record(used), encoding="utf-8")


def run_in(path, seed, root, recordings=None):
    """Write a run of a seed on the recordings of a folder, whose signals `recordings` stands for."""
    write(path, run_report(seed, root=root))
    if recordings:
        keep_recordings(path, recordings)
    return open_candidate(path)


def test_runs_on_other_signals_under_the_same_names_are_no_seeds_of_each_other(tmp_path):
    """Raw and filtered recordings, in two folders: their mean would be that of neither."""
    raw, again = (run_in(tmp_path / f"raw{seed}", seed, "/raw", "raw") for seed in (0, 1))
    filtered = run_in(tmp_path / "filtered", 0, "/filtered", "filtered")
    copied = run_in(tmp_path / "copied", 2, "/copy of raw", "raw")
    assert group_by_seed([raw, filtered, again, copied]) == ((raw, again, copied), (filtered,))


def test_runs_that_do_not_know_their_signals_belong_together_wherever_they_read_them(tmp_path):
    old, new = run_in(tmp_path / "old", 0, "/a"), run_in(tmp_path / "new", 1, "/b", "raw")
    assert group_by_seed([old, new]) == ((old, new),)


def test_an_evaluation_knows_the_signals_of_its_encoder_too(tmp_path):
    """Encoders of raw and of filtered recordings, evaluated on the same third ones, are no seeds of each other."""
    found = []
    for name in ("raw", "filtered"):
        path = inside_a_run(tmp_path / name, b"weights")
        for folder, frames in ((RunFolder(path), "third"), (RunFolder(path.parents[1]), name)):
            keep_recordings(folder.path, frames)
        found.append(open_candidate(path))
    first, second = found
    assert [one.split(" labels")[0] for one in second.recordings] == ["frames third", "frames filtered"]
    elsewhere = attrs.evolve(second, settings=second.settings | {"pre-training data.root": "/filtered"})
    assert group_by_seed([first, elsewhere]) == ((first,), (elsewhere,))


def test_a_run_of_an_earlier_version_belongs_to_one_that_says_the_defaults_of_later_settings():
    """Else no seed of today could join those of before, and a comparison would list every new setting."""
    old, new, other = (
        candidate_of_run(Path(str(number)), run_report(number, **data), None)
        for number, data in enumerate(({}, {"normalise": "min-max", "constant": "none"}, {"normalise": "z-score"}))
    )
    assert group_by_seed([old, new, other]) == ((old, new), (other,))


def test_folders_of_an_evaluation_and_of_a_run_agree_on_their_names(tmp_path):
    """`open_candidate` reads both by the paths of a run."""
    run, evaluation = RunFolder(tmp_path), EvaluationFolder(tmp_path)
    for name in ("settings", "split", "predictions", "report"):
        assert getattr(run, name) == getattr(evaluation, name)
