"""`clocs data`: list the data sets, show which of them are on this machine, and download others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from clocs_core.cli.completing import COMPLETED
from clocs_core.cli.data_prepare import prepare_command, verify_command
from clocs_core.cli.data_show import show_command
from clocs_core.cli.flags import DATA_ROOT_HELP
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.files import show_bytes
from clocs_core.plugins.session import Session
from clocs_core.settings.places import data_root, dataset_folder

if TYPE_CHECKING:
    from clocs_core.contracts.offers import Dataset, Source
    from clocs_core.data.fetching import Fetched


@click.group("data")
def data_group() -> None:
    """List, download, prepare, verify and show data sets."""


data_group.add_command(prepare_command)
data_group.add_command(verify_command)
data_group.add_command(show_command)


# ---------------------------------------------------------------------------------------------------------------- list


@data_group.command("list")
@click.option("--data-root", "root", metavar="FOLDER", help=DATA_ROOT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every download address.")
@pass_session
def list_command(session: Session, root: str | None, as_json: bool) -> None:
    """List the data sets, and say which are on this machine."""
    rows = [_row(item.offer, data_root(root)) for item in session.catalogue.datasets]
    if as_json:
        echo(json.dumps([attrs.asdict(row) for row in rows], indent=2, ensure_ascii=False))
        return
    for row in rows:
        echo(row.name, bold=True, nl=False)
        echo(f"  {row.summary}")
        echo(f"  licence: {row.licence}")
        echo(f"  from: {_origin(row)}")
        echo(f"  here: {_state(row)}")


@attrs.frozen
class _Row:
    name: str
    summary: str
    modality: str
    licence: str
    embedded: bool
    size: int | None  # bytes to download; None where it is not known in full
    sources: tuple[Source, ...]
    homepage: str
    folder: str
    present: bool
    prepared: int  # number of prepared sets of frames


def _row(dataset: Dataset, root: Path) -> _Row:
    sizes = [source.size for source in dataset.sources]
    known = [size for size in sizes if size is not None]
    folder = dataset_folder(root, dataset.name)
    return _Row(
        name=dataset.name,
        summary=dataset.summary,
        modality=dataset.modality,
        licence=dataset.licence,
        embedded=dataset.embedded,
        size=sum(known) if known and len(known) == len(sizes) else None,
        sources=dataset.sources,
        homepage=dataset.homepage,
        folder=str(folder),
        present=dataset.embedded or _holds_something(folder),
        prepared=len(list((root / "prepared" / dataset.name).glob("*/manifest.json"))),
    )


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())


def _origin(row: _Row) -> str:
    if not row.sources:
        return "made on the spot" if row.embedded else row.homepage or "your own files, with `--root`"
    size = f"{show_bytes(row.size)}, " if row.size is not None else ""
    return f"{size}{row.sources[0].address}" + (f" and {len(row.sources) - 1} more" if len(row.sources) > 1 else "")


def _state(row: _Row) -> str:
    prepared = f", prepared in {row.prepared} form{'s' if row.prepared > 1 else ''}" if row.prepared else ""
    if row.embedded:
        return f"always{prepared}"
    if row.present:
        return f"{row.folder}{prepared}"
    return (f"no; get it with `clocs data download {row.name}`" if row.sources else "no") + prepared


# ------------------------------------------------------------------------------------------------------------ download


@data_group.command("download")
@click.argument("name", shell_complete=COMPLETED["dataset"])
@click.option("--data-root", "root", metavar="FOLDER", help=DATA_ROOT_HELP)
@click.option(
    "--connections",
    type=click.IntRange(1, 8),
    default=8,
    show_default=True,
    help="Download at most this many files at a time.",
)
@pass_session
def download_command(session: Session, name: str, root: str | None, connections: int) -> None:
    """Download a data set and unpack it. An interrupted download resumes where it stopped."""
    dataset = session.catalogue.datasets.get(name).offer
    if not dataset.sources:
        why = "it makes its own recordings" if dataset.embedded else "point at your own files with `clocs run --root`"
        why = f"get it from {dataset.homepage}" if dataset.homepage else why
        echo(f"{name} has nothing to download: {why}.")
        return
    echo(f"{name}: {dataset.summary}")
    echo(f"Licence: {dataset.licence}")
    folder = data_root(root) / name
    fetched = _fetch(dataset, folder, connections)
    rest = "" if len(fetched.new) == len(fetched.files) else "; the others were there"
    echo(f"{len(fetched.new):,} of {len(fetched.files):,} files downloaded to {folder}{rest}.")
    _unpack_all(fetched.archives)
    place = f" --data-root {root}" if root else ""
    echo(f"Next: clocs run --plugin METHOD --dataset {name}{place}   (`clocs plugins` lists the methods)")


def _fetch(dataset: Dataset, folder: Path, connections: int) -> Fetched:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from clocs_core.data.fetching import fetch
    from clocs_core.progress import collect_warnings

    console = Console(stderr=True)
    columns = (TextColumn("downloading"), BarColumn(30), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("download", total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        with collect_warnings(lambda text: click.echo(f"Warning: {text}", err=True)):
            return fetch(dataset.sources, folder, show, connections)


def _unpack_all(archives: Sequence[Path]) -> None:
    from clocs_core.data.fetching import is_unpacked, unpack_beside

    for path in archives:
        if is_unpacked(path):
            echo(f"{path.name} was unpacked before.")
            continue
        echo(f"Unpacking {path.name} …", err=True)
        echo(f"{path.name} unpacked, {unpack_beside(path):,} files.")
