"""How long a grid will take, from how long its like took."""

from __future__ import annotations

from io import StringIO

import attrs
import pytest
from grid.story import read_known
from rich.console import Console

from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.display import ConsoleGrid
from clocs_core.grids.notes import Note
from clocs_core.grids.pace import Pace, say_duration

RUN = Pretraining(method="cmsc", dataset="chapman")
CELL = GridCell(pretraining=RUN, downstream="cardiology", protocol="finetune")


def note(seconds: float, **changes: object) -> Note:
    return attrs.evolve(Note(name="n", run=RUN, finished="x", seconds=seconds), **changes)


def tuned(seconds: float, shares: tuple[float, ...]) -> Note:
    return note(seconds, cells=tuple(attrs.evolve(CELL, label_fraction=share) for share in shares))


def test_the_closest_kind_counts_and_its_median() -> None:
    """One run that met a busy machine must not double the estimate."""
    other = attrs.evolve(RUN, method="simclr")
    pace = Pace.of((note(10), note(12), note(500), note(3, run=other)))
    assert pace.of_run(RUN) == 12
    assert pace.of_run(attrs.evolve(RUN, method="simclr")) == 3
    assert pace.of_run(attrs.evolve(RUN, method="byol")) == 11  # of the data set: 3, 10, 12, 500


def test_an_evaluation_takes_as_long_as_it_has_shares() -> None:
    """A note holds the seconds of all its F together."""
    pace = Pace.of((tuned(40, (0.25, 0.5)),))
    assert pace.of_evaluation((CELL,)) == 20
    assert pace.of_evaluation((CELL, CELL, CELL)) == 60


def test_failures_and_what_was_found_finished_say_nothing() -> None:
    """Their seconds are those of something else."""
    pace = Pace.of((note(0), note(1, error="broke")))
    assert pace.of_run(RUN) is None
    assert pace.remaining([RUN], [], 1) is None
    assert pace.remaining([], [], 1) == 0


def test_jobs_at_once_share_the_time_and_unknown_kinds_count_as_the_mean() -> None:
    """Ten seconds of pre-training known, evaluations not: two of each, two at once."""
    pace = Pace.of((note(10),))
    assert pace.remaining([RUN, RUN], [(CELL,), (CELL,)], 2) == pytest.approx(20)
    assert pace.remaining([RUN], [], 8) == pytest.approx(10)  # one job is not quicker on eight places


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "unknown"), (59.6, "60 s"), (91, "2 min"), (5000, "83 min"), (7500, "2 h 05 min")]
)
def test_durations_are_said_as_people_do(seconds: float | None, said: str) -> None:
    """Minutes for a coffee, hours for a night."""
    assert say_duration(seconds) == said


def test_without_a_terminal_every_job_is_a_line_with_what_is_left() -> None:
    """A log of a batch system has no bar."""
    file = StringIO()
    with ConsoleGrid(Console(file=file, width=200)) as show:
        show.advance(0, 2, None, None)
        show.advance(1, 2, 120.0, note(30, name="first"))
        show.advance(2, 2, 0.0, note(1, name="second", error="Error: broke"))
        show.tick(1, 1)
    assert file.getvalue().splitlines() == [
        "1 of 2: first, 30 s; about 2 min left",
        "failed: second: Error: broke",
    ]


def test_what_jobs_took_elsewhere_is_a_first_guess_scaled_by_what_they_take_here() -> None:
    """A new grid knows nothing, and a grid of hours must say so before it starts."""
    known = {("pretrain", "cmsc", "chapman"): 100.0, ("finetune", "cardiology"): 30.0}
    assert Pace.of((), known).remaining([RUN], [(CELL, CELL)], 1) == pytest.approx(160)
    here = Pace.of((note(300),), known)  # three times as long as there
    assert here.of_run(RUN) == 300
    assert here.of_evaluation((CELL,)) == pytest.approx(90)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_both_kinds_of_machine_are_known(device: str) -> None:
    """The jobs of the documented results have a time on each."""
    pace = Pace.of((), read_known(device))
    for method in ("supervised", "mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc"):
        assert pace.of_run(Pretraining(method=method, dataset="ptbxl")) is not None
    assert pace.of_evaluation((CELL,)) is not None
    assert pace.of_run(Pretraining(method="cmsc", dataset="demo")) is None
