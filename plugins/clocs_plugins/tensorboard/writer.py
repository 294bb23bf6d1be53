"""Write a run's events for TensorBoard. Nothing stays open or in memory between two events.

Steps are epochs. The loss of every optimiser step has another axis, so it is a separate run, in `steps/`: when a run is
resumed, TensorBoard discards everything from the resumed step on, whatever the axis of a curve.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clocs_plugins.tensorboard.eventfile import (
    append,
    frame,
    make_event,
    newest,
    next_after,
    opening,
    replace,
    results_after,
    version,
)
from clocs_plugins.tensorboard.projector import write_projector
from clocs_plugins.tensorboard.results import markdown, score_values
from clocs_plugins.tensorboard.trials import session_end, session_start
from clocs_plugins.tensorboard.values import image, layout, scalar, text

if TYPE_CHECKING:
    from clocs_core import EpochDone, RunDone, RunStarted

CHARTS = {
    "pre-training": {
        "loss": ["loss/train", "loss/validation"],
        "cosine within and between patients": ["health/same_patient", "health/other_patient", "health/margin"],
        "effective rank": ["health/effective_rank"],
    }
}
"""Charts of the tab CUSTOM SCALARS, with the tags in each."""


def begin(run: RunStarted, wall_time: float) -> None:
    """Begin a new events file: that of an interrupted run may end in half a record, which hides all that follows.

    wall_time: seconds since 1970, here and below.
    """
    file = run.folder / next_after(newest(run.folder), run.first_epoch)
    seed = str(run.settings.get("run", {}).get("seed", "unknown"))  # text: as a number it would show as 0.0000
    about = {"method": run.method, "dataset": run.dataset, "seed": seed, "stage": "pretrain"}
    values = [text("settings", _settings_card(run)), layout(CHARTS), session_start(about, run.settings, wall_time)]
    append(file, [*opening(run.first_epoch, wall_time), make_event(run.first_epoch, wall_time, values)])


def add_epoch(run: RunStarted, epoch: EpochDone, wall_time: float) -> None:
    """Append an epoch's scalars; the loss of each step is read from the device once."""
    file = _file_of(run, wall_time)
    _append_steps(run.folder / "steps" / file.name, epoch, wall_time)
    values = [scalar(tag, value) for tag, value in epoch.scalars().items()]
    append(file, [make_event(epoch.epoch, wall_time, values)])


def add_results(run: RunStarted, done: RunDone, wall_time: float) -> None:
    """Write scores (as numbers and as a table) and pictures in a file of their own, and the projector's files.

    A run that was killed here tells of its end again. Then all of these files are replaced, and nothing is there twice.
    """
    values = score_values(run.method, done.scores, done.comparisons)
    values += [*map(image, done.pictures), session_end(wall_time)]
    events = [version(wall_time), *(make_event(done.epochs_run, wall_time, [value]) for value in values)]
    replace(run.folder / results_after(done.epochs_run), frame(events))
    if len(done.embeddings.embedding):
        write_projector(run.folder, done.embeddings)


def _file_of(run: RunStarted, wall_time: float) -> Path:
    file = newest(run.folder)
    if file is None:  # deleted during the run
        begin(run, wall_time)
        file = newest(run.folder)
        assert file is not None
    return file


def _append_steps(file: Path, epoch: EpochDone, wall_time: float) -> None:
    losses = epoch.losses.tolist()  # sync point
    first = (epoch.epoch - 1) * len(losses) + 1
    begun = [] if file.exists() else opening(first, wall_time)
    steps = [make_event(first + place, wall_time, [scalar("loss/step", loss)]) for place, loss in enumerate(losses)]
    append(file, [*begun, *steps])


def _settings_card(run: RunStarted) -> str:
    tables = run.settings.items()
    flat = [(f"{table}.{name}", f"`{value}`") for table, values in tables for name, value in values.items()]
    title = f"**{run.method}** on **{run.dataset}**, from epoch {run.first_epoch}"
    return f"{title}\n\n{markdown([('setting', 'value'), *flat])}"
