"""`clocs predict`: what a fine-tuned classifier says of a data set's recordings, or of a file of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from clocs_core.cli.embed import refuse_unwritable
from clocs_core.cli.session import Session, pass_session
from clocs_core.errors import SettingsError

if TYPE_CHECKING:
    import torch

    from clocs_core.evaluate.classifiers import ClassifierCard, LoadedClassifier
    from clocs_core.extend.catalogue import Catalogue
    from clocs_core.prediction import Parts
    from clocs_core.progress import Display
    from clocs_core.report.predicted import Predicted
    from clocs_core.settings import Tables

__all__ = ["predict_command"]

_SHOWN = 10  # rows in the terminal; `--out` has them all


@attrs.frozen(kw_only=True)
class _Source:
    """The flags that say which signals are predicted, as they were typed."""

    inputs: tuple[str, ...]
    dataset: str | None
    part: Any
    root: str | None
    data_root: str | None
    assignments: tuple[str, ...]
    sampling_rate: float | None
    unit: str | None
    channels: str | None
    trained_at: float | None
    workers: int

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Of --channels, one by one."""
        return tuple(part.strip() for part in (self.channels or "").split(",") if part.strip())

    def refuse_data_set(self) -> None:
        """Raise SettingsError where a flag is about a data set, and none is read."""
        about = {"--dataset": self.dataset, "--part": self.part, "--root": self.root, "--data-root": self.data_root}
        given = [flag for flag, value in {**about, "-o": self.assignments}.items() if value]
        if given:
            raise SettingsError(f"--input reads a file, and {given[0]} is about a data set; leave out one of the two.")


@click.command("predict")
@click.argument("classifier", metavar="CLASSIFIER")
@click.option("--init", metavar="NAME", help="Of several classifiers: whose weights it began with. Default: the run's.")
@click.option(
    "--label-fraction", type=float, metavar="F", help="Of several: its share of the labels. Default: largest."
)
@click.option("--dataset", metavar="NAME", help="The data set to predict. Default: the one that it was trained on.")
@click.option(
    "--part",
    type=click.Choice(["train", "validation", "test", "all"]),
    help="Whose recordings. Default: test on the classifier's own data set, all on another.",
)
@click.option("--root", metavar="PATH", help="This data set's own folder or file.")
@click.option("--data-root", metavar="FOLDER", help="Holds one folder per data set. Default: CLOCS_DATA.")
@click.option(
    "--input",
    "inputs",
    metavar="FILE",
    multiple=True,
    help="Instead of --dataset: one recording, as .csv, .txt, .npy, .npz or .hea. May be repeated.",
)
@click.option("--sampling-rate", type=float, metavar="HZ", help="Of the recordings, where the files do not say it.")
@click.option("--unit", metavar="UNIT", help="Of the recordings, such as mV, where the files do not say it.")
@click.option(
    "--channels",
    "--leads",
    "channels",
    metavar="NAMES",
    help="Channels to read, comma separated; of an --input that does not name its channels, names for all of them.",
)
@click.option(
    "--trained-at",
    type=float,
    metavar="HZ",
    help="The rate of the recordings that it was trained on, where the classifier's file does not say it.",
)
@click.option(
    "--level",
    type=click.Choice(["record", "frame"]),
    help="A row per recording, the mean over its frames and channels, or per frame. Default: as the labels were.",
)
@click.option("--out", metavar="FILE", help="Write all rows: .csv, .npz or .json, by its ending.")
@click.option(
    "-o",
    "--option",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Of the data set and its settings, such as `-o task=rhythm`. May be repeated.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to compute.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one per core",
    help="Processes that read recordings.",
)
@pass_session
def predict_command(
    session: Session,
    /,
    classifier: str,
    init: str | None,
    label_fraction: float | None,
    level: Any,
    out: str | None,
    device: str,
    **asked: Any,
) -> None:
    """Predict the classes of recordings with a fine-tuned classifier. No label is needed.

    CLASSIFIER is the folder of a `clocs evaluate … --protocol finetune`, a run that has one, or a classifier's file.
    The recordings are resampled, cut, normalised, and their channels chosen by name, as that file says.
    """
    from rich.console import Console

    from clocs_core.cli.display import ConsoleDisplay
    from clocs_core.evaluate.classifiers import choose_classifier, load_classifier
    from clocs_core.report.predicted import as_level, refuse_other_endings, save_predicted
    from clocs_core.train.assemble import choose_device

    if out is not None:
        refuse_other_endings(Path(out))
        refuse_unwritable(Path(out))
    where = choose_device(device)
    loaded = load_classifier(choose_classifier(Path(classifier), init, label_fraction), session.catalogue, where)
    card = loaded.about
    source = _Source(**asked)
    with ConsoleDisplay(Console(stderr=True)) as show:
        show.say(
            f"{loaded.path}: {card.init} at F = {card.fraction:g}, fine-tuned on {card.dataset} for {card.task.name!r}"
        )
        frames = _predict(session.catalogue, loaded, source, where, show)
        found = as_level(frames, level or card.task.per)
        if out is not None:
            save_predicted(found, _about(card, frames, source), Path(out))
    _show(found, len(frames), out)


def _predict(
    catalogue: Catalogue, loaded: LoadedClassifier, source: _Source, device: torch.device, show: Display
) -> Predicted:
    from clocs_core.evaluate.ownframes import Unsaid
    from clocs_core.prediction import choose_target, predict_files, predict_recordings

    rate, trained_at = (
        _positive(flag, value)
        for flag, value in (("--sampling-rate", source.sampling_rate), ("--trained-at", source.trained_at))
    )
    if source.inputs:
        source.refuse_data_set()
        unsaid = Unsaid(
            sampling_rate=rate, channels=source.channel_names, unit=source.unit or "", trained_at=trained_at
        )
        return predict_files(loaded, [Path(one) for one in source.inputs], unsaid, device, show)
    name = source.dataset or loaded.about.dataset
    tables = _tables(catalogue, name, source)
    target = choose_target(loaded.about, catalogue, name, tables, source.assignments, trained_at)
    part: Parts = source.part or ("test" if target.own else "all")
    return predict_recordings(loaded, target, part, source.workers, device, show)


def _tables(catalogue: Catalogue, name: str, source: _Source) -> Tables:
    """The flags as the tables [data] and [dataset]."""
    from clocs_core.options import field_types

    places = {"root": source.root, "data_root": source.data_root}
    data: dict[str, object] = {
        key: str(Path(place).expanduser().absolute()) for key, place in places.items() if place is not None
    }
    if source.channel_names:
        data["channels"] = list(source.channel_names)
    said = {"sampling_rate": source.sampling_rate, "unit": source.unit}
    options: dict[str, object] = {key: value for key, value in said.items() if value is not None}
    kinds = field_types(catalogue.datasets.get(name).offer.options)
    for key in options:
        if key not in kinds:
            raise SettingsError(f"--{key.replace('_', '-')}: data set {name!r} says it itself; leave it out.")
    return {"data": data, "dataset": options}


def _positive(flag: str, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise SettingsError(f"{flag} must be a positive number of Hz, got {value:g}.")
    return value


def _about(card: ClassifierCard, frames: Predicted, source: _Source) -> dict[str, object]:
    """What a reader of the file wants to know of the classifier."""
    return {
        "init": card.init,
        "label_fraction": card.fraction,
        "trained_on": card.dataset,
        "dataset": None if source.inputs else source.dataset or card.dataset,
        "task": card.task.name,
        "kind": card.task.kind,
        "channels": list(frames.channels),
    }


def _show(found: Predicted, frames: int, out: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from clocs_core.report.predicted import shown_rows

    headings, rows = shown_rows(found, _SHOWN)
    table = Table(*map(escape, headings), box=None)
    for row in rows:
        table.add_row(*map(escape, row))
    Console(width=None if os.isatty(1) else 160).print(table)
    left = len(found) - len(rows)
    if left:
        click.echo(f"… and {left:,} more" + ("" if out else "; `--out FILE.csv` writes them all"))
    many = "" if len(found) == 1 else "s"
    what = f"frame{many}" if found.level == "frame" else f"recording{many}, of {frames:,} frames"
    click.echo(f"{len(found):,} {what}" + (f": {out}" if out else ""))
