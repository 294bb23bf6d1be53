"""Writes a run's events as TensorBoard reads them. Nothing stays open or in memory between two events.

Steps are epochs. The loss of every optimiser step has an axis of its own, so it is a run of its own, in `steps/`:
when a run is resumed TensorBoard forgets everything from the resumed step on, whatever the axis of a curve.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.text.metadata import create_summary_metadata
from tensorboard.summary.writer.record_writer import RecordWriter

if TYPE_CHECKING:
    from clocs_core import EmbeddingMap, EpochDone, Picture, RunDone, RunStarted, Score

__all__ = ["add_epoch", "add_results", "begin"]

PROJECTED = 5000  # points in the projector, which slows down beyond

PROJECTOR_CONFIG = """\
embeddings {
  tensor_name: "test part"
  tensor_path: "projector/embeddings.tsv"
  metadata_path: "projector/metadata.tsv"
}
"""

_NAME = re.compile(r"events\.out\.tfevents\.\d{10}\.(\d{4,})\.clocs")


def begin(run: RunStarted, wall_time: float) -> None:
    """Begin a new events file: the last one of an interrupted run may end in half a record, which hides what follows.

    wall_time: seconds since 1970, here and below.
    """
    file = run.folder / f"events.out.tfevents.{run.first_epoch:010d}.{_count_of(_newest(run.folder)) + 1:04d}.clocs"
    card = _text("settings", _settings_card(run))
    _append(file, [*_opening(run.first_epoch, wall_time), _event(run.first_epoch, wall_time, [card])])


def add_epoch(run: RunStarted, epoch: EpochDone, wall_time: float) -> None:
    """Append an epoch's losses and health; the loss of each step is read from the device once."""
    file = _file_of(run, wall_time)
    health = epoch.health
    scalars = {
        "loss/train": epoch.train_loss,
        "loss/validation": epoch.validation_loss,
        "health/effective_rank": health.effective_rank,
        "health/same_patient": health.same_patient,
        "health/other_patient": health.other_patient,
        "health/margin": health.margin,
        "health/loss_over_log_batch": health.loss_over_log_batch,
    }
    _append_steps(run.folder / "steps" / file.name, epoch, wall_time)
    _append(file, [_event(epoch.epoch, wall_time, [_scalar(tag, value) for tag, value in scalars.items()])])


def add_results(run: RunStarted, done: RunDone, wall_time: float) -> None:
    """Append scores (as numbers and as a table) and pictures, and write the projector's files."""
    values = [_scalar(_score_tag(score), score.value) for score in done.scores]
    if done.scores:
        values.append(_text("scores", _score_table(done.scores)))
    values += [_image(picture) for picture in done.pictures]
    # One event each: a picture that is cut short takes nothing else with it.
    _append(_file_of(run, wall_time), [_event(done.epochs_run, wall_time, [value]) for value in values])
    if len(done.embeddings.embedding):
        _write_projector(run.folder, done.embeddings)


# ------------------------------------------------------------------------------------------------- files and records


def _newest(folder: Path) -> Path | None:
    """The file that was begun last: counts rise over all files of a run, whatever epoch each began with."""
    found = [file for file in folder.glob("events.out.tfevents.*.clocs") if _NAME.fullmatch(file.name)]
    return max(found, key=_count_of, default=None)


def _count_of(file: Path | None) -> int:
    match = _NAME.fullmatch(file.name) if file else None
    return int(match[1]) if match else 0


def _file_of(run: RunStarted, wall_time: float) -> Path:
    newest = _newest(run.folder)
    if newest is None:  # deleted while the run went on
        begin(run, wall_time)
        newest = _newest(run.folder)
        assert newest is not None
    return newest


def _append_steps(file: Path, epoch: EpochDone, wall_time: float) -> None:
    losses = epoch.losses.tolist()  # sync point
    first = (epoch.epoch - 1) * len(losses) + 1
    opening = [] if file.exists() else _opening(first, wall_time)
    steps = [_event(first + place, wall_time, [_scalar("loss/step", loss)]) for place, loss in enumerate(losses)]
    _append(file, [*opening, *steps])


def _append(file: Path, events: Iterable[Event]) -> None:
    """Frame the events and append them in one write."""
    framed = BytesIO()
    writer = RecordWriter(framed)
    for event in events:
        writer.write(event.SerializeToString())
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(framed.getvalue())


def _opening(first_step: int, wall_time: float) -> list[Event]:
    """What a file begins with: its version, and that steps from the first on are to be forgotten if known."""
    start = SessionLog(status=SessionLog.START)
    return [
        Event(wall_time=wall_time, file_version="brain.Event:2"),
        Event(wall_time=wall_time, step=first_step, session_log=start),
    ]


def _event(step: int, wall_time: float, values: Sequence[Summary.Value]) -> Event:
    return Event(wall_time=wall_time, step=step, summary=Summary(value=values))


# ------------------------------------------------------------------------------------------------------------ values


def _scalar(tag: str, value: float) -> Summary.Value:
    return Summary.Value(tag=tag, simple_value=value)


def _text(tag: str, markdown: str) -> Summary.Value:
    metadata = create_summary_metadata(display_name=tag, description="")
    metadata.data_class = DATA_CLASS_TENSOR
    tensor = TensorProto(dtype=DT_STRING, string_val=[markdown.encode("utf-8")])
    return Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def _image(picture: Picture) -> Summary.Value:
    """The PNG as it is; its width and height stand in its header."""
    width, height = (int.from_bytes(picture.png[at : at + 4], "big") for at in (16, 20))
    image = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=picture.png)
    metadata = SummaryMetadata(display_name=picture.title, summary_description=picture.caption)
    return Summary.Value(tag=f"report/{picture.name}", image=image, metadata=metadata)


def _score_tag(score: Score) -> str:
    tag = f"score/{score.protocol}/{score.init}/{score.metric}/{score.level}"
    return tag if score.label_fraction == 1 else f"{tag}/labels_{score.label_fraction:g}"


def _score_table(scores: Sequence[Score]) -> str:
    headings = ("protocol", "init", "labels", "metric", "level", "value", "95 % interval")
    return _markdown([headings, *map(_score_row, scores)])


def _score_row(score: Score) -> tuple[str, ...]:
    numbers = (f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}")
    return (score.protocol, score.init, f"{score.label_fraction:g}", score.metric, score.level, *numbers)


def _settings_card(run: RunStarted) -> str:
    tables = run.settings.items()
    flat = [(f"{table}.{name}", f"`{value}`") for table, values in tables for name, value in values.items()]
    title = f"**{run.method}** on **{run.dataset}**, from epoch {run.first_epoch}"
    return f"{title}\n\n{_markdown([('setting', 'value'), *flat])}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table in Markdown, the first as its headings."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


# --------------------------------------------------------------------------------------------------------- projector


def _write_projector(folder: Path, embeddings: EmbeddingMap) -> None:
    """Embeddings and what they are of as tables, at most PROJECTED rows, evenly spaced, and where to find them."""
    count = len(embeddings.embedding)
    kept = np.linspace(0, count - 1, min(count, PROJECTED)).astype(int)
    columns = {"label": embeddings.label, "patient": embeddings.patient, "record": embeddings.record}
    (folder / "projector").mkdir(exist_ok=True)
    with (folder / "projector" / "embeddings.tsv").open("w", encoding="ascii", newline="\n") as stream:
        np.savetxt(stream, embeddings.embedding[kept], fmt="%.7g", delimiter="\t")
    (folder / "projector" / "metadata.tsv").write_text(_metadata(columns, kept.tolist()), "utf-8", newline="\n")
    (folder / "projector_config.pbtxt").write_text(PROJECTOR_CONFIG, "utf-8", newline="\n")


def _metadata(columns: Mapping[str, Sequence[str]], kept: Sequence[int]) -> str:
    """A table with headings; a tab or a line break inside a name becomes a space, or the rows would shift."""
    rows = [[" ".join(column[row].split()) for column in columns.values()] for row in kept]
    return "".join("\t".join(cells) + "\n" for cells in [list(columns), *rows])
