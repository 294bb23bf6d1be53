"""Representations of recordings by the encoder of a run: which recordings, which rows, and the file."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import torch
from fake_encoders import ALL_AT_ONCE, CPU, PATIENTS, installed, plan_of, write_encoder

from clocs_core import Drop
from clocs_core.artifacts.embeddings import save_rows
from clocs_core.artifacts.encoder import load_encoder
from clocs_core.errors import DataError, SettingsError, UnknownName
from clocs_core.inference import embed as module
from clocs_core.inference.embed import (
    Wanted,
    choose_recordings,
    embed_files,
    embed_recordings,
    get_recordings,
    name_rows,
)
from clocs_core.inference.signals import Unsaid


class Told:
    """Keeps what a story says."""

    def __init__(self):
        self.said, self.warned, self.stages, self.ticks = [], [], [], []

    def say(self, text):
        self.said.append(text)

    def warn(self, text):
        self.warned.append(text)

    def stage(self, text):
        self.stages.append(text)

    def tick(self, done, total):
        self.ticks.append((done, total))


@pytest.fixture(scope="module")
def catalogue():
    return installed()


@pytest.fixture
def loaded(tmp_path, catalogue):
    write_encoder(tmp_path, plan_of(catalogue))
    return load_encoder(tmp_path, catalogue, CPU)


def get(loaded, catalogue, given=(), assignments=(), show=None):
    target = choose_recordings(loaded.card, catalogue, "demo", {"data": dict(given)}, assignments)
    return get_recordings(loaded.card, target, 1, show or Told())


def embed(loaded, cohort, part, show=None, also=frozenset()):
    """Embed a part of a cohort, normalised as the card says."""
    target = SimpleNamespace(recordings=SimpleNamespace(data=SimpleNamespace(normalise="min-max", constant=None)))
    return embed_recordings(loaded, target, cohort, Wanted(part, also), CPU, show or Told())


# ----------------------------------------------------------------------------------------------------- which recordings


def test_on_its_own_data_set_an_encoder_reads_what_the_run_read(tmp_path, catalogue):
    """With another split, test patients would be among those that trained it."""
    plan = plan_of(catalogue, channels=["V2", "II"], split_seed=3, split="64/16/20")
    write_encoder(tmp_path, plan)
    card = load_encoder(tmp_path, catalogue, CPU).card
    target = choose_recordings(card, catalogue, "demo", {})
    assert target.recordings == plan.recordings
    assert target.framing == plan.evaluate_framing


def test_on_another_data_set_what_the_encoder_fixes_stays(catalogue, loaded):
    """A frame's length and the normalisation are the encoder's; split, task and time scale are the data set's."""
    card = attrs.evolve(loaded.card, normalise="none", frame_samples=1000)
    target = choose_recordings(card, catalogue, "ptbxl", {"data": {"root": "somewhere"}})
    offer = catalogue.datasets.get("ptbxl").offer
    assert target.framing == attrs.evolve(offer.framing(1), frame_samples=1000)
    assert (target.recordings.data.normalise, target.recordings.data.root) == ("none", Path("somewhere"))
    assert target.recordings.data.channels == ("II", "V2", "aVL", "aVR")  # the run's: the data set has them all
    assert target.recordings.task == offer.tasks[0]
    assert choose_recordings(card, catalogue, "cardiology", {}).recordings.data.channels != card.channels
    assert choose_recordings(card, catalogue, "ptbxl", {}, ["normalise=min-max"]).recordings.data.normalise == "min-max"


def test_a_data_folder_that_is_given_wins_over_the_runs_own_place(tmp_path, catalogue):
    write_encoder(tmp_path, plan_of(catalogue, root="/somewhere/of/the/run"))
    card = load_encoder(tmp_path, catalogue, CPU).card
    assert choose_recordings(card, catalogue, "demo", {}).recordings.data.root == Path("/somewhere/of/the/run")
    data = choose_recordings(card, catalogue, "demo", {"data": {"data_root": "elsewhere"}}).recordings.data
    assert (data.root, data.data_root) == (None, Path("elsewhere"))
    data = choose_recordings(card, catalogue, "demo", {}, ["data_root=elsewhere"]).recordings.data
    assert (data.root, data.data_root) == (None, Path("elsewhere").absolute())


@pytest.mark.parametrize(
    ("dataset", "given", "assignments", "error", "message"),
    [
        ("dmeo", {}, [], UnknownName, "No dataset 'dmeo'. Did you mean 'demo'"),
        ("demo", {"channels": ["V12"]}, [], UnknownName, "Data set 'demo' has no channel 'V12'"),
        ("demo", {"task": "rythm"}, [], UnknownName, "Did you mean 'rhythm'"),
        ("demo", {}, ["frame_samples=100"], SettingsError, "The encoder reads frames of 2500 samples, got"),
        ("demo", {}, ["temperature=1"], SettingsError, "no part of this run has an option 'temperature'"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(catalogue, loaded, dataset, given, assignments, error, message):
    with pytest.raises(error, match=message):
        choose_recordings(loaded.card, catalogue, dataset, {"data": given}, assignments)


def test_an_encoder_of_several_channels_takes_no_others(tmp_path, catalogue):
    """It knows channels by their place; given others it would compute something all the same."""
    write_encoder(tmp_path, plan_of(catalogue, ALL_AT_ONCE))
    card = load_encoder(tmp_path, catalogue, CPU).card
    with pytest.raises(SettingsError, match="The encoder reads II, V2, aVL, aVR at once, got II; leave out"):
        choose_recordings(card, catalogue, "demo", {"data": {"channels": ["II"]}})
    with pytest.raises(DataError, match=r"'cardiology' has no channel 'II'.* trained on II, V2, aVL, aVR, at once"):
        choose_recordings(card, catalogue, "cardiology", {})
    turned = choose_recordings(card, catalogue, "demo", {"data": {"channels": ["II", "V2", "aVR", "aVL"]}})
    assert turned.recordings.data.channels == card.channels  # by name: the order they are typed in says nothing
    assert choose_recordings(card, catalogue, "ptbxl", {}).recordings.data.channels == card.channels


def test_patients_divided_otherwise_than_in_the_run_are_a_warning(catalogue, loaded):
    show = Told()
    get(loaded, catalogue, show=show)
    assert show.warned == []
    get(loaded, catalogue, {"split_seed": 1}, show=show)
    assert show.warned[0].startswith("the patients are divided otherwise than when the encoder was trained")


def test_recordings_that_are_left_out_are_told(catalogue, loaded, monkeypatch):
    """As a run tells them: rows that are missing in a file of embeddings are not seen there."""
    cohort = get(loaded, catalogue)
    listing = attrs.evolve(cohort.listing, drops=[Drop("cannot be read", "r7")])
    monkeypatch.setattr(module, "get_cohort", lambda *asked: attrs.evolve(cohort, listing=listing))
    show = Told()
    get(loaded, catalogue, show=show)
    assert "1 cannot be read (r7)" in show.said[0]


def test_other_signals_than_those_of_the_run_are_a_warning(catalogue, loaded):
    show = Told()
    card = attrs.evolve(loaded.card, modality="ppg", unit="mmHg", count=2)
    target = choose_recordings(loaded.card, catalogue, "demo", {}, ["normalise=none"])
    get_recordings(card, target, 1, show)
    assert show.warned == [
        "the encoder was trained on signals of kind 'ppg', and these are 'ecg'",
        "the encoder was trained on signals in mmHg, and these are in mV: their scale may be another; an encoder that "
        "is trained with `normalise='z-score'` does not depend on it",
    ]
    assert show.said == ["the run trained 2 encoders; the first is used, as in its evaluation"]


# ------------------------------------------------------------------------------------------------------------ embedding


def test_every_row_is_the_encoder_on_its_frame(catalogue, loaded):
    """One by one, from the frames on disk: a row under a wrong name is worse than no row."""
    cohort = get(loaded, catalogue)
    found = embed(loaded, cohort, "all")
    prepared = cohort.evaluate
    assert len(found) == int(prepared.valid[:, [prepared.channels.index(name) for name in found.rows.channels]].sum())
    for row in range(0, len(found), 7):
        frame, name = found.rows.frame[row], found.channel_name(row)
        signal = prepared.frames[frame, prepared.channels.index(name)].astype(np.float64) / prepared.gain[frame]
        signal = (signal - signal.min()) / (signal.max() - signal.min())
        with torch.no_grad():
            expected = loaded.encoder(torch.from_numpy(signal).float()[None, None])[0]
        np.testing.assert_allclose(found.rows.features.embedding[row], expected, atol=1e-5)
        record, patient = prepared.records[prepared.record[frame]]
        assert found.rows.records[found.rows.features.record[row]] == record
        assert found.rows.patients[found.rows.features.patient[row]] == patient
        assert found.rows.start[row] == prepared.start[frame]


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_a_part_has_its_patients_only_and_those_who_were_asked_for(catalogue, loaded, part):
    cohort = get(loaded, catalogue)
    found = embed(loaded, cohort, part)
    assert {found.rows.patients[n] for n in found.rows.features.patient} == set(cohort.split.patients(part))
    other = next(name for name, where in cohort.split.parts.items() if where != part)
    more = embed(loaded, cohort, part, also=frozenset({other}))
    assert {more.rows.patients[n] for n in more.rows.features.patient} == {*cohort.split.patients(part), other}


def test_progress_is_told(catalogue, loaded):
    show = Told()
    embed(loaded, get(loaded, catalogue, show=show), "all", show)
    assert show.stages == ["preparing recordings", "embedding"]
    assert show.ticks[-1] == (1, 1)


def test_channels_that_are_read_at_once_make_one_row(tmp_path, catalogue):
    write_encoder(tmp_path, plan_of(catalogue, ALL_AT_ONCE))
    loaded = load_encoder(tmp_path, catalogue, CPU)
    found = embed(loaded, get(loaded, catalogue), "all")
    assert {found.channel_name(row) for row in range(len(found))} == {"all"}
    assert len(found) == len(found.cohort.evaluate.frames)


def test_no_frame_at_all_is_said(catalogue, loaded):
    cohort = get(loaded, catalogue)
    prepared = attrs.evolve(cohort.evaluate, valid=np.zeros_like(cohort.evaluate.valid))
    with pytest.raises(DataError, match="No recording of the test patients has a frame of 2500 samples"):
        embed(loaded, attrs.evolve(cohort, evaluate=prepared), "test")


# ------------------------------------------------------------------------------------------------------------- the file


def test_the_file_has_the_names_of_every_row_and_no_pickle(tmp_path, catalogue, loaded):
    cohort = get(loaded, catalogue)
    found = embed(loaded, cohort, "all")
    save_rows(name_rows(found), {"dataset": "demo"}, tmp_path / "z.npz")
    with np.load(tmp_path / "z.npz", allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    assert held["embedding"].dtype == np.float32
    np.testing.assert_array_equal(held["embedding"], found.rows.features.embedding)
    entries = {entry.record: entry for entry in cohort.listing.entries}
    for row in range(len(found)):
        entry = entries[held["record"][row]]
        assert held["patient"][row] == entry.patient
        assert held["part"][row] == cohort.split.parts[entry.patient]
        assert held["label"][row] == cohort.task.classes[entry.label]
        assert held["channel"][row] == found.channel_name(row)
        assert held["start"][row] == found.rows.start[row]
    assert json.loads(str(held["about"])) == {"dataset": "demo"}
    assert len(set(held["patient"])) == PATIENTS


def test_rows_without_a_label_have_an_empty_one(tmp_path, catalogue, loaded):
    found = embed(loaded, get(loaded, catalogue), "test")
    bare = attrs.evolve(found.rows.features, label=np.full(len(found), -1))
    unlabelled = attrs.evolve(found, rows=attrs.evolve(found.rows, features=bare))
    save_rows(name_rows(unlabelled), {}, tmp_path / "z.npz")
    with np.load(tmp_path / "z.npz", allow_pickle=False) as file:
        assert set(file["label"]) == {""}


# --------------------------------------------------------------------------------------------------- files of one's own


def test_a_file_is_embedded_as_the_recording_of_the_data_set_is(tmp_path, catalogue, loaded):
    """The same samples by another way: rows with the same channels, starts and numbers."""
    cohort = get(loaded, catalogue)
    found = name_rows(embed(loaded, cohort, "all"))
    prepared = cohort.evaluate
    name = found.record[0]
    mine = next(n for n, (record, _) in enumerate(prepared.records) if record == name)
    frames = prepared.frames[prepared.record == mine] / prepared.gain[prepared.record == mine][:, None, None]
    np.savez(tmp_path / "mine.npz", x=np.concatenate(list(frames), axis=1), channels=list(prepared.channels), fs=500)
    show = Told()
    rows = embed_files(loaded, [tmp_path / "mine.npz"], Unsaid(), CPU, show)
    same = found.record == name
    assert (rows.channel.tolist(), rows.start.tolist()) == (
        found.channel[same].tolist(),
        found.start[same].tolist(),
    )
    np.testing.assert_allclose(rows.embedding, found.embedding[same], atol=1e-5)
    assert (set(rows.record), set(rows.patient), set(rows.part), set(rows.label)) == ({"mine"}, {"mine"}, {""}, {""})
    assert show.stages == ["embedding mine"]


def test_files_of_all_channels_at_once_have_a_row_per_frame(tmp_path, catalogue):
    write_encoder(tmp_path, plan_of(catalogue, ALL_AT_ONCE))
    loaded = load_encoder(tmp_path, catalogue, CPU)
    for name in ("a", "b"):
        signal = np.random.default_rng(0).normal(size=(4, 5000))
        np.savez(tmp_path / f"{name}.npz", x=signal, channels=["aVR", "II", "v2", "aVL"], fs=500)
    rows = embed_files(loaded, [tmp_path / "a.npz", tmp_path / "b.npz"], Unsaid(), CPU, Told())
    assert (rows.record.tolist(), set(rows.channel)) == (["a", "a", "b", "b"], {"all"})
