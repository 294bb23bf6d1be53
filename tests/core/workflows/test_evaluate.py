"""The story of an evaluation: the run's own scores come back, controls stand beside them, a kill costs nothing."""

from __future__ import annotations

import itertools
import json
import warnings

import attrs
import numpy as np
import pytest
from edited_files import edit_json
from fake_offers import flat
from fake_plugins import points
from fake_runs import make_run
from safetensors import safe_open

from clocs_core import Encoder
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.reports import read_report
from clocs_core.cli import main
from clocs_core.errors import ClocsWarning, DataError, RunFolderError, SettingsError
from clocs_core.evaluation import classifiers
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.session import open_session
from clocs_core.workflows.evaluate import evaluate_encoder
from clocs_core.workflows.surroundings import Surroundings

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


class Screen:
    """Remembers what was shown; raises KeyboardInterrupt at a stage, or after so many epochs, if it is told to."""

    def __init__(self, stop_at=None, epochs=None):
        self.stages, self.lines, self.stop_at, self.epochs = [], [], stop_at, epochs

    def say(self, text):
        self.lines.append(text)

    warn = say

    def stage(self, text):
        if self.stop_at is not None and len(self.stages) == self.stop_at:
            raise KeyboardInterrupt
        self.stages.append(text)

    def tick(self, done, total): ...

    def epoch(self, done, epochs):
        self.epochs = None if self.epochs is None else self.epochs - 1
        if self.epochs == 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def session():
    return open_session(points(), (), False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), "-o", "people=14", "--label-fraction", "0.5,1", "--seed", "2")


@pytest.fixture(scope="module")
def data(run):
    return str(run.parent / "data")


@pytest.fixture(scope="module")
def evaluate(session, run, data):
    def call(path, *assignments, screen=None, opened=run, clock=None, **evaluation):
        encoder = None if opened is None else open_encoder(opened, session.catalogue)
        tables = {"evaluation": {"device": "cpu", **evaluation}, "data": {"data_root": data}}
        quick = ["batch_size=64", "epochs=2"] if evaluation.get("protocol") == "finetune" else []
        few = ["resamples=20", "permutations=20"]
        asked = resolve_evaluation(session.catalogue, encoder, tables, [*few, *quick, *assignments])
        ticking = clock or itertools.count().__next__
        return evaluate_encoder(asked, path, Surroundings(session.host, screen or Screen(), 1, ticking)).report

    return call


def lasting(report):
    """A report without what a clock said."""
    cells = tuple(attrs.evolve(cell, seconds=0.0) for cell in report.cells)
    return attrs.evolve(report, seconds={}, cells=cells, date="")


# ------------------------------------------------------------------------------------------------------ what it reports


def test_linear_evaluation_on_its_own_data_gives_the_scores_of_the_run(evaluate, run, tmp_path):
    """Two paths to one number: frames, split, share of labels, draws and the untrained weights must all be the same."""
    found = evaluate(tmp_path / "e", "label_fraction=0.5,1")
    mine = read_report((run / "report.json").read_text())
    assert found.scores == mine.scores
    assert found.comparisons == mine.comparisons
    assert found.split == mine.split
    predicted = read_predictions(tmp_path / "e" / "predictions.npz")
    expected = read_predictions(run / "predictions.npz")
    assert predicted.keys() == expected.keys()
    assert all(np.array_equal(predicted[key].probability, expected[key].probability) for key in expected)


@pytest.mark.parametrize("protocol", ["linear", "finetune"])
def test_both_controls_stand_beside_every_score_and_the_comparison_is_with_the_untrained_encoder(
    evaluate, tmp_path, protocol
):
    """On another data set, whose task may be of any kind."""
    found = evaluate(tmp_path / "e", "label_fraction=0.25,1", dataset="many", protocol=protocol)
    keys = [(score.protocol, score.init, score.label_fraction, score.level) for score in found.scores]
    assert keys == [
        (one, init, fraction, level)
        for fraction in (0.25, 1.0)
        for level in ("frame", "record")
        for one, init in ((protocol, "together"), (protocol, "random"), ("prior", "random"))
    ]
    assert {(one.a, one.b, one.protocol) for one in found.comparisons} == {("together", "random", protocol)}
    for one in found.comparisons:
        value = {
            score.init: score.value
            for score in found.scores
            if (score.protocol, score.level, score.label_fraction) == (protocol, one.level, one.label_fraction)
        }
        assert one.difference == value["together"] - value["random"]
    assert found.encoder.dataset == "tiny"
    assert found.dataset == "many"


def test_what_each_classifier_was_trained_on_is_counted(evaluate, tmp_path):
    """21 patients of `many` have a label, each of three recordings of four frames of two leads."""
    found = evaluate(
        tmp_path / "e", "label_fraction=0.5,1", "epochs=3", "batch_size=16", dataset="many", protocol="finetune"
    )
    whole = max(cell.frames for cell in found.cells)
    assert whole % 24 == 0
    for cell in found.cells:
        assert cell.frames == int(cell.label_fraction * whole)
        assert cell.patients <= whole // 24
        epochs = 0 if cell.protocol == "prior" else 3
        assert cell.epochs == epochs
        assert cell.steps == epochs * -(-cell.frames // 16)
        assert cell.best_epoch <= epochs
    assert sum(found.split.patients.values()) == 24
    assert sum(found.split.frames.values()) == 24 * 24  # labelled or not


def test_a_share_of_patients_has_all_frames_of_fewer_patients(evaluate, tmp_path):
    found = evaluate(tmp_path / "e", "label_fraction=0.5,1", dataset="many", fraction_of="patients")
    half, whole = (next(cell for cell in found.cells if cell.label_fraction == f) for f in (0.5, 1.0))
    assert (half.patients, half.frames) == (whole.patients // 2, whole.patients // 2 * 24)


@pytest.mark.parametrize("task", ["findings", "beats"])
@pytest.mark.parametrize("protocol", ["linear", "finetune"])
def test_tasks_of_other_kinds_are_evaluated_too(evaluate, tmp_path, task, protocol):
    """Any of several findings; and a label for every frame, which gives a recording none of its own."""
    found = evaluate(tmp_path / "e", f"task={task}", dataset="many", protocol=protocol)
    assert {score.level for score in found.scores} == ({"frame"} if task == "beats" else {"frame", "record"})
    assert {score.metric for score in found.scores} == ({"many"} if task == "findings" else {"hits"})


def test_an_untrained_encoder_is_evaluated_by_itself(evaluate, tmp_path):
    """The first row of the paper's tables needs no run."""
    found = evaluate(tmp_path / "e", opened=None, dataset="many", encoder="flat", protocol="finetune", embedding_dim=8)
    assert {(score.protocol, score.init) for score in found.scores} == {("finetune", "random"), ("prior", "random")}
    assert found.comparisons == ()
    assert (found.init, found.encoder.sha256, found.encoder.embedding_dim) == ("random", "", 8)


def test_an_encoder_that_reads_all_channels_at_once_gets_them_together(evaluate, tmp_path):
    """Then a row is a frame, not a lead of a frame."""
    wide = make_run(tmp_path, "--plugin", "leads")
    for protocol in ("linear", "finetune"):
        found = evaluate(tmp_path / protocol, opened=wide, dataset="many", protocol=protocol)
        assert found.encoder.inputs == 2
        assert sum(found.split.frames.values()) == 24 * 12
        assert {score.init for score in found.scores} == {"leads", "random"}


def test_another_seed_changes_head_and_order_and_untrained_weights_and_nothing_else(evaluate, tmp_path):
    first, second = (evaluate(tmp_path / str(seed), dataset="many", protocol="finetune", seed=seed) for seed in (0, 1))
    of = {(score.protocol, score.init): score.value for score in first.scores}
    other = {(score.protocol, score.init): score.value for score in second.scores}
    assert of["prior", "random"] == other["prior", "random"]
    assert first.split == second.split
    predicted = [read_predictions(tmp_path / seed / "predictions.npz") for seed in ("0", "1")]
    for init in ("together", "random"):
        rows = [one["finetune", init, 1.0].probability for one in predicted]
        assert not np.array_equal(*rows)


def test_the_weights_of_a_classifier_are_kept_with_all_that_is_needed_to_use_them(evaluate, session, tmp_path):
    """A fresh network of what the file says predicts what was predicted."""
    import torch
    from torch import nn

    evaluate(tmp_path / "e", "label_fraction=0.5", "task=findings", dataset="many", protocol="finetune")
    files = sorted(path.name for path in (tmp_path / "e" / "classifiers").iterdir())
    assert files == ["random-0.5.safetensors", "together-0.5.safetensors"]
    with safe_open(tmp_path / "e" / "classifiers" / "together-0.5.safetensors", framework="pt") as file:
        about = json.loads(file.metadata()["clocs"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    spec = about["encoder"]
    offer = session.catalogue.encoders.get(spec["name"]).offer
    network = nn.ModuleDict(
        {
            "encoder": offer.build(
                offer.options(**spec["options"]), spec["input_channels"], spec["frame_samples"], spec["embedding_dim"]
            ),
            "head": nn.Linear(about["head"]["features"], about["head"]["classes"]),
        }
    )
    network.load_state_dict(weights)
    assert about["task"] == {"name": "findings", "classes": ["even", "odd"], "kind": "any_of", "per": "record"}
    assert about["signal"]["channels"] == ["left", "right"]
    assert (about["signal"]["unit"], about["signal"]["normalise"]) == ("mV", "min-max")
    assert about["signal"]["framing"]["frame_samples"] == 50
    assert (about["init"], about["label_fraction"], about["dataset"]) == ("together", 0.5, "many")
    signal = torch.rand(3, 1, 50)
    assert network["head"](network["encoder"](signal)).shape == (3, 2)


def test_every_fine_tuned_classifier_has_its_curve(evaluate, tmp_path):
    """One value for each epoch; the best by the validation loss is the one whose weights were scored."""
    found = evaluate(tmp_path / "e", "label_fraction=0.5,1", "epochs=4", dataset="many", protocol="finetune")
    assert [(one.protocol, one.init, one.label_fraction) for one in found.curves] == [
        ("finetune", init, fraction) for fraction in (0.5, 1.0) for init in ("together", "random")
    ]
    cells = {(cell.protocol, cell.init, cell.label_fraction): cell for cell in found.cells}
    for one in found.curves:
        cell = cells[one.protocol, one.init, one.label_fraction]
        assert [point.epoch for point in one.values] == list(range(1, cell.epochs + 1))
        assert min(one.values, key=lambda point: point.validation_loss).epoch == cell.best_epoch
        assert one.metric == found.scores[0].metric == "hits"
    held = json.loads((tmp_path / "e" / "report.json").read_text())["curves"][0]
    assert list(held) == ["protocol", "init", "label_fraction", "metric", "values"]
    assert list(held["values"][0]) == ["epoch", "train_loss", "validation_loss", "validation_score"]


def test_a_curve_is_of_validation_patients_and_the_scores_of_that_part_agree_with_it(evaluate, tmp_path):
    """Two ways to one number: the score of the best epoch in the curve, and that of the kept weights."""
    found = evaluate(tmp_path / "e", "part=validation", "epochs=4", dataset="many", protocol="finetune")
    for one in found.curves:
        best = min(one.values, key=lambda point: point.validation_loss)
        (score,) = (s for s in found.scores if (s.protocol, s.init, s.level) == ("finetune", one.init, "frame"))
        assert best.validation_score == pytest.approx(score.value, abs=1e-6)


def test_frozen_encoders_have_no_curve(evaluate, tmp_path):
    assert evaluate(tmp_path / "e", dataset="many").curves == ()


# ----------------------------------------------------------------------------------------------------- what it warns of


def test_patients_that_the_encoder_was_trained_on_are_told_of(evaluate, run, session, tmp_path):
    """On its own data set with another split, a test is no test."""
    found = evaluate(tmp_path / "e", "split_seed=9")
    opened = open_encoder(run, session.catalogue)
    seen = set(opened.split.patients("train")) | set(opened.split.patients("validation"))
    tested = json.loads((tmp_path / "e" / "split.json").read_text())["patients"]["test"]
    both = len(seen & set(tested))
    assert both
    assert found.notes[0].startswith(f"{both} of the {len(tested)} test patients are among those that the encoder was")
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((run / "encoder.safetensors").read_bytes())
    found = evaluate(tmp_path / "f", "split_seed=9", opened=alone)
    assert found.notes[0].startswith("The split is another one than the encoder's: it may have been trained on")


def test_another_normalisation_and_the_validation_part_are_told_of(evaluate, tmp_path):
    found = evaluate(tmp_path / "e", "normalise=none", "notch=30", "part=validation", dataset="many")
    assert "pre-trained with normalise=min-max and is evaluated with normalise=none" in found.notes[0]
    assert "pre-trained with notch=none and is evaluated with notch=30.0" in found.notes[1]
    assert found.notes[2].startswith("Scores are of the validation patients, on whom choices are made")
    assert found.part == "validation"


def test_a_share_too_small_for_two_classes_costs_a_note_not_the_evaluation(evaluate, tmp_path):
    found = evaluate(tmp_path / "e", "label_fraction=0.001,1", dataset="many", protocol="finetune")
    assert {score.label_fraction for score in found.scores} == {1.0}
    assert any(
        note.startswith("There is no score at F = 0.001: The labelled training frames all") for note in found.notes
    )
    assert len(found.cells) == 6


@pytest.mark.filterwarnings("always::clocs_core.ClocsWarning")
def test_what_plugins_warn_of_stands_in_the_report_once_and_outlives_a_kill(evaluate, tmp_path, monkeypatch):
    """A score made the slow or the inexact way says so to whoever reads it later, and not only in a terminal."""
    real, screen = classifiers.MODELS["one_of"], Screen()

    def loud(*arguments, **named):
        warnings.warn("The slow way was taken.", ClocsWarning, stacklevel=1)
        return real[0](*arguments, **named)

    monkeypatch.setitem(classifiers.MODELS, "one_of", (loud, real[1]))
    found = evaluate(tmp_path / "e", screen=screen, dataset="many")
    assert found.notes.count("The slow way was taken.") == screen.lines.count("The slow way was taken.") == 1
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "f", screen=Screen(2), dataset="many")
    monkeypatch.setitem(classifiers.MODELS, "one_of", real)
    assert evaluate(tmp_path / "f", dataset="many").notes == found.notes


def test_recordings_that_cannot_serve_leave_nothing_behind(evaluate, tmp_path):
    with pytest.raises(DataError, match="frames has a label for 'parity'"):
        evaluate(tmp_path / "e", "labelled=false")
    with pytest.raises(DataError, match="validation frames has a label for 'parity'"):
        evaluate(tmp_path / "e", dataset="unchecked", protocol="finetune")
    with pytest.raises(SettingsError, match="`step='captured'` needs a GPU"):
        evaluate(tmp_path / "e", protocol="finetune", step="captured")
    assert not (tmp_path / "e").exists()
    assert evaluate(tmp_path / "e", dataset="unchecked").scores  # frozen, nothing needs validation


# ------------------------------------------------------------------------------------------------------------ going on

FEW = "label_fraction=0.5,1"
HOW = {"dataset": "many", "protocol": "finetune"}


@pytest.fixture(scope="module")
def uninterrupted(evaluate, tmp_path_factory):
    """Folder and report of an evaluation that nobody stopped, by protocol."""
    folders = {protocol: tmp_path_factory.mktemp(protocol) / "whole" for protocol in ("linear", "finetune")}
    return {
        protocol: (folder, evaluate(folder, FEW, dataset="many", protocol=protocol))
        for protocol, folder in folders.items()
    }


@pytest.mark.parametrize(("protocol", "stop_at"), [("linear", 2), ("finetune", 1), ("finetune", 4), ("finetune", 7)])
def test_an_evaluation_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(
    evaluate, uninterrupted, tmp_path, protocol, stop_at
):
    """Finished classifiers are not trained again, and the report is the same to the last bit."""
    folder, whole = uninterrupted[protocol]
    how, stopped, again = HOW | {"protocol": protocol}, Screen(stop_at), Screen()
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", FEW, screen=stopped, **how)
    assert not (tmp_path / "e" / "report.json").exists()
    found = evaluate(tmp_path / "e", FEW, screen=again, **how)
    trained = [text.split(" (")[0] for text in (*stopped.stages[1:], *again.stages[1:-1])]
    assert len(trained) == len(set(trained)) == 6
    assert lasting(found) == lasting(whole)
    for name in ("settings.toml", "split.json"):
        assert (tmp_path / "e" / name).read_bytes() == (folder / name).read_bytes()
    first, second = (read_predictions(one / "predictions.npz") for one in (folder, tmp_path / "e"))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[key].probability, second[key].probability) for key in first)
    assert not (tmp_path / "e" / "cells").exists()


@pytest.mark.parametrize("epochs", [2, 3, 6])
def test_a_kill_in_the_middle_of_fine_tuning_keeps_the_curve(evaluate, tmp_path, epochs):
    """Of the classifier that was being trained, and of those before it."""
    whole = evaluate(tmp_path / "whole", "epochs=4", **HOW)
    minutes = itertools.count(step=60).__next__  # a checkpoint after every epoch
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", "epochs=4", screen=Screen(epochs=epochs), clock=minutes, **HOW)
    assert list((tmp_path / "e" / "cells").glob("*.safetensors"))
    found = evaluate(tmp_path / "e", "epochs=4", **HOW)
    assert lasting(found) == lasting(whole)
    assert [len(one.values) for one in found.curves] == [4, 4]


def test_a_finished_evaluation_is_not_made_again(evaluate, uninterrupted):
    folder, first = uninterrupted["finetune"]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    screen = Screen()
    assert evaluate(folder, FEW, screen=screen, **HOW) == first
    assert screen.stages == []
    assert "is finished" in screen.lines[0]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_what_a_kill_at_the_very_end_left_is_cleared_at_the_next_start(evaluate, uninterrupted):
    """The report is there, so nothing goes on from it."""
    folder, first = uninterrupted["finetune"]
    (folder / "cells").mkdir()
    (folder / "cells" / "finetune-random-1.npz").write_bytes(b"")
    assert evaluate(folder, FEW, **HOW) == first
    assert not (folder / "cells").exists()


def test_a_folder_of_other_settings_or_of_something_else_is_refused(evaluate, tmp_path):
    """What was found there must stay what it is called."""
    evaluate(tmp_path / "e", dataset="many")
    with pytest.raises(RunFolderError, match="holds an evaluation with other settings"):
        evaluate(tmp_path / "e", "seed=5", dataset="many")
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "letter").write_text("precious")
    with pytest.raises(RunFolderError, match="is there already, and is no evaluation"):
        evaluate(tmp_path / "f", dataset="many")
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["letter"]


def test_going_on_with_other_recordings_is_refused(evaluate, tmp_path):
    """A download may have gone on: classifiers of before and after would be scored on different patients."""
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", FEW, screen=Screen(2), **HOW)
    edit_json(tmp_path / "e" / "recordings.json", lambda used: used.update(patients=23))
    with pytest.raises(RunFolderError, match=r"The recordings have changed since .*/e was begun: it had .* of 23 pat"):
        evaluate(tmp_path / "e", FEW, **HOW)


def test_a_second_process_in_the_same_folder_is_refused(evaluate, tmp_path):
    from filelock import FileLock

    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", FEW, screen=Screen(2), **HOW)
    with FileLock(tmp_path / "e" / ".lock"), pytest.raises(RunFolderError, match="Another process is working in"):
        evaluate(tmp_path / "e", FEW, **HOW)


def test_the_folder_is_locked_while_recordings_are_prepared_and_a_mistake_leaves_nothing(
    evaluate, tmp_path, monkeypatch
):
    """Two evaluations that begin at once both found the place free, and the second went on in the first one's files."""
    prepared = []

    def prepare(plan, around):
        prepared.append(plan)
        if len(prepared) == 1:
            with pytest.raises(RunFolderError, match="Another process is working in"):
                evaluate(tmp_path / "above" / "e", dataset="many")
        raise DataError("unreadable")

    monkeypatch.setattr("clocs_core.workflows.evaluate.prepare_evaluation", prepare)
    with pytest.raises(DataError, match="unreadable"):
        evaluate(tmp_path / "above" / "e", dataset="many")
    assert len(prepared) == 1
    assert not (tmp_path / "above").exists()


def test_time_adds_up_over_the_processes_of_an_evaluation(evaluate, tmp_path):
    """What was trained before an interruption took time too."""
    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", FEW, screen=Screen(3), **HOW)
    report = evaluate(tmp_path / "e", FEW, **HOW)
    assert len(report.cells) > 2
    assert report.seconds["train"] >= sum(cell.seconds for cell in report.cells) > 0


# ---------------------------------------------------------------------------------------------- protocols of plugins


def test_a_protocol_of_recordings_has_controls_intervals_and_comparisons_and_shows_its_choice(evaluate, tmp_path):
    found = evaluate(tmp_path / "e", "label_fraction=0.5,1", "sharp=2", dataset="many", protocol="centres")
    keys = [(score.protocol, score.init, score.label_fraction, score.level) for score in found.scores]
    assert keys == [
        (protocol, init, fraction, "record")
        for fraction in (0.5, 1.0)
        for protocol, init in (("centres", "together"), ("centres", "random"), ("prior", "random"))
    ]
    assert all(score.low <= score.value <= score.high for score in found.scores)
    assert [(one.a, one.b, one.protocol) for one in found.comparisons] == [("together", "random", "centres")] * 2
    assert found.protocol == "centres"
    assert found.how.startswith("Nearest centre (sharp = 2.0)")
    predicted = read_predictions(tmp_path / "e" / "predictions.npz")
    (rows,) = {len(one.record) for one in predicted.values()}
    assert rows == len(set(predicted["centres", "random", 1.0].record.tolist()))  # one row of each recording
    cell = found.cells[0]
    validation = found.split.records["validation"]
    assert cell.chosen == {"rows": str(validation)}
    assert f"centres chose rows = {validation} for together at F = 0.5." in found.notes
    assert "Centres." in found.notes
    assert cell.frames < found.cells[3].frames == 3 * 13  # recordings of the training patients that have labels


def test_a_protocol_that_wants_the_encoder_gets_it_untrained_for_the_control(evaluate, tmp_path):
    found = evaluate(None, dataset="many", protocol="tilted")
    values = {(one.init, one.level): one.value for one in found.scores if one.protocol == "tilted"}
    assert set(values) == {(init, level) for init in ("together", "random") for level in ("frame", "record")}
    assert values["together", "frame"] != values["random", "frame"]


def test_listeners_hear_of_an_evaluation_that_is_kept_once_it_is_finished(evaluate, tmp_path):
    evaluate(tmp_path / "e", "diary.every=1", dataset="many")
    evaluate(tmp_path / "e", "diary.every=1", dataset="many")  # reads the report again
    assert (tmp_path / "e" / "diary.txt").read_text().splitlines() == ["evaluated by linear"]


def refuse_short(options, channels, samples, embedding_dim):
    raise ValueError("a patch is longer than a frame")


def test_an_encoder_that_cannot_be_built_is_refused_before_a_folder_is_begun(tmp_path, capsys):
    """Otherwise a mistake would leave settings behind that nothing can go on with."""
    picky = Encoder(name="picky", summary="Refuses all frames.", build=refuse_short)
    words = f"evaluate --random --encoder picky --dataset tiny --device cpu --workers 1 --data-root {tmp_path / 'data'}"
    code = main([*words.split(), "--out", str(tmp_path / "out")], points(clocs_encoders=lambda: [flat(), picky]))
    assert code == 2
    assert "Encoder 'picky' cannot be built: a patch is longer than a frame" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
