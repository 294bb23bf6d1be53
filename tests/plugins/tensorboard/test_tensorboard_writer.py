"""What TensorBoard itself reads back of the files that the plugin writes."""

import math
from pathlib import Path

import attrs
import numpy as np
import pluggy
import pytest
from fake_events import PNG, epoch_done, run_at, run_done
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

import clocs_plugins.tensorboard as plugin
from clocs_core import EmbeddingMap, RunDone
from clocs_core.contracts import hookspecs
from clocs_plugins.tensorboard.projector import PROJECTED, write_projector
from clocs_plugins.tensorboard.writer import add_epoch, add_results, begin


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    return found.Reload()


def curve(folder: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder).Scalars(tag)]


def text(folder: Path, tag: str) -> str:
    (event,) = read(folder).Tensors(tag)
    return event.tensor_proto.string_val[0].decode()


def test_each_epoch_is_a_point_of_every_curve(tmp_path):
    """A user who opens TensorBoard during a run sees all finished epochs."""
    run = run_at(tmp_path)
    begin(run, 10.0)
    add_epoch(run, epoch_done(1, 4.0, [5.0, 3.0]), 11.0)
    add_epoch(run, epoch_done(2, 2.0, [2.5, 1.5]), 12.5)
    assert curve(tmp_path, "loss/train") == [(1, 4.0), (2, 2.0)]
    assert curve(tmp_path, "loss/validation") == [(1, 5.0), (2, 3.0)]
    expected = {"effective_rank": 7.5, "same_patient": 0.75, "other_patient": 0.25, "margin": 0.5}
    for name, value in {**expected, "loss_over_log_batch": 0.5}.items():
        assert curve(tmp_path, f"health/{name}") == [(1, value), (2, value)]
    assert [event.wall_time for event in read(tmp_path).Scalars("loss/train")] == [11.0, 12.5]


def test_step_losses_count_steps_over_all_epochs(tmp_path):
    """The loss of a step is on the axis of the optimiser, from 1."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    add_epoch(run, epoch_done(1, 4.0, [5.0, 3.0]), 0.0)
    add_epoch(run, epoch_done(2, 2.0, [2.5, 1.5]), 0.0)
    assert curve(tmp_path / "steps", "loss/step") == [(1, 5.0), (2, 3.0), (3, 2.5), (4, 1.5)]


def test_a_resumed_run_goes_on_after_a_torn_record(tmp_path):
    """A killed process leaves half a record; what a resumed run writes must not be hidden behind it."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    for number in (1, 2):
        add_epoch(run, epoch_done(number, float(number), [float(number)] * 3), 0.0)
    for folder in (tmp_path, tmp_path / "steps"):
        (file,) = folder.glob("events*")
        file.write_bytes(file.read_bytes()[:-5])  # epoch 2 is torn, in both files
    resumed = run_at(tmp_path, first_epoch=2)
    begin(resumed, 0.0)
    for number in (2, 3):
        add_epoch(resumed, epoch_done(number, 10.0 * number, [10.0 * number] * 3), 0.0)
    assert curve(tmp_path, "loss/train") == [(1, 1.0), (2, 20.0), (3, 30.0)]
    steps = curve(tmp_path / "steps", "loss/step")
    assert steps == [(s, 1.0) for s in (1, 2, 3)] + [(s, 20.0) for s in (4, 5, 6)] + [(s, 30.0) for s in (7, 8, 9)]


def test_epochs_that_a_resumed_run_repeats_replace_the_old_ones(tmp_path):
    """A run that fell back to an older checkpoint trains some epochs again; a curve has one value per epoch."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    for number in (1, 2, 3):
        add_epoch(run, epoch_done(number, float(number), [0.0]), 0.0)
    resumed = run_at(tmp_path, first_epoch=2)
    begin(resumed, 0.0)
    add_epoch(resumed, epoch_done(2, 20.0, [0.5]), 0.0)
    assert curve(tmp_path, "loss/train") == [(1, 1.0), (2, 20.0)]
    assert curve(tmp_path / "steps", "loss/step") == [(1, 0.0), (2, 0.5)]


def test_files_sort_in_the_order_in_which_they_were_begun(tmp_path):
    """TensorBoard reads the files of a run in the order of their names, ten restarts later too."""
    for _ in range(11):
        begin(run_at(tmp_path), 0.0)
    begin(run_at(tmp_path, first_epoch=12), 0.0)
    names = sorted(file.name for file in tmp_path.glob("events*"))
    assert names[0] == "events.out.tfevents.0000000001.0001.clocs"
    assert names[10:] == ["events.out.tfevents.0000000001.0011.clocs", "events.out.tfevents.0000000012.0012.clocs"]


def test_an_epoch_finds_a_file_even_where_somebody_deleted_it(tmp_path):
    """Cleaning up event files during a run must not stop the training."""
    add_epoch(run_at(tmp_path), epoch_done(1, 4.0, [4.0]), 0.0)
    assert curve(tmp_path, "loss/train") == [(1, 4.0)]


def test_a_loss_that_is_not_a_number_is_shown_as_such(tmp_path):
    """A validation part without an instance has no loss; the run goes on."""
    add_epoch(run_at(tmp_path), epoch_done(1, math.nan, []), 0.0)
    ((step, value),) = curve(tmp_path, "loss/train")
    assert step == 1
    assert math.isnan(value)


def test_settings_are_a_text_card_with_escaped_cells(tmp_path):
    """A value with a pipe in it would break the table."""
    begin(run_at(tmp_path), 0.0)
    card = text(tmp_path, "settings")
    assert "**m** on **d**" in card
    assert "| train.epochs | `3` |" in card
    assert "| loss.name | `a\\|b` |" in card


def test_scores_are_scalars_and_a_table(tmp_path):
    """Scalars can be compared over runs; the table has the intervals. Label fractions must not share a curve."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    add_results(run, run_done(), 0.0)
    assert curve(tmp_path, "final/linear/auroc/frame") == [(2, 0.75)]
    assert curve(tmp_path, "scores_of_controls/linear/random/auroc/frame") == [(2, 0.5)]
    assert curve(tmp_path, "scores_of_controls/prior/auroc/frame") == [(2, 0.5)]
    assert curve(tmp_path, "gain_over_random/linear/auroc/frame") == [(2, 0.25)]
    assert curve(tmp_path, "final/linear/auroc/frame/labels_0.1") == [(2, 0.25)]
    assert "| linear | m | 1 | auroc | frame | 0.750 | 0.625 to 0.875 |" in text(tmp_path, "scores")


def test_results_that_are_told_twice_are_there_once(tmp_path):
    """A run that is killed at its end tells of it again; half a record of before must not hide what comes then."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    add_epoch(run, epoch_done(2, 4.0, [4.0]), 0.0)
    (file,) = tmp_path.glob("events*")
    add_results(run, run_done(), 0.0)
    file.write_bytes(file.read_bytes()[:-5])
    add_results(run, run_done(value=0.875), 0.0)
    assert curve(tmp_path, "final/linear/auroc/frame") == [(2, 0.875)]
    assert len(read(tmp_path).Images("report/loss")) == 1
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_pictures_arrive_byte_for_byte(tmp_path):
    """What TensorBoard shows is the picture of the report, not a copy drawn anew."""
    run = run_at(tmp_path)
    begin(run, 0.0)
    add_results(run, run_done(), 0.0)
    (image,) = read(tmp_path).Images("report/loss")
    assert image.encoded_image_string == PNG
    assert (image.width, image.height, image.step) == (3, 2, 2)


def test_the_projector_finds_one_row_of_metadata_per_embedding(tmp_path):
    """A tab or a line break inside a patient's name would shift every row below it."""
    run = run_at(tmp_path)
    add_results(run, run_done(), 0.0)
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    (entry,) = config.embeddings
    lines = (tmp_path / entry.metadata_path).read_text().split("\n")
    assert lines == ["label\tpatient\trecord", "AF\tp 0\tr 0", "AF\tp 1\tr 1", "AF\tp 2\tr 2", ""]
    rows = [line.split("\t") for line in (tmp_path / entry.tensor_path).read_text().splitlines()]
    assert [[float(value) for value in row] for row in rows] == [
        [pytest.approx((2 * row + column) / 3, abs=1e-6) for column in range(2)] for row in range(3)
    ]


@pytest.mark.parametrize(
    ("name", "cell"),
    [("=1+1", "'=1+1"), ("+x", "'+x"), ("-x", "'-x"), ("@x", "'@x"), ("-5", "-5"), ("+2.5", "+2.5"), ("p-1", "p-1")],
)
def test_a_spreadsheet_computes_no_name_of_the_projector(tmp_path, name, cell):
    done = run_done()
    embeddings = attrs.evolve(done.embeddings, patient=(name,) * len(done.embeddings.patient))
    write_projector(tmp_path, embeddings)
    lines = (tmp_path / "projector" / "metadata.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == [cell] * len(embeddings.patient)


def test_the_projector_gets_a_bounded_number_of_points(tmp_path):
    """A test part of a hundred thousand frames would freeze the browser."""
    add_results(run_at(tmp_path), run_done(PROJECTED + 7), 0.0)
    for name, extra in (("embeddings", 0), ("metadata", 1)):
        assert len((tmp_path / "projector" / f"{name}.tsv").read_text().splitlines()) == PROJECTED + extra


def test_a_run_without_scores_or_embeddings_is_still_written(tmp_path):
    """Unlabelled data end in a report without scores."""
    empty = EmbeddingMap(np.zeros((0, 4), dtype=np.float32), (), (), ())
    add_results(run_at(tmp_path), RunDone(1, 1, (), (), empty, ()), 0.0)
    assert not (tmp_path / "projector").exists()
    assert read(tmp_path).Tags()["scalars"] == []


def test_the_hooks_write_a_whole_run(tmp_path):
    """The module that the entry point names leads to the writer, for each of the three events."""
    host = pluggy.PluginManager(hookspecs.PROJECT)
    host.add_hookspecs(hookspecs)
    host.register(plugin)
    host.check_pending()
    run = run_at(tmp_path)
    host.hook.clocs_run_started(run=run)
    host.hook.clocs_epoch_done(run=run, epoch=epoch_done(1, 4.0, [4.0]))
    host.hook.clocs_run_done(run=run, done=run_done())
    found = read(tmp_path)
    assert found.Scalars("loss/train")[0].wall_time > 1.7e9  # a clock, not 0
    assert found.Tags()["images"] == ["report/loss"]
    assert {"settings", "scores"} <= set(found.Tags()["tensors"])


def test_components_of_the_loss_are_curves_of_their_own(tmp_path):
    run = run_at(tmp_path)
    begin(run, 10.0)
    add_epoch(run, epoch_done(1, 4.0, [5.0], components={"pull": 0.5, "push": 3.5}), 11.0)
    assert curve(tmp_path, "components/pull") == [(1, 0.5)]
    assert curve(tmp_path, "components/push") == [(1, 3.5)]
