"""What is done is read from the folders of a grid; a note beside each says what the folder cannot."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
from grid_folders import write_evaluation, write_run

from clocs_core.errors import RunFolderError
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.executor import Job, Outcome
from clocs_core.grids.jobs import Place, evaluation_job, pretraining_job
from clocs_core.grids.notes import Stamp, begin_note, end_note, note_path, read_note, read_notes
from clocs_core.grids.results import Results

RUN = Pretraining(method="cmsc", dataset="demo", leads="II,V2", options=("perturbations=gaussian,sa_t",))
CELL = GridCell(pretraining=RUN, downstream="demo", protocol="linear", label_fraction=0.5)
STAMP = Stamp("abc", lambda: datetime(2026, 3, 1, tzinfo=UTC), "this call")


def at(*shares: float) -> list[GridCell]:
    return [attrs.evolve(CELL, label_fraction=share) for share in shares]


# -------------------------------------------------------------------------------------------------------------- results


def test_a_cell_is_found_by_its_settings_and_its_share_of_labels(tmp_path: Path) -> None:
    """One folder holds several F of one evaluation; an F that is not in it is missing."""
    write_evaluation(tmp_path, at(0.5, 1.0))
    results = Results(tmp_path)
    assert all(map(results.is_done, at(0.5, 1.0)))
    others = (
        attrs.evolve(CELL, label_fraction=0.25),
        attrs.evolve(CELL, part="validation"),
        attrs.evolve(CELL, protocol="finetune"),
        attrs.evolve(CELL, options=("resamples=3",)),
        attrs.evolve(CELL, pretraining=attrs.evolve(RUN, seed=1)),
    )
    assert not any(map(results.is_done, others))
    assert [results.cell(one) for one in others] == [None] * len(others)
    assert not results.is_trained(RUN)
    assert results.pretraining(RUN) is None


def test_the_folders_are_those_that_jobs_fill(tmp_path: Path) -> None:
    """Or nothing that was run would ever be found again."""
    place = Place(out=tmp_path)
    assert write_run(tmp_path, RUN) == pretraining_job(RUN, place).folder
    assert write_evaluation(tmp_path, at(0.25, 0.5)) == evaluation_job(at(0.25, 0.5), place).folder
    assert Results(tmp_path).is_trained(RUN)


def test_a_report_without_a_note_is_done(tmp_path: Path) -> None:
    """A folder that was brought here alone, or whose note was deleted: its scores count, its time is not known."""
    folder = write_evaluation(tmp_path, at(0.5))
    note_path(folder).unlink()
    found = Results(tmp_path).cell(CELL)
    assert found is not None
    assert found.report is not None
    assert (found.note.seconds, found.note.commit, found.note.run) == (0.0, "", RUN)


def test_what_went_well_counts_before_what_failed(tmp_path: Path) -> None:
    """An F may have failed in one evaluation, and be scored in another that has other F beside it."""
    write_evaluation(tmp_path, at(0.5, 1.0), finished="2026-03-02", error="Error: broke")
    failed = Results(tmp_path).cell(CELL)
    assert failed is not None
    assert (failed.report, failed.note.error) == (None, "Error: broke")
    write_evaluation(tmp_path, at(0.25, 0.5), finished="2026-03-01")
    found = Results(tmp_path).cell(CELL)
    assert found is not None
    assert found.report is not None


def test_of_several_failures_the_last_is_told(tmp_path: Path) -> None:
    write_evaluation(tmp_path, at(0.5, 1.0), finished="2026-03-02", error="second")
    write_evaluation(tmp_path, at(0.5), finished="2026-03-01", error="first")
    found = Results(tmp_path).cell(CELL)
    assert found is not None
    assert found.note.error == "second"


def test_a_job_that_was_only_begun_is_missing(tmp_path: Path) -> None:
    """It was stopped, or it runs at this moment."""
    job = evaluation_job(at(0.5), Place(out=tmp_path))
    begin_note(job, RUN, (CELL,), STAMP)
    assert Results(tmp_path).cell(CELL) is None


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"schema": 0}'])
def test_a_report_that_cannot_be_read_is_a_failure_with_its_reason(tmp_path: Path, text: str) -> None:
    """It costs its own cells; the page is made of the others."""
    folder = write_evaluation(tmp_path, at(0.5))
    (folder / "report.json").write_text(text)
    found = Results(tmp_path).cell(CELL)
    assert found is not None
    assert found.report is None
    assert f"{folder.name}/report.json cannot be read" in found.note.error


# ---------------------------------------------------------------------------------------------------------------- notes


def job_in(folder: Path) -> Job:
    return Job(name="a job – µV", folder=folder, fresh=(), resume=())


def test_a_note_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Settings included: the name of a folder has them as a hash only."""
    job = job_in(tmp_path / "evaluated" / "run" / "a")
    begun = begin_note(job, RUN, tuple(at(0.5, 1.0)), STAMP)
    assert read_note(job.folder) == begun
    ended = end_note(job, begun, Outcome("Error: one\u2028two\nthree", 1.23456), STAMP)
    assert ended == attrs.evolve(
        begun, finished="2026-03-01T00:00:00+00:00", seconds=1.235, error="Error: one\u2028two\nthree"
    )
    assert list(read_notes(tmp_path)) == [(job.folder, ended)]
    assert read_note(tmp_path / "other") is None


def test_a_job_that_another_grid_ran_meanwhile_keeps_the_note_of_that_grid(tmp_path: Path) -> None:
    """Two grids may share a folder: the one that waited took no time, and did not run the job."""
    job = job_in(tmp_path / "a")
    mine = begin_note(job, RUN, (), STAMP)
    theirs = attrs.evolve(STAMP, invocation="other call")
    other = end_note(job, begin_note(job, RUN, (), theirs), Outcome(seconds=7), theirs)
    assert end_note(job, mine, Outcome(), STAMP) == other
    assert read_note(job.folder) == other


def test_a_job_that_outlived_its_grid_is_ended_by_the_grid_that_waited_for_it(tmp_path: Path) -> None:
    job = job_in(tmp_path / "a")
    begin_note(job, RUN, (), attrs.evolve(STAMP, invocation="killed"))
    ended = end_note(job, begin_note(job, RUN, (), STAMP), Outcome(), STAMP)
    assert (ended.invocation, ended.seconds, bool(ended.finished)) == ("this call", 0, True)


@pytest.mark.parametrize("text", ["no JSON", '{"name": 1}', '{"name": "x", "run": {}, "more": 1}'])
def test_a_damaged_note_is_an_error_that_says_what_is_lost_without_it(tmp_path: Path, text: str) -> None:
    """Notes are replaced whole: a kill does not damage one, so nobody knows what else is wrong."""
    note_path(tmp_path / "a").write_text(text)
    with pytest.raises(RunFolderError, match=r"a\.json \(a note about a job; without it only .* time and commit"):
        read_note(tmp_path / "a")


def test_an_old_score_does_not_count_when_the_same_settings_mean_another_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the grid is a part of every folder's name."""
    write_run(tmp_path, RUN)
    write_evaluation(tmp_path, at(0.5))
    monkeypatch.setattr("clocs_core.grids.cells.VERSION", 2)
    assert not Results(tmp_path).is_done(CELL)
    assert not Results(tmp_path).is_trained(RUN)
