"""`clocs data prepare` and `clocs data verify`: write frames to disk, list dropped recordings, check the split."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.cli.flags import with_dataset_options, with_workers
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.data.cohort import Cohort
    from clocs_core.plan.data import DataPlan

F = TypeVar("F", bound=Callable[..., Any])


def recordings_options(command: F) -> F:
    """Add the options that choose recordings to a command."""
    for add in (
        with_dataset_options,
        click.option("--task", metavar="NAME", help="Task of the data set; default: its first."),
        click.option("--root", metavar="PATH", help="Folder or file of this data set."),
        click.option("--data-root", metavar="FOLDER", help="Folder with one folder per data set. Default: CLOCS_DATA."),
        click.argument("name"),
    ):
        command = add(command)
    return command


def framing_options(command: F) -> F:
    """Add the options that change the length of frames to a command."""
    for name, text in (
        ("--source-samples", "Samples of a recording in a frame, before resampling; as `-o source_samples` of a run."),
        ("--frame-samples", "Samples of a frame; as `-o frame_samples` of a run. Default: that of the data set."),
    ):
        command = click.option(name, type=click.IntRange(min=1), metavar="N", help=text)(command)
    return command


def ask_recordings(
    session: Session, name: str, data_root: str | None, root: str | None, task: str | None, assignments: tuple[str, ...]
) -> DataPlan:
    """Resolve the recordings that the options of `recordings_options` choose."""
    from clocs_core.plan.data import resolve_data

    given = {"data_root": data_root, "root": root, "task": task}
    table: dict[str, object] = {key: value for key, value in given.items() if value is not None}
    return resolve_data(session.catalogue, name, {"data": table}, assignments)


@click.command("prepare")
@recordings_options
@framing_options
@with_workers
@pass_session
def prepare_command(
    session: Session,
    /,
    name: str,
    workers: int,
    frame_samples: int | None,
    source_samples: int | None,
    **where: Any,
) -> None:
    """Read recordings once and keep their frames for every method.

    Prints what was found and what was left out. A second call is instant. A changed recording is detected. An
    interrupted preparation resumes where it stopped.
    """
    lengths = {"frame_samples": frame_samples, "source_samples": source_samples}
    cohort = _cohort(ask_recordings(session, name, **where), workers, lengths)
    _print(cohort)
    echo(f"Now: clocs run --plugin METHOD --dataset {name}" + (f" --root {where['root']}" if where["root"] else ""))


@click.command("verify")
@recordings_options
@framing_options
@pass_session
def verify_command(
    session: Session, /, name: str, frame_samples: int | None, source_samples: int | None, **where: Any
) -> None:
    """Verify prepared frames and the split.

    Checks the checksums of the frames, and that no patient and no signal is in two parts of the split.
    """
    import warnings

    from clocs_core.data.prepared import PreparedAgain, verify

    lengths = {"frame_samples": frame_samples, "source_samples": source_samples}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PreparedAgain)  # who asks to verify frames is told that they are damaged
        try:
            cohort = _cohort(ask_recordings(session, name, **where), os.cpu_count() or 1, lengths)
        except PreparedAgain as found:
            raise found.problem from None
    for prepared in {one.fingerprint: one for one in (cohort.pretrain, cohort.evaluate)}.values():
        verify(prepared)
        size = sum(path.stat().st_size for path in prepared.folder.iterdir())
        echo(f"{prepared.fingerprint}: {len(prepared.frames):,} frames, {size / 1e6:,.0f} MB, checksums are right")
    _print(cohort)


def _cohort(asked: DataPlan, workers: int, lengths: dict[str, int | None]) -> Cohort:
    import attrs

    from clocs_core.cli.display import console_display
    from clocs_core.data.cohort import get_cohort
    from clocs_core.errors import SettingsError

    given: dict[str, Any] = {name: length for name, length in lengths.items() if length is not None}
    try:
        framings = [attrs.evolve(asked.dataset.offer.framing(segments), **given) for segments in (2, 1)]
    except ValueError as problem:
        raise SettingsError(f"Frames of {asked.name!r} cannot have these lengths: {problem}.") from None
    with console_display() as display:
        display.stage("preparing recordings")
        asked = attrs.evolve(asked, fit=0 if given else 2)
        return get_cohort(asked, framings[0], framings[1], workers, display.tick)


def _print(cohort: Cohort) -> None:
    from clocs_core.contracts.records import DropReport
    from clocs_core.data.audit import certified_audit

    listing, split = cohort.listing, cohort.split
    form = f" ({listing.form})" if listing.form else ""
    echo(f"Found {len(listing.entries):,} recordings of {len(split.parts):,} patients{form}.")
    for note in listing.notes:
        echo(note)
    drops = DropReport.of(listing.drops) + cohort.evaluate.drops
    sentence = drops.sentence()
    echo(f"{sentence[0].upper()}{sentence[1:]}.")
    for reason, names in drops.first.items():
        echo(f"  {reason}: {drops.counts[reason]:,}, such as {', '.join(names[:3])}")
    if cohort.evaluate.tolerated.counts:
        echo(f"Read despite faults: {cohort.evaluate.tolerated.reasons()}.")
    for prepared, use in ((cohort.evaluate, "one frame at a time"), (cohort.pretrain, "frames in a row")):
        frames, channels, samples = prepared.frames.shape
        rate = f" at {prepared.frame_rate:g} Hz" if prepared.frame_rate else ""
        kind = "16-bit" if prepared.frames.dtype.itemsize == 2 else "float32"
        echo(f"For {use}: {frames:,} frames x {channels} channels x {samples} samples{rate}, {prepared.unit}, {kind}")
        if cohort.pretrain.fingerprint == cohort.evaluate.fingerprint:
            break
    if cohort.has_labels:
        classes = ", ".join(f"{count:,} {name}" for name, count in cohort.labelled_frames().items())
        echo(f"Labels for {cohort.task.name!r}, by frame: {classes}")
    counts = " / ".join(f"{count:,}" for count in split.counts().values())
    echo(f"Split {split.rule}, seed {split.seed}: {counts} patients to train / validate / test; {split.hash[:16]}")
    leaks = certified_audit(cohort.evaluate, split)
    echo(f"Certificate {split.hash[:16]}: {leaks.sentence()}")
    for twin in leaks.twins[:10]:
        echo(f"  {twin.record} ({twin.part}) = {twin.other} ({twin.other_part}), correlation {twin.correlation:.5f}")
    echo(f"Frames: {Path(cohort.evaluate.folder)}")
