"""What classifiers are trained and scored on: labelled frames, and nothing else."""

import pytest
import torch
from fake_frames import ANY_OF, PARTS, TASK, fake_cohort

from clocs_core.errors import DataError
from clocs_core.evaluation.labelled_frames import list_labelled_frames, refuse_unlabelled
from clocs_core.train.normalise import min_max

CPU = torch.device("cpu")


@pytest.mark.parametrize("task", [TASK, ANY_OF], ids=["one of", "any of"])
def test_frames_without_a_label_are_left_out_of_every_part(tmp_path, task):
    """They have nothing to teach, and nothing to be scored by."""
    whole = list_labelled_frames(fake_cohort(tmp_path, task=task), False, min_max, CPU)
    some = list_labelled_frames(fake_cohort(tmp_path, {"r0-0", "r4-1", "r5-0"}, task), False, min_max, CPU)
    # A recording gives 4 frames of 3 leads; r1-0 has one flat lead-frame.
    assert [len(part) for part in whole.parts.values()] == [4 * 24 - 1, 24, 24]
    assert [len(part) for part in some.parts.values()] == [4 * 24 - 1 - 12, 12, 12]
    assert some.counts == whole.counts == {"train": 95, "validation": 24, "test": 24}
    rows = some.rows["train"]
    names = {some.store.records[number] for number in rows.record}
    assert names == {"r0-1", "r1-0", "r1-1", "r2-0", "r2-1", "r3-0", "r3-1"}
    assert (rows.label >= 0).all()


def test_rows_say_whose_they_are_and_what_they_have(cohort):
    bench = list_labelled_frames(cohort, False, min_max, CPU)
    rows = bench.rows["train"]
    for row in range(len(rows)):
        frame = int(bench.parts["train"].frame[row, 0])
        assert rows.label[row] == int(bench.store.label[frame])
        assert rows.patient[row] == int(bench.store.patient[frame])
        name = bench.store.patients[rows.patient[row]]
        assert rows.label[row] == int(name[1:]) % 3
        assert PARTS[name] == "train"


def test_channels_together_make_one_row_of_a_frame(cohort):
    """An encoder that reads all leads needs a frame in which each of them is usable."""
    bench = list_labelled_frames(cohort, True, min_max, CPU)
    assert [len(part) for part in bench.parts.values()] == [4 * 8 - 1, 8, 8]
    assert bench.parts["test"].channel.tolist() == [[0, 1, 2]] * 8


def test_a_part_that_is_needed_and_has_no_label_is_named(tmp_path):
    """Early stopping on nothing would keep the first weights, in silence."""
    given = fake_cohort(tmp_path, {"r4-0", "r4-1"})
    frames = list_labelled_frames(given, False, min_max, CPU)
    refuse_unlabelled(frames, ("train", "test"))
    with pytest.raises(DataError, match=r"None of the 24 validation frames has a label for 'kind'; choose another"):
        refuse_unlabelled(frames, ("train", "validation", "test"))


def test_places_name_the_class_the_channel_and_the_first_sample_of_every_row(cohort):
    frames = list_labelled_frames(cohort, False, False, torch.device("cpu"))
    found = frames.places("test", cohort)
    rows = frames.rows["test"]
    assert tuple(found["classes"]) == cohort.task.classes
    assert len(found["channel"]) == len(found["start"]) == len(rows.label)
    assert set(found["channel"]) <= set(cohort.channels)
    frame = frames.parts["test"].frame[:, 0].numpy()
    assert (found["start"] == cohort.evaluate.start[frame]).all()
    assert found["start"].max() > 0
    together = list_labelled_frames(cohort, True, False, torch.device("cpu")).places("test", cohort)
    assert set(together["channel"]) == {"all"}
