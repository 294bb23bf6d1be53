"""The store: which frames make an instance, and what a batch holds."""

import warnings
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from fake_frames import FOUR_FRAMES, FRAME, TASK, fake_prepared, fake_store
from fake_recordings import CHANNELS, FakeOptions, fake_entries, fake_load, load_counts

from clocs_core.contracts.records import Entry, Episode, Task
from clocs_core.data import store as store_module
from clocs_core.data.store import fill_store, list_instances

CPU = torch.device("cpu")
EVERYONE = frozenset(f"p{number}" for number in range(6))


def expected_instances(segments, channels, together):
    """Every instance as (record, first frame, channels), in plain loops over the recordings."""
    found = []
    for entry in fake_entries():
        for first in range(0, 4 - segments + 1, segments):
            frames = range(first, first + segments)
            bad = {"L1"} if entry.record == "r1-0" and 0 in frames else set()
            if together:
                if not bad & set(channels):
                    found.append((entry.record, first, tuple(channels)))
            else:
                found += [(entry.record, first, (name,)) for name in channels if name not in bad]
    return found


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("channels", [CHANNELS, ("L2", "L1"), ("L0",)])
def test_instances_and_their_samples_are_those_of_a_plain_loop(prepared, segments, together, channels):
    """One file serves methods that need one or several segments, one or all leads: the index makes the difference."""
    store = fake_store(prepared, channels)
    instances, drops = list_instances(prepared, EVERYONE, channels, segments, together, CPU)
    batch = store.gather(instances, torch.arange(len(instances)))
    found = []
    for row in range(len(instances)):
        record = store.records[batch.record[row]]
        first = int(batch.segment[row])
        names = channels if together else (channels[batch.channel[row]],)
        found.append((record, first, tuple(names)))
        entry = next(one for one in fake_entries() if one.record == record)
        samples = fake_load(entry, FOUR_FRAMES).samples.astype(np.float32)
        for segment in range(segments):
            start = (first + segment) * FRAME
            for column, name in enumerate(names):
                np.testing.assert_array_equal(
                    batch.signal[row, segment, column], samples[CHANNELS.index(name), start : start + FRAME]
                )
        assert store.patients[batch.patient[row]] == entry.patient
        assert batch.label[row] == entry.label
    assert found == expected_instances(segments, channels, together)
    assert drops == ()


def test_only_the_patients_asked_for_are_listed(prepared):
    """A part of the split sees its own patients, whatever else is in the file."""
    instances, _ = list_instances(prepared, frozenset({"p2"}), CHANNELS, 2, False, CPU)
    batch = fake_store(prepared).gather(instances, torch.arange(len(instances)))
    assert {fake_store(prepared).patients[number] for number in batch.patient} == {"p2"}


def test_a_recording_too_short_for_the_segments_is_a_named_drop(prepared):
    """A method that needs five frames in a row gets none here, and the user is told which recordings went."""
    instances, drops = list_instances(prepared, frozenset({"p0"}), CHANNELS, 5, False, CPU)
    assert len(instances) == 0
    assert [(drop.reason, drop.record) for drop in drops] == [
        ("fewer than 5 frames in a row", "r0-0"),
        ("fewer than 5 frames in a row", "r0-1"),
    ]


def test_a_set_of_classes_becomes_a_row_of_zeros_and_ones_and_no_label_a_row_of_nan(prepared):
    """Any-of tasks keep every label of a recording."""
    task = Task("finding", classes=("a", "b", "c"), kind="any_of")
    labels = {entry.record: frozenset({0, 2}) for entry in fake_entries()} | {"r0-0": None}
    store = fill_store(prepared, labels, task, CHANNELS, CPU)
    assert store.label[0].isnan().all()
    assert store.label[4].tolist() == [1.0, 0.0, 1.0]


def test_a_frame_has_the_label_of_the_episode_that_holds_its_first_sample(prepared):
    """Labels per frame, none where no episode reaches."""
    episodes = (Episode(0, 60, 1), Episode(100, 149, 2))
    labels = {entry.record: episodes for entry in fake_entries()}
    store = fill_store(prepared, labels, TASK, CHANNELS, CPU)
    assert store.label[:4].tolist() == [1, 1, 2, -1]


def test_a_frame_that_was_looked_at_and_holds_no_class_is_a_row_of_zeros(prepared):
    """Overlapping episodes are united; a frame outside all episodes has no label."""
    task = Task("events", classes=("a", "b", "c"), kind="any_of", per="frame")
    episodes = (Episode(0, 60, 0), Episode(40, 60, frozenset({2})), Episode(100, 149, frozenset()))
    store = fill_store(prepared, {entry.record: episodes for entry in fake_entries()}, task, CHANNELS, CPU)
    assert store.label[:3].tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert store.label[3].isnan().all()


def test_integers_are_divided_by_their_gain_when_a_batch_is_gathered(tmp_path):
    """On the device, so that half the bytes travel."""
    entries = [*fake_entries(4), Entry("Coarse1", "q", 0)]
    options = FakeOptions(samples=2 * FRAME, channels=3)
    counted = fake_prepared(tmp_path, entries, options, load_counts)
    store = fill_store(counted, {entry.record: entry.label for entry in entries}, TASK, ("L1",), CPU)
    everyone = frozenset(entry.patient for entry in entries)
    instances, _ = list_instances(counted, everyone, ("L1",), 2, False, CPU)
    batch = store.gather(instances, torch.arange(len(instances)))
    assert batch.signal.dtype == torch.float32
    for row, entry in enumerate(entries):
        expected = load_counts(entry, options).physical()[1].astype(np.float32)
        np.testing.assert_array_equal(batch.signal[row, :, 0].flatten(), expected)


def test_each_segment_is_divided_by_its_own_gain(prepared):
    """A recorder may change its gain within a recording; that of the first segment is not that of the second."""
    counts = np.arange(prepared.frames.size, dtype=np.int16).reshape(prepared.frames.shape)
    gain = 1.0 + np.arange(len(counts))
    store = fake_store(attrs.evolve(prepared, frames=counts, gain=gain), CHANNELS)
    instances, _ = list_instances(prepared, EVERYONE, CHANNELS, 2, True, CPU)
    signal = store.gather(instances, torch.arange(len(instances))).signal  # (batch, segment, channel, sample)
    for row, frames in enumerate(instances.frame.tolist()):
        for segment, frame in enumerate(frames):
            expected = counts[frame].astype(np.float32) / np.float32(gain[frame])
            np.testing.assert_allclose(signal[row, segment].numpy(), expected, rtol=1e-6)


def test_all_stores_of_a_set_on_a_cpu_share_one_map_that_is_written_to_by_none(prepared):
    """A map of its own for each counted every frame again: a run held 2.2 times the size of its frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of arrays that cannot be written to
        stores = [fake_store(prepared, CHANNELS) for _ in range(2)]
    assert {store.signal.data_ptr() for store in stores} == {prepared.frames.ctypes.data}
    assert not prepared.frames.flags.writeable


@pytest.mark.parametrize("columns", [[1, 0], [0, 1], [1]])
@pytest.mark.parametrize("at_once", [1, 1000, 1 << 28])
def test_frames_travel_to_a_device_in_pieces(prepared, monkeypatch, at_once, columns):
    """So that the host never holds a second copy of them."""
    monkeypatch.setattr(store_module, "_AT_ONCE", at_once)
    mapped, column = torch.tensor(prepared.frames), torch.tensor(columns)
    out = torch.empty(len(mapped), len(columns), mapped.shape[2])
    assert store_module._copy(prepared, mapped, column, out) is out
    assert torch.equal(out, mapped[:, column])


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells how much of a map is in memory")
def test_frames_that_are_let_go_take_no_memory_until_they_are_read_again(prepared):
    def in_memory():
        text = Path("/proc/self/smaps").read_text().partition(str(prepared.frames_file))[2]
        return int(text.partition("Rss:")[2].split()[0])

    before = prepared.frames.copy()
    assert in_memory() > 0
    prepared.let_go()
    assert in_memory() == 0
    np.testing.assert_array_equal(prepared.frames, before)


@pytest.mark.parametrize("bad", [0, 1])
def test_a_lead_that_is_missing_in_any_segment_makes_no_instance(prepared, bad):
    """Not only in the first one."""
    valid = np.ones_like(prepared.valid)
    valid[bad, 1] = False
    one = attrs.evolve(prepared, valid=valid)
    alone, _ = list_instances(one, EVERYONE, CHANNELS, 2, False, CPU)
    first_frames = alone.channel[alone.frame[:, 0] == 0].flatten().tolist()
    assert first_frames == [0, 2]
    together, _ = list_instances(one, EVERYONE, CHANNELS, 2, True, CPU)
    assert together.frame[0].tolist() == [2, 3]


def test_a_batch_has_the_columns_of_its_records(prepared):
    """By the record of each instance, on the device; without columns there are none."""
    age = np.arange(len(prepared.records), dtype=np.float32)
    labels = {entry.record: entry.label for entry in fake_entries()}
    store = fill_store(prepared, labels, TASK, CHANNELS, CPU, {"age": age})
    instances, _ = list_instances(prepared, EVERYONE, CHANNELS, 2, False, CPU)
    rows = torch.tensor([5, 0, 17, 40])
    batch = store.gather(instances, rows)
    assert torch.equal(batch.about["age"], batch.record.float())
    assert len(set(batch.record.tolist())) > 1
    assert fake_store(prepared).gather(instances, rows).about == {}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("segments", [1, 2])
def test_instances_of_two_recordings_are_those_of_a_plain_loop(prepared, together, segments):
    """The same frames and channels of both visits of a patient; one instance of the two, not one for each order."""
    store = fake_store(prepared)
    instances, drops = list_instances(prepared, EVERYONE, CHANNELS, segments, together, CPU, recordings=2)
    batch = store.gather(instances, torch.arange(len(instances)))
    expected = []
    for patient in range(6):
        for first in range(0, 4, segments):
            flat = patient == 1 and first == 0  # channel L1 of the first visit
            if together:
                expected += [] if flat else [(f"p{patient}", first, CHANNELS)]
            else:
                expected += [(f"p{patient}", first, (name,)) for name in CHANNELS if not (flat and name == "L1")]
    found = []
    for row in range(len(instances)):
        names = CHANNELS if together else (CHANNELS[batch.channel[row]],)
        patient, first = store.patients[batch.patient[row]], int(batch.segment[row])
        found.append((patient, first, tuple(names)))
        for visit in range(2):
            entry = next(one for one in fake_entries() if one.record == f"r{patient[1:]}-{visit}")
            samples = fake_load(entry, FOUR_FRAMES).samples.astype(np.float32)
            for segment in range(segments):
                start = (first + segment) * FRAME
                wanted = samples[[CHANNELS.index(name) for name in names], start : start + FRAME]
                np.testing.assert_array_equal(batch.signal[row, visit * segments + segment], wanted)
    assert found == expected
    assert drops == ()


def test_of_three_recordings_each_is_joined_with_the_next(tmp_path):
    """In a circle, so that all serve equally often; a patient with one recording is told as a drop."""
    entries = [*fake_entries(3, visits=3), Entry("r9-0", "p9", 0)]
    prepared = fake_prepared(tmp_path, entries, FakeOptions(samples=FRAME, channels=3))
    everyone = frozenset({"p0", "p9"})
    instances, drops = list_instances(prepared, everyone, CHANNELS, 1, True, CPU, recordings=2)
    assert prepared.record[instances.frame.numpy()].tolist() == [[0, 1], [1, 2], [2, 0]]
    assert [(drop.record, drop.reason) for drop in drops] == [
        ("r9-0", "its patient has fewer than 2 recordings with them")
    ]
    none, _ = list_instances(prepared, frozenset({"p9"}), CHANNELS, 1, True, CPU, recordings=2)
    assert len(none) == 0


def test_stores_of_a_set_on_a_device_share_its_frames_while_one_of_them_is_there(prepared, monkeypatch):
    """Several seeds in one process, and the training and the evaluation of one, need one copy on the GPU."""
    moved, device = [], torch.device("meta")

    def move(_prepared, mapped, column, where):
        moved.append(len(column))
        return torch.empty((len(mapped), len(column), mapped.shape[2]), device=where)

    monkeypatch.setattr(store_module, "_move", move)
    labels = {entry.record: entry.label for entry in fake_entries()}
    first, second, fewer = (fill_store(prepared, labels, TASK, some, device) for some in (CHANNELS, CHANNELS, ("L0",)))
    assert first.signal is second.signal
    assert fewer.signal is not first.signal
    assert moved == [len(CHANNELS), 1]
    del first, second
    with store_module.keeping_frames():
        for _ in range(2):  # the first is gone when the second is filled
            fill_store(prepared, labels, TASK, CHANNELS, device)
    assert moved == [len(CHANNELS), 1, len(CHANNELS)]
    fill_store(prepared, labels, TASK, CHANNELS, device)
    assert moved == [len(CHANNELS), 1, len(CHANNELS), len(CHANNELS)]


@pytest.mark.parametrize(("gpus", "pinned"), [(1, True), (4, False)])
def test_frames_that_fit_no_device_are_pinned_or_stay_in_the_map_that_processes_share(
    prepared, monkeypatch, gpus, pinned
):
    """A process per GPU, each with a copy of all frames, would take more memory than the machine has."""
    device, empty, asked = torch.device("meta"), torch.empty, []

    def pin(*shape, pin_memory=False, **more):  # a CPU alone pins nothing
        asked.extend([True] * pin_memory)
        return empty(*shape, **more)

    monkeypatch.setattr(torch, "empty", pin)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (0, 0))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(store_module, "physical_memory", lambda: 4.0 * prepared.frames.nbytes)
    signal, column = store_module._signal(prepared, CHANNELS[::-1], device)
    assert signal.device.type == "cpu"
    assert asked == ([True] if pinned else [])
    assert (signal.data_ptr() == prepared.frames.ctypes.data) == (not pinned)
    if pinned:
        assert torch.equal(signal, torch.tensor(prepared.frames).flip(1))
    assert column.device.type == "meta"
    assert column.shape == (len(CHANNELS),)
