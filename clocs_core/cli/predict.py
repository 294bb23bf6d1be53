"""`clocs predict`: what a fine-tuned classifier says of a data set's recordings, or of a file of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.flags import Flags, read_flags, with_flags, with_workers
from clocs_core.cli.ownfiles import (
    ask_unsaid,
    hertz,
    input_options,
    refuse_data_set,
    refuse_unwritable,
    refuse_without_input,
)
from clocs_core.cli.session import Session, pass_session

if TYPE_CHECKING:
    import torch

    from clocs_core.artifacts.card import ClassifierCard
    from clocs_core.artifacts.classifier import LoadedClassifier
    from clocs_core.inference.predicted import Predicted
    from clocs_core.plugins.catalogue import Catalogue
    from clocs_core.progress import Display

_SHOWN = 10  # rows in the terminal; `--out` has them all


_FLAGS: Flags = {
    "--root": ("data", "root", "PATH", "This data set's own folder or file. Default: as it was trained, on its own."),
    "--data-root": (
        "data",
        "data_root",
        "FOLDER",
        "Holds one folder per data set, and what is prepared from them; wins over the --root that it was trained with. "
        "Default: as it was trained.",
    ),
    "--sampling-rate": ("dataset", "sampling_rate", "HZ", "Of the recordings, where the files do not say it."),
    "--unit": ("dataset", "unit", "UNIT", "Of the recordings, such as mV, where the files do not say it."),
    "--channels": (
        "data",
        "channels",
        "NAMES",
        "Channels to read, comma separated; of an --input that does not name its channels, names for all of them.",
    ),
    "--leads": ("data", "channels", "NAMES", "The same as --channels."),
}


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
@with_flags(_FLAGS)
@input_options
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
@with_workers
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
    from clocs_core.artifacts.classifier import choose_classifier, load_classifier
    from clocs_core.cli.display import console_display
    from clocs_core.inference.predicted import as_level
    from clocs_core.report.predicted import refuse_other_endings, save_predicted
    from clocs_core.train.build import choose_device

    if out is not None:
        refuse_other_endings(Path(out))
        refuse_unwritable(Path(out))
    where = choose_device(device)
    loaded = load_classifier(choose_classifier(Path(classifier), init, label_fraction), session.catalogue, where)
    card = loaded.card
    with console_display() as show:
        show.say(
            f"{loaded.path}: {card.init} at F = {card.fraction:g}, fine-tuned on {card.dataset} for {card.task.name!r}"
        )
        frames = _predict(session.catalogue, loaded, where, show, **asked)
        found = as_level(frames, level or card.task.per)
        if out is not None:
            save_predicted(
                found, _about(card, frames, None if asked["inputs"] else asked["dataset"] or card.dataset), Path(out)
            )
    _show(found, len(frames), out)


def _predict(
    catalogue: Catalogue,
    loaded: LoadedClassifier,
    device: torch.device,
    show: Display,
    *,
    inputs: tuple[str, ...],
    trained_at: str | None,
    unseen_channels: bool,
    dataset: str | None,
    part: Any,
    assignments: tuple[str, ...],
    workers: int,
    **flags: str | None,
) -> Predicted:
    from clocs_core.inference.predict import choose_target, predict_files, predict_recordings
    from clocs_core.settings.sections import DataSettings

    if inputs:
        others = {"--root": flags["root"], "--data-root": flags["data_root"]}
        refuse_data_set({"--dataset": dataset, "--part": part, **others, "-o": assignments})
        unsaid = ask_unsaid(flags, trained_at, unseen_channels)
        return predict_files(loaded, [Path(one) for one in inputs], unsaid, device, show)
    refuse_without_input(unseen_channels)
    name = dataset or loaded.card.dataset
    catalogue.datasets.get(name)  # a misspelt name is answered before a flag of its own
    given = {flag: text for flag, text in flags.items() if text is not None}
    tables = read_flags(catalogue, _FLAGS, given, {}, {"data": DataSettings}, name)
    target = choose_target(loaded.card, catalogue, name, tables, assignments, hertz("--trained-at", trained_at))
    return predict_recordings(loaded, target, part or ("test" if target.own else "all"), workers, device, show)


def _about(card: ClassifierCard, frames: Predicted, dataset: str | None) -> dict[str, object]:
    """What a reader of the file wants to know of the classifier."""
    return {
        "init": card.init,
        "label_fraction": card.fraction,
        "trained_on": card.dataset,
        "dataset": dataset,
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
