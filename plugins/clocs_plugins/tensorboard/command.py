"""`clocs tensorboard`: show evaluations beside their runs."""

from __future__ import annotations

from pathlib import Path

import click

from clocs_core import RunFolderError


@click.command("tensorboard", epilog="\b\nExamples:\n  clocs tensorboard runs")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
def tensorboard_command(folder: Path) -> None:
    """Show the finished evaluations below FOLDER in TensorBoard.

    FOLDER is the folder of a run, of many runs or of a grid. Runs appear in TensorBoard from their first epoch on; this
    command adds their evaluations, and may be repeated.
    """
    from clocs_plugins.tensorboard.evaluations import write_evaluations

    if not folder.is_dir():
        raise RunFolderError(f"There is no folder {folder}; `clocs run` makes one for each run, in runs/.")
    found, written = write_evaluations(folder)
    click.echo(f"{found} finished evaluations below {folder}: {written} added, {found - written} were there.")
    click.echo(f"See them with: tensorboard --logdir {folder}")
