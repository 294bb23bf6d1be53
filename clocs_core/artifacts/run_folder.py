"""The folder of a run: its files, how to create it, and how to open it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import sync_folder, write_atomically
from clocs_core.settings.toml_file import Tables, dump_tables, read_tables


@attrs.frozen
class ReportFolder:
    """The paths that runs and evaluations share. `settings` is written first, `report` last, when it is finished."""

    path: Path

    @property
    def settings(self) -> Path:
        """The effective settings; `clocs run --config` with those of a run repeats it."""
        return self.path / "settings.toml"

    @property
    def split(self) -> Path:
        """The part of each patient."""
        return self.path / "split.json"

    @property
    def predictions(self) -> Path:
        """The predictions of each classifier for each scored row."""
        return self.path / "predictions.npz"

    @property
    def report(self) -> Path:
        """Scores with their controls."""
        return self.path / "report.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock this folder. The system releases the lock when the process ends, even by a kill."""
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.path / ".lock", timeout=0):
                yield
        except Timeout:
            raise RunFolderError(f"Another process is working in {self.path}; wait until it has ended.") from None


@attrs.frozen
class RunFolder(ReportFolder):
    """The paths of a run."""

    @property
    def checkpoint(self) -> Path:
        """The latest state of training."""
        return self.path / "checkpoint.safetensors"

    @property
    def encoder(self) -> Path:
        """The best encoder: weights and card."""
        return self.path / "encoder.safetensors"

    @property
    def metrics(self) -> Path:
        """One JSON line per epoch."""
        return self.path / "metrics.jsonl"

    @property
    def profile(self) -> Path:
        """Traces of training steps, if requested."""
        return self.path / "profile"

    @property
    def page(self) -> Path:
        """The report as an HTML page."""
        return self.path / "report.html"


def refuse_taken(path: Path) -> None:
    """Raise RunFolderError where a new run folder cannot be created at `path`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunFolderError(
            f"{path} is there already. Choose another folder with `out=...`, or, if it is a run that was interrupted, "
            f"go on with it: `pretrain(..., out={str(path)!r})`."
        )
    above = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):  # fail now, not after an hour of reading recordings
        raise RunFolderError(f"Cannot make the run folder {path}: {above} is not a folder that can be written to.")


def refuse_other_settings(path: Path, stored: Tables, asked: Tables) -> None:
    """Raise RunFolderError where a run folder was created with other settings than the requested ones.

    Data paths may differ. Channels may be missing from `asked`, because some are known only once files are read.
    """
    for table in sorted({*stored, *asked}):
        before, now = stored.get(table, {}), asked.get(table, {})
        for key in sorted({*before, *now}):
            if table == "data" and (key in ("root", "data_root") or (key == "channels" and not now.get(key))):
                continue
            if before.get(key) != now.get(key):
                raise RunFolderError(
                    f"{path} holds a run with other settings: {table}.{key} is {before.get(key)!r} there and "
                    f"{now.get(key)!r} here. Choose another folder with `out=...`."
                )


def create_run_folder(path: Path, tables: Tables) -> RunFolder:
    """Create a run folder with its settings, atomically. Raises RunFolderError where it cannot be created."""
    refuse_taken(path)
    folder = RunFolder(path)
    try:
        if path.exists():  # empty; a rename cannot replace the current folder or a mount point
            write_atomically(folder.settings, dump_tables(tables))
        else:
            _make_and_move(folder, dump_tables(tables))
    except OSError as problem:
        raise RunFolderError(f"Cannot make the run folder {path}: {problem.strerror or problem}.") from None
    return folder


def _make_and_move(folder: RunFolder, settings: str) -> None:
    path = folder.path
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        write_atomically(RunFolder(temporary).settings, settings)
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def open_run_folder(path: Path) -> tuple[RunFolder, Tables]:
    """Open a run folder and read its settings. Raises RunFolderError where it is none, or of another version."""
    folder = RunFolder(path)
    if not folder.settings.is_file():
        found = "is not there" if not path.exists() else "has no settings.toml"
        raise RunFolderError(f"{path} is not a run folder: it {found}. Give the folder that `pretrain` made.")
    try:
        return folder, read_tables(folder.settings)
    except SettingsError as problem:
        raise RunFolderError(str(problem)) from None
