"""The leak audit finds what shares no name."""

import attrs
import numpy as np
import pytest
import torch
from fake_frames import fake_prepared
from fake_recordings import FakeOptions, fake_entries, fake_load

from clocs_core.artifacts.split import Split
from clocs_core.contracts.records import Entry
from clocs_core.data import audit as module
from clocs_core.data.audit import audit, certified_audit
from clocs_core.data.splits import split_patients


def load_with_copies(entry: Entry, options: FakeOptions):
    """ "copy-r0-0" is r0-0 published again at another gain and offset, "noisy-r0-0" with a little noise on it.

    "alike-r0-0" has so much noise on it that the correlation is 0.98.
    "huge-r0-0" and "faint-r0-0" are r0-0 in other units, such as a reader with a wrong gain makes them.
    """
    kind, _, original = entry.record.partition("-")
    if kind not in ("copy", "noisy", "alike", "huge", "faint"):
        return fake_load(entry, options)
    record = fake_load(attrs.evolve(entry, record=original), options)
    if kind in ("huge", "faint"):
        scale = 1e30 if kind == "huge" else 1e-25
        return attrs.evolve(record, record=entry.record, samples=(scale * record.samples).astype(np.float32))
    strength = {"noisy": 0.01, "alike": 0.2}.get(kind, 0.0) * 2 * record.samples.std()
    noise = strength * np.random.default_rng(0).normal(size=record.samples.shape)
    return attrs.evolve(record, record=entry.record, samples=(2 * record.samples + 5 + noise).astype(np.float32))


def prepared_with_copies(folder, entries):
    return fake_prepared(folder, entries, load=load_with_copies)


def parts_of(entries, **special):
    patients = sorted({entry.patient for entry in entries})
    everyone = {patient: ("train", "validation", "test")[number % 3] for number, patient in enumerate(patients)}
    return Split({**everyone, **special}, 0, "60/20/20")


def test_recordings_of_different_patients_are_no_twins(tmp_path):
    entries = fake_entries()
    found = audit(
        prepared_with_copies(tmp_path, entries),
        split_patients({e.patient for e in entries}, 0, "60/20/20"),
    )
    assert (found.shared_patients, found.twins) == (0, ())
    assert found.frames == 48
    assert found.sentence().startswith("0 patients shared, 0 duplicate signals")


@pytest.mark.parametrize("kind", ["copy", "noisy", "huge", "faint"])
def test_a_recording_published_twice_under_two_patients_is_found_across_parts(tmp_path, kind):
    """Another gain and offset, a trace of noise, or a scale beyond the squares of float32, do not hide it."""
    entries = [*fake_entries(), Entry(f"{kind}-r0-0", "someone else", 0)]
    split = parts_of(entries, p0="train", **{"someone else": "test"})
    (twin,) = audit(prepared_with_copies(tmp_path, entries), split).twins
    assert {twin.record, twin.other} == {"r0-0", f"{kind}-r0-0"}
    assert {twin.part, twin.other_part} == {"train", "test"}
    assert twin.correlation > 0.9995


def test_recordings_that_are_only_alike_are_no_twins(tmp_path):
    """Beats of two people may look alike. A false twin would put "scores may be too good" on a report."""
    entries = [*fake_entries(), Entry("alike-r0-0", "someone else", 0)]
    prepared = prepared_with_copies(tmp_path, entries)
    number = {record: place for place, (record, _) in enumerate(prepared.records)}
    original, alike = (prepared.frames[prepared.record == number[name]] for name in ("r0-0", "alike-r0-0"))
    assert 0.95 < np.corrcoef(original[0, 0], alike[0, 0])[0, 1] < 0.99
    assert audit(prepared, parts_of(entries, p0="train", **{"someone else": "test"})).twins == ()


def test_a_copy_within_one_part_is_no_leak(tmp_path):
    entries = [*fake_entries(), Entry("copy-r0-0", "someone else", 0)]
    split = parts_of(entries, p0="train", **{"someone else": "train"})
    assert audit(prepared_with_copies(tmp_path, entries), split).twins == ()


def test_tiles_do_not_hide_a_pair(tmp_path, monkeypatch):
    """The same answer whatever the tile: pairs within a tile, across tiles, at the ragged end."""
    entries = [*fake_entries(), Entry("copy-r0-0", "someone else", 0)]
    split = parts_of(entries, p0="train", **{"someone else": "test"})
    prepared = prepared_with_copies(tmp_path, entries)
    whole = audit(prepared, split)
    for tile in (1, 7, 49):
        monkeypatch.setattr("clocs_core.data.audit.TILE", tile)
        assert audit(prepared, split) == whole


def test_the_audit_is_kept_beside_the_frames_and_made_again_where_that_file_was_damaged(tmp_path, monkeypatch):
    """A digit that flips in it would say that no patient is shared, or that one is."""
    entries = fake_entries()
    prepared, split = prepared_with_copies(tmp_path, entries), parts_of(entries, p0="train")
    first = certified_audit(prepared, split)
    (kept,) = prepared.folder.glob("certificate-*.json")
    whole = kept.read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(module, "audit", lambda *_: pytest.fail("it was kept"))
        assert certified_audit(prepared, split) == first
    for damaged in (whole.replace('"shared_patients": 0', '"shared_patients": 1'), whole[:40], "[" * 100_000):
        kept.write_text(damaged, encoding="utf-8")
        assert certified_audit(prepared, split) == first
        assert kept.read_text(encoding="utf-8") == whole


def test_a_certificate_that_a_killed_process_was_writing_is_swept_though_another_finished_it(tmp_path):
    """Two processes that train together write it both; one may be killed while the other ends well."""
    entries = fake_entries()
    prepared, split = prepared_with_copies(tmp_path, entries), parts_of(entries, p0="train")
    certified_audit(prepared, split)
    (kept,) = prepared.folder.glob("certificate-*.json")
    left = kept.with_name(f".{kept.name}.999999999.tmp")  # no process has this number
    left.touch()
    certified_audit(prepared, split)
    assert not left.exists()


@pytest.mark.parametrize("tile", [7, 4096])
def test_a_device_proposes_the_pairs_of_the_cpu(monkeypatch, tile):
    """Whole tiles and ragged ones; the CPU decides in float64 which of them agree."""
    monkeypatch.setattr(module, "TILE", tile)
    rng = np.random.default_rng(0)
    sketches = rng.normal(size=(40, 64)) + 5 * rng.normal(size=(4, 64))[rng.integers(0, 4, 40)]
    sketches = (sketches / np.linalg.norm(sketches, axis=1, keepdims=True)).astype(np.float32)
    part = rng.integers(0, 3, 40).astype(np.int8)
    cosines = {
        (i, k): float(sketches[i].astype(float) @ sketches[k].astype(float))
        for i in range(40)
        for k in range(i + 1, 40)
        if part[i] != part[k]
    }
    like = sorted(cosines.values())[-50] + 5e-5  # a pair lies just below, and is proposed
    monkeypatch.setattr(module, "LIKE", like)
    expected = {pair for pair, cosine in cosines.items() if cosine > like}
    on_cpu = module.proposing_on(torch.device("cpu"), sketches, part)
    assert len(expected) > 10
    assert set(module._alike(sketches, part, None)) == expected
    with monkeypatch.context() as patch:
        patch.setattr(module, "proposing_on", lambda *_: on_cpu)
        assert set(module._alike(sketches, part, torch.device("cuda"))) == expected


@pytest.mark.cuda
@pytest.mark.parametrize("kind", ["copy", "noisy", "huge", "faint"])
def test_a_gpu_finds_the_same_copies(tmp_path, kind):
    entries = [*fake_entries(), Entry(f"{kind}-r0-0", "someone else", 0)]
    split = parts_of(entries, p0="train", **{"someone else": "test"})
    prepared = prepared_with_copies(tmp_path, entries)
    assert audit(prepared, split, torch.device("cuda")) == audit(prepared, split)
