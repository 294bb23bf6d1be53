"""Flags by which a command reads files of a user's own, and what of them a command asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.errors import SettingsError
from clocs_core.settings.options import from_text

if TYPE_CHECKING:
    from clocs_core.inference.signals import Unsaid

F = TypeVar("F", bound=Callable[..., Any])


def input_options(command: F) -> F:
    """--input, --unseen-channels, and --trained-at for networks whose files do not say it."""
    trained_at = click.option(
        "--trained-at",
        metavar="HZ",
        help="The rate of the recordings that it was trained on, where its own file does not say it.",
    )
    unseen = click.option(
        "--unseen-channels",
        is_flag=True,
        help="Read channels of an --input that it was not trained on; they are refused otherwise.",
    )
    inputs = click.option(
        "--input",
        "inputs",
        metavar="FILE",
        multiple=True,
        help="Instead of --dataset: one recording, as .csv, .txt, .npy, .npz or .hea. May be repeated.",
    )
    return inputs(unseen(trained_at(command)))


def ask_unsaid(flags: Mapping[str, str | None], trained_at: str | None, unseen_channels: bool) -> Unsaid:
    """What --sampling-rate, --channels (or --leads), --unit, --trained-at and --unseen-channels say of files."""
    from clocs_core.inference.signals import Unsaid

    if flags.get("leads") and flags.get("channels"):
        raise SettingsError("--leads and --channels are two names for one setting; give one of them.")
    names = (flags.get("channels") or flags.get("leads") or "").split(",")
    return Unsaid(
        sampling_rate=hertz("--sampling-rate", flags.get("sampling_rate")),
        channels=tuple(name.strip() for name in names if name.strip()),
        unit=flags.get("unit") or "",
        trained_at=hertz("--trained-at", trained_at),
        unseen_channels=unseen_channels,
    )


def hertz(flag: str, text: str | None) -> float | None:
    """The rate that a flag says. Raises SettingsError for one that no recording has."""
    value = None if text is None else from_text(float, text)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise SettingsError(f"{flag} must be a positive number of Hz, got {text}.")
    return float(value)


def refuse_data_set(about: Mapping[str, object]) -> None:
    """Raise SettingsError where a flag is about a data set, and none is read. about: by flag, what was given."""
    given = [flag for flag, value in about.items() if value]
    if given:
        raise SettingsError(f"--input reads a file, and {given[0]} is about a data set; leave out one of the two.")


def refuse_without_input(unseen_channels: bool, trained_at: str | None = None) -> None:
    """Raise SettingsError where a data set is read, and a flag is about files: its channels need no such word."""
    if trained_at is not None:
        raise SettingsError("--trained-at is about --input; a data set is framed by its own options. Leave it out.")
    if unseen_channels:
        raise SettingsError(
            "--unseen-channels is about --input; of a data set, --channels names what is read. Leave it out."
        )


def refuse_unwritable(path: Path) -> None:
    """Raise SettingsError for a file that could not be written, before an hour is spent on what goes into it."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(f"Cannot write {path}: {folder if not path.is_dir() else path} is not a place for a file.")
