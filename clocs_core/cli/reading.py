"""Options of `embed`, `predict` and `similar` that choose the input of a network: a data set, or files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.cli.completing import COMPLETED
from clocs_core.cli.flags import (
    given_flags,
    read_assignments,
    with_dataset_options,
    with_device,
    with_settings,
    with_workers,
)
from clocs_core.errors import SettingsError
from clocs_core.plan.layers import Assignment
from clocs_core.settings.options import from_text
from clocs_core.settings.sections import DataSettings

if TYPE_CHECKING:
    from clocs_core.inference.signals import Unsaid

F = TypeVar("F", bound=Callable[..., Any])

_SECTIONS = {"data": DataSettings}
_FILE_FLAGS = ("sampling_rate", "unit")  # options of a data set, or facts about --input
_DATA_FLAGS = ("channels", "data_root", "root", "task", "split_seed")
_KEPT = frozenset({"predictions.npz", "report.json", "report.html", "summary.json", "summary.html"})


def data_options(command: F) -> F:
    """Add the options that choose a data set, a part of its patients, and how it is read."""
    helps = {
        "root": "Folder or file of this data set; default: as in training, on its own data set.",
        "task": "Task of the labels; default: as in training, else the first.",
        "split_seed": "Seed of the split of patients; default: as in training.",
        "channels": "Channels (leads) to read, with commas; for an --input without names, the names of all channels.",
    }
    for add in (
        with_workers,
        with_device,
        with_dataset_options,
        click.option("--unit", metavar="UNIT", help="Unit of the recordings, such as mV, where files do not say it."),
        click.option("--sampling-rate", metavar="HZ", help="Rate of the recordings, where files do not say it."),
        with_settings(_SECTIONS, _DATA_FLAGS, **helps),
        click.option(
            "--part",
            type=click.Choice(["train", "validation", "test", "all"]),
            help="Part of the patients whose recordings are read.",
        ),
        click.option(
            "--dataset",
            metavar="NAME",
            help="Data set to read. Default: the one that it was trained on.",
            shell_complete=COMPLETED["dataset"],
        ),
    ):
        command = add(command)
    return command


def file_options(command: F) -> F:
    """Add --input, --unseen-channels and --trained-at, which read a user's files in place of a data set."""
    trained_at = click.option(
        "--trained-at",
        metavar="HZ",
        help="Rate of the recordings it was trained on, where its file does not say it.",
    )
    unseen = click.option(
        "--unseen-channels", is_flag=True, help="Read channels of an --input that it was not trained on."
    )
    inputs = click.option(
        "--input",
        "inputs",
        metavar="FILE",
        multiple=True,
        help="Instead of --dataset: one recording, as .csv, .txt, .npy, .npz, .hea, .edf, .bdf, .h5, .hdf5, .mat, .dcm "
        "or .xml. May be repeated.",
    )
    return inputs(unseen(trained_at(command)))


def ask_dataset(context: click.Context) -> list[Assignment]:
    """Read the settings given by the flags of `data_options` and `-o`. Raises SettingsError for flags about --input."""
    params = context.params
    if params.get("unseen_channels"):
        raise SettingsError(
            "--unseen-channels is about --input; for a data set, choose channels with --channels. Leave it out."
        )
    facts = [Assignment("dataset", name, params[name]) for name in _FILE_FLAGS if params.get(name) is not None]
    return [*facts, *read_assignments(context, _SECTIONS, params["assignments"])]


def ask_files(context: click.Context) -> Unsaid:
    """Read the flags about files. Raises SettingsError for flags about a data set."""
    from clocs_core.inference.signals import Unsaid

    params = context.params
    about = [f"--{name}" for name in ("dataset", "part") if params.get(name)]
    about += [flag for flag in given_flags(context, _SECTIONS) if flag not in ("--channels", "--leads")]
    about += ["-o"] if params["assignments"] else []
    if about:
        raise SettingsError(f"--input reads a file, and {about[0]} is about a data set; leave out one of the two.")
    named = [one.value for one in read_assignments(context, _SECTIONS) if one.name == "channels"]
    names = str(named[0]).split(",") if named else []
    return Unsaid(
        sampling_rate=hertz("--sampling-rate", params["sampling_rate"]),
        channels=tuple(name.strip() for name in names if name.strip()),
        unit=params["unit"] or "",
        trained_at=hertz("--trained-at", params["trained_at"]),
        unseen_channels=params["unseen_channels"],
    )


def hertz(flag: str, text: str | None) -> float | None:
    """Parse the rate of a flag, in Hz. Raises SettingsError unless it is positive."""
    value = None if text is None else from_text(float, text)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise SettingsError(f"{flag} must be a positive number of Hz, got {text}.")
    return float(value)


def refuse_unwritable(path: Path, endings: Sequence[str] = (), inputs: Sequence[str] = ()) -> None:
    """Raise SettingsError for a file that cannot be written, before an hour is spent on its content.

    Nor is a recording replaced, or what a run keeps of its own. endings: allowed file endings, where they decide the
    format. inputs: the files that are read.
    """
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(f"Cannot write {path}: {folder if not path.is_dir() else path} is not a place for a file.")
    if endings and path.suffix.lower() not in endings:
        raise SettingsError(f"--out {path}: expected a name that ends in {' or '.join(endings)}.")
    if path.exists() and any(Path(one).exists() and path.samefile(one) for one in inputs):
        raise SettingsError(f"--out {path} would replace the recording that is read; give another name.")
    if path.name in _KEPT and any((folder / name).exists() for name in ("settings.toml", "summary.json")):
        raise SettingsError(f"--out {path} would replace a file that the run keeps; give another name or folder.")
