"""The folder of several seeds: a whole run folder for each, and a summary of all.

seeds.toml      settings of the runs, and their seeds
split.json, recordings.json    the patients and recordings that all seeds have
seed0/ …        the runs
summary.html, summary.json     their scores together
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from clocs_core.artifacts.documents import SCHEMA, as_plain, dump_record, load_record, read_text
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.run_folder import MOST_SEEDS, SEEDS, ReportFolder, RunFolder, refuse_taken
from clocs_core.artifacts.run_keeper import FolderKeeper, RunKeeper
from clocs_core.artifacts.split import Split
from clocs_core.contracts.scores import Comparison
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import Tables, read_tables, seal_tables


@attrs.frozen(kw_only=True)
class SeedsScore:
    """The scores of one classifier with all seeds. Fields named as in `Score` have the same meaning.

    values: by seed. sd: their standard deviation, with n - 1; NaN for one seed. low, high: the 95 % interval of the
    mean, over seeds and patients; for one seed over patients alone.
    """

    protocol: str
    init: str
    label_fraction: float
    metric: str
    level: str
    values: tuple[float, ...]
    mean: float
    sd: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class SeedsReport:
    """The content of summary.json. Fields named as in the report of a run have the same meaning.

    seeds: those that are finished, in the order of all values. missing: those that are not, because of an error.
    comparisons: mean differences between classifiers of the same seed, with intervals over seeds and patients.
    seconds: how long each stage of the command took that wrote it; empty in older summaries.
    """

    schema: int = SCHEMA
    method: str
    dataset: str
    task: str | None
    seeds: tuple[int, ...]
    missing: tuple[int, ...] = ()
    best_epochs: tuple[int, ...]
    settings: dict[str, dict[str, object]] = attrs.field(converter=as_plain)
    scores: tuple[SeedsScore, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = attrs.field(factory=dict)
    command: str = ""
    date: str = ""


@attrs.frozen
class SeedsFolder(ReportFolder):
    """The paths of several seeds."""

    @property
    def page(self) -> Path:
        """The summary as an HTML page."""
        return self.path / "summary.html"

    @property
    def settings(self) -> Path:
        """The effective settings of the runs, and their seeds."""
        return self.path / SEEDS

    @property
    def report(self) -> Path:
        """Scores of all seeds together."""
        return self.path / "summary.json"

    def run(self, seed: int) -> RunFolder:
        """The folder of the run with a seed."""
        return RunFolder(self.path / f"seed{seed}")

    def read_report(self) -> SeedsReport:
        """Read summary.json. Raises RunFolderError for a damaged file."""
        return load_record(read_text(self.report), SeedsReport, str(self.report))


class SeedsKeeper:
    """Keeps the files of several seeds. This class writes nothing; it is for runs in memory."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reserve the folder for the duration of the runs."""
        yield

    def begin(self, tables: Tables, seeds: Sequence[int], split: Split, used: UsedRecordings) -> None:
        """Write the settings and the seeds, and the recordings. Raises RunFolderError where earlier runs had others."""

    def of_run(self, seed: int) -> RunKeeper | None:
        """Return the keeper of the run with a seed; None where that run is finished."""
        return RunKeeper()

    def finish(self, report: SeedsReport, page: str) -> None:
        """Write the page and then the summary."""


class SeedsFolderKeeper(SeedsKeeper):
    """Keeps several seeds in a folder, so that a kill at any moment leaves runs that can be resumed."""

    def __init__(self, path: Path, begun: Tables | None = None) -> None:
        """Keep new runs below `path`, or go on with earlier ones. begun: all tables that were found in seeds.toml."""
        self.folder, self.begun = SeedsFolder(path), begun

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reserve the folder. Raises RunFolderError where another process was there since the caller looked."""
        with self.folder.reserve():
            if self.begun is None:
                refuse_taken(self.folder.path)
            elif _read(self.folder) != self.begun:
                raise RunFolderError(f"The settings in {self.folder.path} have just been changed; try again.")
            yield

    def begin(self, tables: Tables, seeds: Sequence[int], split: Split, used: UsedRecordings) -> None:
        """Write seeds.toml, then split.json and recordings.json."""
        if not self.folder.settings.exists():
            write_atomically(self.folder.settings, seal_tables(all_tables(tables, seeds)))
        self.folder.keep_recordings(split, used)

    def of_run(self, seed: int) -> RunKeeper | None:
        """Return the keeper of a new run, or of one that goes on."""
        folder = self.folder.run(seed)
        return None if folder.is_finished else FolderKeeper(folder.path).again()

    def finish(self, report: SeedsReport, page: str) -> None:
        """Write summary.html, then summary.json."""
        write_atomically(self.folder.page, page)
        write_atomically(self.folder.report, dump_record(report))


_TABLE = "seeds"  # in seeds.toml, beside the tables of a run


def list_seeds(first: int, count: int) -> range:
    """Return `count` seeds from the first one on. Raises SettingsError for a count that makes no sense."""
    if not 1 <= count <= MOST_SEEDS:
        raise SettingsError(f"`seeds={count}` is the number of seeds to run, from 1 to {MOST_SEEDS:,}.")
    return range(first, first + count)


def open_seeds_folder(path: Path) -> tuple[SeedsFolder, Tables, range]:
    """Open the folder of several seeds: the settings that its runs share, and the seeds. Raises RunFolderError."""
    folder = SeedsFolder(path)
    tables = _read(folder)
    held = tables.pop(_TABLE, {})
    first, count = held.get("first"), held.get("count")
    if type(first) is not int or type(count) is not int:
        raise RunFolderError(f"{folder.settings} does not say which seeds it is about; start new runs.")
    return folder, tables, range(first, first + count)


def run_folders(path: Path) -> list[Path]:
    """Return the folders of runs that a path stands for: all of those of a folder of several seeds, or itself."""
    if not (path / SEEDS).is_file():
        return [path]
    folder, _, seeds = open_seeds_folder(path)
    return [folder.run(seed).path for seed in seeds]


def is_finished(folder: SeedsFolder, seeds: Sequence[int]) -> bool:
    """Return whether nothing is left to do: the summary has all seeds, and so has the folder.

    Raises RunFolderError where the summary is damaged.
    """
    there = folder.report.exists() and all(folder.run(seed).is_finished for seed in seeds)
    return there and folder.read_report().seeds == tuple(seeds)


def all_tables(tables: Tables, seeds: Sequence[int]) -> Tables:
    """Return what seeds.toml has: the settings of the runs, and their seeds."""
    return {**tables, _TABLE: {"first": seeds[0], "count": len(seeds)}}


def _read(folder: SeedsFolder) -> Tables:
    try:
        return read_tables(folder.settings, edited=False)
    except SettingsError as problem:
        raise RunFolderError(str(problem)) from None


def notes_of_seeds(each: Sequence[tuple[int, Sequence[str]]]) -> tuple[str, ...]:
    """Return the notes of runs, given by their seeds: those that all have once, the others behind their seeds."""
    seeds_of: dict[str, list[int]] = {}
    for seed, notes in each:
        for note in notes:
            seeds_of.setdefault(note, []).append(seed)
    return tuple(
        note if len(mine) == len(each) else f"Seed {', '.join(map(str, mine))}: {note}"
        for note, mine in seeds_of.items()
    )
