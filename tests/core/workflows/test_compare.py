"""Runs side by side: what differs is named, seeds are one, and a difference is that of the same draws of patients."""

from __future__ import annotations

import math
import shutil

import attrs
import numpy as np
import pytest
from edited_files import edit_json
from fake_offers import hit_rate
from fake_plugins import points
from fake_runs import TUNE, evaluate_run, make_run

from clocs_core import seeds
from clocs_core.artifacts.predictions import read_predicted_rows
from clocs_core.artifacts.reports import read_report
from clocs_core.artifacts.results import group_by_seed, open_candidate
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.permutation import permutation_p
from clocs_core.plugins.session import open_session
from clocs_core.report.compared import ComparedScore, score_table, setting_rows
from clocs_core.workflows.compare import compare_candidates, compare_folders
from clocs_core.workflows.differences import Wanted

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


class Screen:
    def __init__(self):
        self.stages, self.ticks = [], []

    def stage(self, text):
        self.stages.append(text)

    def tick(self, done, total):
        self.ticks.append((done, total))


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, data):
    """Two seeds of one method, another temperature, and what a run would have left that read one lead only."""
    more = {"first": ("--seed", "1"), "second": ("--seed", "2"), "warm": ("-o", "temperature=0.7")}
    always = ("-o", "people=15", "--label-fraction", "0.5,1", "--data-root", data)
    made = {name: make_run(tmp_path_factory.mktemp(name), *always, *flags) for name, flags in more.items()}
    made["lead"] = shutil.copytree(made["first"], tmp_path_factory.mktemp("lead") / "run")
    np.savez(
        made["lead"] / "predictions.npz", **{name: one[::2] for name, one in predictions_of(made["first"]).items()}
    )
    edit_json(made["lead"] / "report.json", lambda report: report["settings"]["data"].update(channels=["left"]))
    edit_json(made["lead"] / "report.json", lambda report: report.pop("predictions_sha256"))
    return made


@pytest.fixture(scope="module")
def evaluations(runs, data):
    """Of the two seeds and the other temperature, by fine-tuning on another data set."""
    return {name: evaluate_run(runs[name], *TUNE, "--data-root", data) for name in ("first", "second", "warm")}


@pytest.fixture
def compared(runs, catalogue):
    def call(*names, screen=None, **wanted):
        paths = [runs.get(name, name) for name in names]
        return compare_folders(paths, Wanted(**wanted), catalogue, screen or Screen())

    return call


def predictions_of(path):
    with np.load(path / "predictions.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def draws_by_loops(path, key, level, resamples, seed):
    """The score of a classifier on all draws of its patients: each patient as often as it was drawn."""
    held = predictions_of(path)
    rows = []
    for patient, record, label, probability in zip(
        held["patient"], held["record"], held["label"], held[key], strict=True
    ):
        rows.append((str(patient), str(record), int(label), probability))
    if level == "record":
        whole = {}
        for patient, record, label, probability in rows:
            whole.setdefault((record, patient, label), []).append(probability)
        rows = [(patient, record, label, sum(ps) / len(ps)) for (record, patient, label), ps in sorted(whole.items())]
    patients = sorted({row[0] for row in rows})
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        drawn = [patients[n] for n in rng.integers(0, len(patients), len(patients))]
        weight = [drawn.count(row[0]) for row in rows]
        found.append(hit_rate(np.array([row[3] for row in rows]), np.array([row[2] for row in rows]), np.array(weight)))
    return np.array(found)


# --------------------------------------------------------------------------------------------------------- what differs


def test_the_settings_that_are_not_the_same_are_named_and_no_other(compared):
    found = compared("first", "warm", "second", "lead")
    assert [one.letter for one in found.compared] == ["A", "B", "C"]
    assert setting_rows(found.settings) == (
        ("run.seed", "1 | 2", "0", "1"),
        ("data.channels", "left, right", "left, right", "left"),
        ("loss.temperature", "0.1", "0.7", "0.1"),
    )


def test_runs_that_differ_by_seed_only_are_one_with_mean_and_sd(compared, runs):
    found = compared("first", "warm", "second")
    assert [one.seeds for one in found.compared] == [(1, 2), (0,)]
    assert found.compared[0].folders == (str(runs["first"]), str(runs["second"]))
    reports = [read_report((runs[name] / "report.json").read_text()) for name in ("first", "second")]
    for one in found.scores:
        if one.letter != "A":
            continue
        init, protocol = {"own": ("together", "linear"), "random": ("random", "linear")}.get(
            one.weights, ("random", "prior")
        )
        values = [
            score.value
            for report in reports
            for score in report.scores
            if (score.init, score.protocol, score.label_fraction, score.level)
            == (init, protocol, one.label_fraction, one.level)
        ]
        assert one.values == tuple(values)
        assert one.mean == pytest.approx((values[0] + values[1]) / 2)
        assert one.sd == pytest.approx(abs(values[0] - values[1]) / math.sqrt(2))
        assert math.isnan(one.low)


def test_controls_stand_beside_every_score(compared):
    headings, rows = score_table(compared("warm", "first", levels=("record",)))
    assert headings == ("labels F", "metric", "level", "weights", "A", "B")
    assert [row[:4] for row in rows] == [
        (fraction, "hits", "record", weights)
        for fraction in ("0.5", "1")
        for weights in ("own", "random", "class prior")
    ]


def test_a_score_is_shown_with_its_interval_or_its_spread():
    about = {"letter": "A", "weights": "own", "label_fraction": 1.0, "metric": "m", "level": "frame"}
    assert ComparedScore(**about, values=(0.5,), low=0.25, high=0.75).shown() == "0.500 [0.250, 0.750]"
    assert ComparedScore(**about, values=(0.5, 0.7)).shown() == "0.600 ± 0.141"
    assert math.isnan(ComparedScore(**about, values=(0.5,)).sd)


def test_evaluations_are_one_where_their_runs_differ_by_seed_only(compared, evaluations):
    """The file of their encoder is another one; that it comes of another seed, and of nothing else, its run can say."""
    found = compared(evaluations["first"], evaluations["second"], evaluations["warm"])
    assert [one.seeds for one in found.compared] == [(1, 2), (0,)]
    assert {one.kind for one in found.compared} == {"evaluation"}
    names = {row.name for row in found.settings}
    assert {"loss.temperature", "run.seed", "evaluation.seed"} <= names
    assert "evaluation.encoder_sha256" not in names


def test_evaluations_with_a_fixed_seed_are_of_the_seeds_of_their_runs(compared, runs, data):
    """Pairs followed the order in which folders were named, and the interval with it."""
    fixed = [evaluate_run(runs[name], *TUNE, "--data-root", data, "--seed", "7") for name in ("second", "first")]
    found = compared(*fixed, "warm")
    assert found.compared[0].seeds == (2, 1)
    assert not any("more than once" in note for note in found.notes)


def test_evaluations_of_one_encoder_with_several_seeds_are_one_seed(compared, runs, evaluations, data):
    """Nothing of other pre-trainings is in them."""
    again = evaluate_run(runs["first"], *TUNE, "--data-root", data, "--seed", "9")
    found = compared(evaluations["first"], again, evaluations["warm"])
    assert found.compared[0].seeds == (1, 1)
    assert "A: Seed 1 is there more than once: the sd is too small." in found.notes
    assert {one.seeds for one in found.differences} == {1}


def test_a_label_fraction_is_found_as_it_is_shown(compared, runs):
    assert {one.label_fraction for one in compared("first", "warm", fractions=(0.5000001,)).scores} == {0.5}


def test_evaluations_of_encoders_whose_run_is_not_there_are_not_taken_for_seeds(compared, evaluations, tmp_path):
    """The temperature of one of them may have been another."""
    moved = [shutil.copytree(evaluations[name], tmp_path / name) for name in ("first", "second")]
    found = compared(*moved)
    assert len(found.compared) == 2
    assert "evaluation.encoder_sha256" in {row.name for row in found.settings}


def test_a_run_and_an_evaluation_are_compared_by_what_both_have(compared, runs, evaluations):
    found = compared("first", evaluations["first"])
    names = {row.name for row in found.settings}
    assert {"evaluate.label_fraction"} <= names
    assert not [name for name in names if name.startswith(("evaluation.", "finetune.", "pre-training"))]
    assert [one.protocol for one in found.compared] == ["linear", "finetune"]
    assert found.refused[0].reason == "the data set is not the same (tiny and many)"
    assert found.differences == ()


# --------------------------------------------------------------------------------------------------- paired differences


@pytest.mark.parametrize("level", ["frame", "record"])
def test_a_difference_is_that_of_the_same_draws_of_the_same_patients(compared, runs, level):
    """By loops over patients and rows, from the two files of predictions alone."""
    screen = Screen()
    found = compared("warm", "first", screen=screen, levels=(level,))
    assert screen.stages
    assert screen.ticks[-1] == (1, 1)
    assert {one.label_fraction for one in found.differences} == {0.5, 1.0}
    for one in found.differences:
        key = f"probability/linear/together/{one.label_fraction:g}"
        seed = seeds.derive(0, "bootstrap")
        a, b = (draws_by_loops(runs[name], key, level, 20, seed) for name in ("warm", "first"))
        assert (one.low, one.high) == pytest.approx(tuple(np.percentile(a - b, [2.5, 97.5])))
        values = {score.letter: score.mean for score in found.scores if _same(score, one) and score.weights == "own"}
        assert one.difference == pytest.approx(values["A"] - values["B"])
        assert (one.a, one.b, one.protocol) == ("A (together)", "B (together)", "linear")


@pytest.mark.parametrize("level", ["frame", "record"])
def test_p_is_that_of_a_test_on_the_two_files_of_predictions(compared, runs, catalogue, level):
    metric = catalogue.metrics.get("hits").offer
    for one in compared("warm", "first", levels=(level,)).differences:
        files = (read_predicted_rows(runs[name] / "predictions.npz").predicted for name in ("warm", "first"))
        rows = [held["linear", "together", one.label_fraction] for held in files]
        at_level = map(by_record, rows) if level == "record" else rows
        assert one.p == permutation_p(*at_level, metric, 30, seeds.derive(0, "permutation"))


def _same(score, one):
    return (score.label_fraction, score.metric, score.level) == (one.label_fraction, one.metric, one.level)


def test_the_difference_to_several_seeds_is_that_to_their_mean(compared, runs):
    found = compared("warm", "first", "second", levels=("record",), fractions=(1.0,))
    (one,) = found.differences
    seed, key = seeds.derive(0, "bootstrap"), "probability/linear/together/1"
    draws = {name: draws_by_loops(runs[name], key, "record", 20, seed) for name in ("warm", "first", "second")}
    expected = draws["warm"] - (draws["first"] + draws["second"]) / 2
    assert one.seeds == 1  # of the side with fewer: its interval is over patients alone
    assert one.p is None  # a test over the patients of one seed would say nothing of the other seeds
    assert (one.low, one.high) == pytest.approx(tuple(np.percentile(expected, [2.5, 97.5])))


def test_a_run_differs_from_its_copy_by_nothing(compared, runs, tmp_path):
    copy = shutil.copytree(runs["warm"], tmp_path / "copy")
    edit_json(copy / "report.json", lambda report: report["settings"]["loss"].update(temperature=0.8))
    for one in compared("warm", copy).differences:
        assert (one.difference, one.low, one.high) == (0, 0, 0)


def test_other_leads_are_paired_by_recording_only(compared):
    found = compared("first", "lead")
    assert {one.level for one in found.differences} == {"record"}
    (refusal,) = found.refused
    assert refusal.level == "frame"
    assert refusal.reason.startswith("their frames are not the same")


def test_other_test_patients_are_refused_with_the_reason(compared, runs, tmp_path):
    """Their scores are shown all the same; whether they can be told apart is not."""
    copy = shutil.copytree(runs["warm"], tmp_path / "copy")
    held = predictions_of(copy)
    held["patient"][held["patient"] == held["patient"][0]] = "p0"
    np.savez(copy / "predictions.npz", **held)
    edit_json(copy / "report.json", lambda report: report["split"].update(seed=5))
    edit_json(copy / "report.json", lambda report: report.pop("predictions_sha256"))
    found = compared("first", copy)
    assert found.differences == ()
    assert found.scores
    (refusal,) = found.refused
    assert (refusal.a, refusal.b, refusal.level) == ("A (together)", "B (together)", "")
    assert refusal.reason == (
        "their patients are not the same (2 in both, 3 and 3 in all); the split seeds are 0 and 5"
    )


def test_predictions_of_another_run_are_refused(compared, runs, tmp_path):
    """Scores would be of one run and differences of another: copied by hand, this went unnoticed."""
    copy = shutil.copytree(runs["warm"], tmp_path / "copy")
    shutil.copy(runs["second"] / "predictions.npz", copy)
    with pytest.raises(RunFolderError, match=r"predictions.npz does not belong to the report\.json beside it"):
        compared("first", copy)


def test_a_run_without_predictions_is_not_paired(compared, runs, tmp_path):
    copy = shutil.copytree(runs["warm"], tmp_path / "copy")
    (copy / "predictions.npz").unlink()
    (refusal,) = compared("first", copy).refused
    assert refusal.reason == f"{copy} has no predictions"


def test_shares_of_labels_that_only_one_has_are_shown_but_not_compared(compared, runs, tmp_path):
    copy = shutil.copytree(runs["warm"], tmp_path / "copy")

    def at_one(report):
        report["scores"] = [score for score in report["scores"] if score["label_fraction"] == 1.0]

    def at_another(report):
        report["scores"] = [{**score, "label_fraction": 0.1} for score in report["scores"]]

    edit_json(copy / "report.json", at_one)
    found = compared("first", copy)
    assert {one.label_fraction for one in found.differences} == {1.0}
    assert {one.label_fraction for one in found.scores} == {0.5, 1.0}
    said = "A (together) and B (together) are not compared at F = 0.5: B has no score there."
    assert found.notes[0] == said
    assert compared(copy, "first", "second").notes[0].endswith("at F = 0.5: A has no score there.")
    for all_have in (compared("first", "warm"), compared("first", copy, fractions=(1.0,))):
        assert not any("are not compared" in note for note in all_have.notes)
    seed = shutil.copytree(runs["second"], tmp_path / "seed")
    edit_json(seed / "report.json", at_one)
    assert compared("warm", "first", seed).notes[0].endswith("at F = 0.5: a seed of B has no score there.")
    edit_json(copy / "report.json", at_another)
    assert compared("first", copy).refused[0].reason == "they have no share of labels in common"


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_cannot_be_compared_is_refused(compared, runs, tmp_path):
    with pytest.raises(SettingsError, match="is given twice; give each run once"):
        compared("first", "first")
    with pytest.raises(RunFolderError, match="nowhere is not there"):
        compared("first", tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="is no run and no evaluation"):
        compared("first", tmp_path)
    shutil.copy(runs["first"] / "settings.toml", tmp_path)
    with pytest.raises(RunFolderError, match=r"has no report\.json: it is not finished"):
        compared("first", tmp_path)
    with pytest.raises(UnknownName, match=r"None of the reports has the metric 'hist'\. Did you mean 'hits'\?"):
        compared("first", "warm", metrics=("hist",))
    with pytest.raises(SettingsError, match=r"None of the reports has scores at F = 0\.3; there is 0\.5, 1\."):
        compared("first", "warm", fractions=(0.3,))


def test_a_note_of_one_seed_is_not_that_of_all(runs, catalogue):
    """Such as that its embeddings look collapsed."""
    first, second = (open_candidate(runs[name]) for name in ("first", "second"))
    shared = first.notes
    alone = attrs.evolve(second, notes=(*shared, "It looks collapsed."))
    found = compare_candidates([first, alone, open_candidate(runs["warm"])], Wanted(), catalogue, Screen())
    assert "A: Seed 2: It looks collapsed." in found.notes
    assert all(f"A: {note}" in found.notes for note in shared)


def test_the_same_seed_twice_is_told_of(compared, runs, tmp_path):
    """Its sd would be that of nothing."""
    copy = shutil.copytree(runs["first"], tmp_path / "copy")
    found = compared("first", copy)
    assert found.notes[0] == "A: Seed 1 is there more than once: the sd is too small."


def test_grouping_keeps_the_order_in_which_they_were_named(runs):
    opened = [open_candidate(runs[name]) for name in ("warm", "second", "lead", "first")]
    groups = group_by_seed(opened)
    assert [[one.path for one in group] for group in groups] == [
        [runs["warm"]],
        [runs["second"], runs["first"]],
        [runs["lead"]],
    ]


def test_where_data_lies_is_no_setting_of_a_method_but_who_is_tested_is(runs):
    one = open_candidate(runs["first"])
    moved = attrs.evolve(one, settings={**one.settings, "data.data_root": "elsewhere", "run.device": "cuda"})
    other = attrs.evolve(one, split=attrs.evolve(one.split, hash="other"))
    assert group_by_seed([one, moved, other]) == ((one, moved), (other,))
