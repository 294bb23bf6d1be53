"""metrics.jsonl: a line has the numbers of its epoch, reads back exactly, and may be torn only at the end."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.artifacts.metrics import EpochRow, from_line, read_rows, row_of, to_line
from clocs_core.contracts.events import EpochDone, Health
from clocs_core.errors import RunFolderError

FLOATS = st.floats(allow_nan=False, allow_infinity=True)
ROW = EpochRow(
    epoch=3,
    train_loss=0.1 + 0.2,
    validation_loss=1 / 3,
    effective_rank=7.5,
    same_patient=0.9,
    other_patient=0.25,
    margin=0.65,
    loss_over_log_batch=0.5,
    improved=True,
    seconds=2.25,
    instances=1000,
)


def test_a_row_has_the_numbers_of_its_epoch():
    """metrics.jsonl is what the curves are drawn from; the losses on the device are not touched."""
    health = Health(
        effective_rank=7.5, embedding_dim=16, same_patient=0.75, other_patient=0.25, loss_over_log_batch=0.5
    )
    done = EpochDone(
        epoch=4,
        losses=None,
        train_loss=1.5,
        validation_loss=2.5,
        health=health,
        improved=False,
        best_epoch=3,
        instances=99,
        seconds=0.125,
        last=True,
    )
    assert attrs.asdict(row_of(done)) == {
        "epoch": 4,
        "train_loss": 1.5,
        "validation_loss": 2.5,
        "effective_rank": 7.5,
        "same_patient": 0.75,
        "other_patient": 0.25,
        "margin": 0.5,
        "loss_over_log_batch": 0.5,
        "improved": False,
        "seconds": 0.125,
        "instances": 99,
        "components": {},
    }


def test_components_of_the_loss_are_in_the_line_where_there_are_any():
    """Lines of objectives that name none are as they were, and so are those of earlier versions."""
    row = attrs.evolve(ROW, components={"pull": 0.5, "push": float("inf")})
    assert from_line(to_line(row)) == row
    assert '"components"' not in to_line(ROW)
    assert list(row.cells())[-3:] == ["instances", "components.pull", "components.push"]
    assert row.cells()["components.pull"] == 0.5


@given(train=FLOATS, margin=FLOATS)
def test_a_line_reads_back_exactly(train, margin):
    """A resumed run and one that was not interrupted leave the same file."""
    row = attrs.evolve(ROW, train_loss=train, margin=margin)
    line = to_line(row)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert from_line(line) == row


def test_a_torn_last_line_is_ignored_wherever_it_is_torn():
    """A process can be killed in the middle of a write; the epochs before it are still good."""
    first, second = to_line(ROW), to_line(attrs.evolve(ROW, epoch=4))
    for cut in range(len(second)):
        rows = read_rows(first + second[:cut])
        complete = cut == len(second) - 1  # only the newline is missing
        assert [row.epoch for row in rows] == ([3, 4] if complete else [3])
    assert read_rows("") == ()


def test_a_broken_line_in_the_middle_is_not_ignored():
    """Only the last line can be torn by a kill; anything else is damage that a user should know of."""
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl is not JSON"):
        read_rows(to_line(ROW)[:20] + "\n" + to_line(ROW))


def test_a_loss_that_changed_on_the_disk_is_noticed():
    line = to_line(ROW)
    with pytest.raises(RunFolderError, match="damaged"):
        from_line(line.replace('"epoch": ', '"epoch": 1'))
