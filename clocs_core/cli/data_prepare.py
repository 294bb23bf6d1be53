"""`clocs data prepare` and `clocs data verify`: write frames to disk, list dropped recordings, check the split."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import chdir, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.cli.completing import COMPLETED
from clocs_core.cli.engines import Engine, choose_engine, with_engine
from clocs_core.cli.flags import (
    DATA_ROOT_HELP,
    AnyOption,
    plugin_flags,
    read_assignments,
    with_dataset_options,
    with_workers,
)
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.plan.data import framing_of
from clocs_core.plugins.session import Session
from clocs_core.progress import COMMAND

if TYPE_CHECKING:
    from clocs_core.contracts.records import Framing
    from clocs_core.data.cohort import Cohort
    from clocs_core.data.shards import Workers
    from clocs_core.plan.data import DataPlan

F = TypeVar("F", bound=Callable[..., Any])
_FRAMING = ("frame_samples", "source_samples", "band_pass", "notch")
_LENGTHS = ("frame_samples", "source_samples", "frame_seconds")  # options that set the length of frames


def recordings_options(command: F) -> F:
    """Add the options that choose recordings to a command."""
    for add in (
        with_dataset_options,
        click.option("--task", metavar="NAME", help="Task of the data set; default: its first."),
        click.option("--root", metavar="PATH", help="Folder or file of this data set."),
        click.option("--data-root", metavar="FOLDER", help=DATA_ROOT_HELP),
        click.argument("name", shell_complete=COMPLETED["dataset"]),
    ):
        command = add(command)
    return command


def framing_options(command: F) -> F:
    """Add the options that change the length of frames, and the filters before them, to a command."""
    filters = (
        ("--notch", "Frequency that a filter removes, such as that of the mains; as `-o notch` of a run.", "HZ"),
        ("--band-pass", "Limits of a filter in Hz; as `-o band_pass` of a run.", "LOW,HIGH"),
    )
    for name, text, metavar in filters:
        command = click.option(name, metavar=metavar, help=text)(command)
    seconds = "Seconds of a recording in a frame, before resampling; as `-o frame_seconds` of a run."
    command = click.option("--frame-seconds", metavar="S", help=seconds)(command)
    for name, text in (
        ("--source-samples", "Samples of a recording in a frame, before resampling; as `-o source_samples` of a run."),
        ("--frame-samples", "Samples of a frame; as `-o frame_samples` of a run. Default: that of the data set."),
    ):
        command = click.option(name, type=click.IntRange(min=1), metavar="N", help=text)(command)
    return command


def ask_recordings(
    session: Session, name: str, data_root: str | None, root: str | None, task: str | None, assignments: tuple[str, ...]
) -> DataPlan:
    """Resolve the recordings that the options of `recordings_options` choose, and flags such as --sampling-rate."""
    from clocs_core.plan.data import resolve_data

    given = {"data_root": data_root, "root": root, "task": task}
    table: dict[str, object] = {key: value for key, value in given.items() if value is not None}
    flags = read_assignments(click.get_current_context(), {}, assignments)
    return resolve_data(session.catalogue, name, {"data": table}, flags)


@click.command("prepare", cls=AnyOption)
@recordings_options
@framing_options
@with_workers
@with_engine
@click.option("--part", metavar="FILE", type=click.Path(path_type=Path), hidden=True)
@pass_session
def prepare_command(
    session: Session,
    /,
    name: str,
    workers: int,
    part: Path | None,
    **asked: Any,
) -> None:
    """Read recordings once and keep their frames for every method.

    Prints what was found and what was left out. A second call is instant. A changed recording is detected. An
    interrupted preparation resumes where it stopped. Options of the data set are flags too: --sampling-rate 125.
    With an --engine other than `local`, --workers processes of a cluster read recordings; all machines must see the
    recordings and the data root under the same paths.
    """
    given = _framing_given(asked)
    engine = choose_engine(session, *(asked.pop(name) for name in ("engine", "address", "engine_option")))
    if part is not None:
        _make_part(session, name, asked, part)
        return
    makers = workers if engine.is_local else _elsewhere(engine, workers, asked["data_root"])
    cohort = _cohort(ask_recordings(session, name, **asked), makers, given)
    _print(cohort)
    echo(f"Now: clocs run --plugin METHOD --dataset {name}{_said_again(asked)}")


def _elsewhere(engine: Engine, workers: int, root: str | None) -> Workers:
    """Let the processes of an engine repeat this command, each for a part of the recordings."""
    from clocs_core.data.remote_shards import Elsewhere
    from clocs_core.settings.places import data_root

    words = (*shlex.split(COMMAND.get())[1:], "--data-root", str(data_root(root).absolute()))  # the last one counts
    return Elsewhere(lambda: engine.open(workers, 1, lambda text: echo(text, err=True)), words)


def _make_part(session: Session, name: str, asked: dict[str, Any], part: Path) -> None:
    from clocs_core.data.remote_shards import folder_of_part, make_part

    typed = folder_of_part(part)
    with chdir(typed) if typed.is_dir() else nullcontext():  # paths that are absolute need no such folder
        make_part(ask_recordings(session, name, **asked), part)


@click.command("verify", cls=AnyOption)
@recordings_options
@framing_options
@pass_session
def verify_command(session: Session, /, name: str, **asked: Any) -> None:
    """Verify prepared frames and the split.

    Checks the checksums of the frames, and that no patient and no signal is in two parts of the split.
    """
    import warnings

    from clocs_core.data.prepared import PreparedAgain, verify

    given = _framing_given(asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PreparedAgain)  # who asks to verify frames is told that they are damaged
        try:
            cohort = _cohort(ask_recordings(session, name, **asked), os.cpu_count() or 1, given)
        except PreparedAgain as found:
            raise found.problem from None
    for prepared in {one.fingerprint: one for one in (cohort.pretrain, cohort.evaluate)}.values():
        verify(prepared)
        size = sum(path.stat().st_size for path in prepared.folder.iterdir())
        echo(f"{prepared.fingerprint}: {len(prepared.frames):,} frames, {size / 1e6:,.0f} MB, checksums are right")
    _print(cohort)


def _said_again(asked: dict[str, Any]) -> str:
    """Return the words that a run needs, to read the same recordings."""
    flags = [word for one in plugin_flags(click.get_current_context()) for word in one.split("=", 1)]
    named = [word for name in ("root", "data_root", "task") if asked[name] for word in (_flag(name), asked[name])]
    options = [word for one in asked["assignments"] for word in ("-o", one)]
    words = shlex.join([*named, *flags, *options])
    return f" {words}" if words else ""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _framing_given(asked: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `framing_options` that were given out of `asked`."""
    from clocs_core.contracts.records import Framing
    from clocs_core.errors import SettingsError
    from clocs_core.plan.frame_seconds import read_seconds
    from clocs_core.settings.options import field_types, from_text

    kinds, seconds = field_types(Framing), asked.pop("frame_seconds")
    given = {name: asked.pop(name) for name in _FRAMING}
    found = {name: from_text(kinds[name], str(value)) for name, value in given.items() if value is not None}
    if seconds is None:
        return found
    if "source_samples" in found:
        raise SettingsError("--frame-seconds and --source-samples both set the length of a frame; give one of them.")
    return {**found, "frame_seconds": read_seconds(seconds)}


def _cohort(asked: DataPlan, workers: Workers, given: dict[str, Any]) -> Cohort:
    import attrs

    from clocs_core.cli.display import console_display
    from clocs_core.data.cohort import get_cohort

    framings = [_framing(asked, segments, given) for segments in (2, 1)]
    with console_display() as display:
        display.stage("preparing recordings")
        asked = attrs.evolve(asked, fit=0 if set(_LENGTHS) & given.keys() else 2)
        return get_cohort(asked, framings[0], framings[1], workers, display.tick)


def _framing(asked: DataPlan, segments: int, given: dict[str, Any]) -> Framing:
    """Change the framing of the data set by the options that were given. Raises SettingsError if there is none such."""
    from clocs_core.contracts.records import Framing
    from clocs_core.errors import SettingsError
    from clocs_core.plan.frame_seconds import NAME, in_seconds
    from clocs_core.settings.options import plain, structure

    fields = {**plain(framing_of(asked.dataset.offer, segments)), **given}
    seconds = fields.pop(NAME, None)
    if seconds is not None:
        fields |= in_seconds(fields["frame_samples"], seconds)
    try:
        return structure(Framing, fields, "framing", arguments=False)
    except SettingsError as problem:
        raise SettingsError(f"Frames of {asked.name!r} cannot be cut like this: {problem}") from None


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
        facts = ", ".join(filter(None, (f"{samples} samples{rate}", prepared.unit, kind)))
        echo(f"For {use}: {frames:,} frames x {channels} channels x {facts}")
        if prepared.uneven:
            echo(prepared.uneven)
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
