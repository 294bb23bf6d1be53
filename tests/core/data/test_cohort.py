"""Scan, split, prepare: what a run is given, and what it is refused."""

from pathlib import Path

import attrs
import numpy as np
import pytest

from clocs_core.contracts.offers import Dataset, NoOptions
from clocs_core.contracts.records import Entry, Framing, Listing, Record, Task
from clocs_core.data.cohort import get_cohort
from clocs_core.data.store import list_instances
from clocs_core.errors import DataError, DataNotFound, PluginError
from clocs_core.plan.data import Chosen, DataPlan
from clocs_core.settings.sections import DataSettings

TASK = Task("kind", classes=("a", "b"))
FRAMING = Framing(frame_samples=50)


@attrs.frozen
class Options:
    """short: how many samples the recording r03 has; label: every label, where it is the same for all."""

    short: int = 200
    label: int | None = None


def scan(root: Path, task: Task, options: Options) -> Listing:
    labels = [number % 2 if options.label is None else options.label for number in range(20)]
    return Listing([Entry(f"r{number:02d}", f"p{number:02d}", label) for number, label in enumerate(labels)])


def load(entry: Entry, options: Options) -> Record:
    samples = np.random.default_rng(int(entry.record[1:])).normal(size=(2, 200))
    length = options.short if entry.record == "r03" else 200
    return Record(entry.patient, entry.record, ("X", "Y"), "mV", 100.0, samples[:, :length], entry.label)


DATASET = Dataset(
    name="made",
    summary="twenty patients",
    modality="test",
    tasks=(TASK,),
    channels=("X", "Y"),
    scan=scan,
    load=load,
    options=Options,
    embedded=True,
)


def cohort(tmp_path, dataset=DATASET, options=None, pretrain=FRAMING, evaluate=FRAMING, **settings):
    asked = DataPlan(
        Chosen(dataset, options or Options()), DataSettings(data_root=str(tmp_path), **settings), dataset.tasks[0]
    )
    return get_cohort(asked, pretrain, evaluate, 1, lambda done, total: None)


def test_a_recording_too_short_for_two_frames_is_counted_and_moves_nobody_between_parts(tmp_path):
    """In the released code one short recording shifts the split, and test patients end up in the training part."""
    import torch

    whole, short = (cohort(tmp_path, options=Options(short=length)) for length in (200, 60))
    assert short.split == whole.split
    everyone = frozenset(short.split.parts)
    pairs, drops = list_instances(short.pretrain, everyone, ("X",), 2, False, torch.device("cpu"))
    assert len(pairs) == 19 * 2
    assert [(drop.record, drop.reason) for drop in drops] == [("r03", "fewer than 2 frames in a row")]
    too_short = cohort(tmp_path, options=Options(short=10))
    assert too_short.split == whole.split
    assert too_short.evaluate.drops.counts == {"shorter than a frame": 1}


def test_the_split_depends_on_neither_frame_length_nor_channels_but_on_its_seed(tmp_path):
    first = cohort(tmp_path)
    longer = Framing(frame_samples=100)
    assert cohort(tmp_path, pretrain=longer, evaluate=longer, channels=("Y",)).split == first.split
    assert cohort(tmp_path, split_seed=1).split != first.split


def test_two_framings_are_prepared_apart_and_one_once(tmp_path):
    """A data set may be read at another time scale for pairs of segments than for the evaluation."""
    same, apart = cohort(tmp_path), cohort(tmp_path, pretrain=Framing(frame_samples=50, sampling_rate=200.0))
    assert same.pretrain.folder == same.evaluate.folder == apart.evaluate.folder
    assert len(apart.pretrain.frames) == 2 * len(apart.evaluate.frames)


def test_labels_are_counted_by_frame(tmp_path):
    assert cohort(tmp_path).labelled_frames() == {"a": 40, "b": 40}


def test_one_class_only_leaves_no_score_and_says_why(tmp_path):
    """Recordings serve pre-training whatever their labels are."""
    found = cohort(tmp_path, options=Options(label=1)).listing.no_score
    assert found.startswith("all labelled recordings of 'made' have one class for 'kind' (b), so there is nothing to")
    assert cohort(tmp_path).listing.no_score == ""


def test_a_channel_that_the_recordings_lack_is_refused_with_those_they_have(tmp_path):
    with pytest.raises(DataError, match="Channel 'Z' was asked for, but the recordings of 'made' have X, Y"):
        cohort(tmp_path, channels=("Z",))


def numbered_scan(root: Path, task: Task, options: Options) -> Listing:
    return attrs.evolve(scan(root, task, options), channels=("X", "Y"), numbered=True)


def test_names_that_a_run_gave_to_numbered_channels_find_single_ones_again(tmp_path):
    """Files that only number channels cannot say which of them is the one that the run called PPG."""
    made = attrs.evolve(DATASET, channels=(), scan=numbered_scan)
    asked = DataPlan(
        Chosen(made, Options()), DataSettings(data_root=str(tmp_path), channels=("PPG",)), TASK, names=("ECG", "PPG")
    )
    found = get_cohort(asked, FRAMING, FRAMING, 1, lambda done, total: None)
    assert (found.channels, found.evaluate.channels) == (("PPG",), ("ECG", "PPG"))
    with pytest.raises(DataError, match="1 names for 2 channels of 'made': PPG"):
        get_cohort(attrs.evolve(asked, names=()), FRAMING, FRAMING, 1, lambda done, total: None)


def test_a_data_set_that_is_not_there_and_one_with_nothing_in_it(tmp_path):
    on_disk = attrs.evolve(DATASET, embedded=False, homepage="https://example.org/made")
    with pytest.raises(DataNotFound, match=r"(?s)'made' is not at .*`root=FOLDER`.*get it from https://example.org"):
        cohort(tmp_path, on_disk)
    (tmp_path / "made").mkdir()
    empty = attrs.evolve(on_disk, scan=lambda root, task, options: Listing([]), options=NoOptions)
    with pytest.raises(DataError, match="No usable recording of 'made' in"):
        cohort(tmp_path, empty, NoOptions())


def test_a_scan_that_returns_nothing_is_named(tmp_path):
    forgotten = attrs.evolve(DATASET, scan=lambda root, task, options: None)
    with pytest.raises(PluginError, match="`scan` of the dataset 'made' must return a Listing, got None"):
        cohort(tmp_path, forgotten)


@pytest.mark.parametrize("label", [2, -1, "a", True, 0.5, np.int64(1)])
def test_a_label_that_is_none_of_the_task_is_named_with_its_recording(tmp_path, label):
    with pytest.raises(PluginError, match=r"the recording 'r00' the label .* for the task 'kind': classes are int"):
        cohort(tmp_path, options=Options(label=label))


def test_a_reader_that_returns_nothing_is_told(tmp_path):
    forgotten = attrs.evolve(DATASET, load=lambda entry, options: None)
    with pytest.raises(DataError, match=r"none of 20 recordings .*its reader must return a Record, got None"):
        cohort(tmp_path, forgotten)


def test_a_split_that_comes_with_the_data_is_used_as_it_is(tmp_path):
    def with_parts(root, task, options):
        listing = scan(root, task, options)
        parts = {e.patient: ("train", "validation", "test")[n % 3] for n, e in enumerate(listing.entries)}
        return attrs.evolve(listing, parts=parts)

    found = cohort(tmp_path, attrs.evolve(DATASET, scan=with_parts))
    assert found.split.rule == "published"
    assert found.split.counts() == {"train": 7, "validation": 7, "test": 6}


def test_a_published_split_is_used_where_it_is_asked_for(tmp_path):
    def with_split(root, task, options):
        listing = scan(root, task, options)
        parts = {e.patient: ("train", "validation", "test")[n % 3] for n, e in enumerate(listing.entries)}
        return attrs.evolve(listing, published=parts)

    dataset = attrs.evolve(DATASET, scan=with_split)
    assert cohort(tmp_path, dataset).split.rule == "60/20/20"
    found = cohort(tmp_path, dataset, split="published").split
    assert (found.rule, found.counts()) == ("published", {"train": 7, "validation": 7, "test": 6})
    with pytest.raises(DataError, match=r"`split='published'` was asked for, but 'made' comes without .* Use `split="):
        cohort(tmp_path, split="published")
