"""`clocs predict`: predict the classes of a data set's recordings, or of files, with a fine-tuned classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import AnyOption
from clocs_core.cli.output import echo
from clocs_core.cli.reading import ask_dataset, ask_files, data_options, file_options, hertz, refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    import torch

    from clocs_core.artifacts.card import ClassifierCard
    from clocs_core.artifacts.classifier import LoadedClassifier
    from clocs_core.inference.predicted import Predicted
    from clocs_core.plan.target import Parts
    from clocs_core.progress import Display

_SHOWN = 10  # rows printed; `--out` writes all


@click.command("predict", cls=AnyOption)
@click.argument("classifier", metavar="CLASSIFIER", shell_complete=complete_runs)
@click.option("--init", metavar="NAME", help="Initial weights of the classifier, where there are several.")
@click.option(
    "--label-fraction", type=float, metavar="F", help="Label fraction of the classifier. Default: the largest."
)
@data_options
@file_options
@click.option(
    "--level",
    type=click.Choice(["record", "frame"]),
    help="A row per recording (mean over its frames and channels), or per frame. Default: as in the labels.",
)
@click.option("--out", metavar="FILE", help="Write all rows: .csv, .npz or .json, by its ending.")
@pass_session
@click.pass_context
def predict_command(
    context: click.Context,
    session: Session,
    /,
    classifier: str,
    init: str | None,
    label_fraction: float | None,
    level: Any,
    out: str | None,
    device: str,
    **_asked: Any,
) -> None:
    """Predict classes of recordings with a fine-tuned classifier.

    CLASSIFIER is the folder of a `clocs evaluate … --protocol finetune`, a run that has one, or a classifier's file.
    Recordings are resampled, cut and normalised as that file says; channels are found by name. No label is needed.
    """
    from clocs_core.artifacts.classifier import choose_classifier, load_classifier
    from clocs_core.cli.display import console_display
    from clocs_core.inference.predicted import as_level
    from clocs_core.report.predicted import ENDINGS, save_predicted
    from clocs_core.train.build import choose_device

    if out is not None:
        refuse_unwritable(Path(out), ENDINGS, _asked["inputs"])
    where = choose_device(device)
    loaded = load_classifier(choose_classifier(Path(classifier), init, label_fraction), session.catalogue, where)
    card = loaded.card
    with console_display() as show:
        show.say(
            f"{loaded.path}: {card.init} at F = {card.fraction:g}, fine-tuned on {card.dataset} for {card.task.name!r}"
        )
        frames, dataset = _predict(context, session, loaded, where, show)
        found = as_level(frames, level or card.task.per)
        if out is not None:
            save_predicted(found, _about(card, frames, dataset), Path(out))
    _show(found, len(frames), out)


def _predict(
    context: click.Context, session: Session, loaded: LoadedClassifier, device: torch.device, show: Display
) -> tuple[Predicted, str | None]:
    """Predict every frame; also return the name of the data set, None for files."""
    from clocs_core.inference.predict import choose_target, predict_files, predict_recordings

    asked = context.params
    if asked["inputs"]:
        unsaid = ask_files(context)
        return predict_files(loaded, [Path(one) for one in asked["inputs"]], unsaid, device, show), None
    name = asked["dataset"] or loaded.card.dataset
    trained_at = hertz("--trained-at", asked["trained_at"])
    target = choose_target(loaded.card, session.catalogue, name, {}, ask_dataset(context), trained_at)
    part: Parts = asked["part"] or ("test" if target.own else "all")
    return predict_recordings(loaded, target, part, asked["workers"], device, show), name


def _about(card: ClassifierCard, frames: Predicted, dataset: str | None) -> dict[str, object]:
    """Return the facts about the classifier that go into the file."""
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
    from clocs_core.report.predicted import shown_rows
    from clocs_core.report.terminal import Terminal

    headings, rows = shown_rows(found, _SHOWN)
    Terminal(160).print_table(headings, rows)
    left = len(found) - len(rows)
    if left:
        echo(f"… and {left:,} more" + ("" if out else "; `--out FILE.csv` writes them all"))
    many = "" if len(found) == 1 else "s"
    what = f"frame{many}" if found.level == "frame" else f"recording{many}, of {frames:,} frames"
    echo(f"{len(found):,} {what}" + (f": {out}" if out else ""))
