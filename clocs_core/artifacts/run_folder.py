"""The folder of a run: its files, how to reserve it, and how to open it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core.artifacts.documents import dump_record, load_record
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.split import Split, from_json, to_json
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import is_temporary, sweep, write_atomically
from clocs_core.settings.sections import default_settings
from clocs_core.settings.toml_file import Tables, read_tables

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
SEEDS = "seeds.toml"
"""The settings in a folder of several seeds, which has the folder of a run for each."""

MOST_SEEDS = 1000
"""Seeds that one call may ask for: more is a slip of the finger."""


@attrs.frozen
class ReportFolder:
    """The paths that runs and evaluations share. `settings` is written first, `report` last, when it is finished."""

    path: Path

    @property
    def page(self) -> Path:
        """The report as an HTML page."""
        return self.path / "report.html"

    @property
    def settings(self) -> Path:
        """The effective settings; `clocs run --config` with those of a run repeats it."""
        return self.path / "settings.toml"

    @property
    def split(self) -> Path:
        """The part of each patient."""
        return self.path / "split.json"

    @property
    def recordings(self) -> Path:
        """The recordings that it was begun with, as counts and hashes."""
        return self.path / "recordings.json"

    @property
    def predictions(self) -> Path:
        """The predictions of each classifier for each scored row."""
        return self.path / "predictions.npz"

    @property
    def report(self) -> Path:
        """Scores with their controls."""
        return self.path / "report.json"

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Create this folder if it is missing, lock it, and delete the temporary files of killed processes.

        The system releases the lock when the process ends, even by a kill. Where no settings are written inside, the
        folder is removed at the end, along with the folders above it that were missing: a mistake leaves nothing.
        """
        with removed_if_empty(self.path):
            lock = self._lock()
            try:
                for folder in (self.path, *(one for one in self.path.glob("*") if one.name in _SWEPT)):
                    sweep(folder)
                yield
            finally:
                if not self.settings.exists():
                    with suppress(OSError):  # Windows removes it when it is released
                        (self.path / LOCK).unlink()
                lock.release()

    def _lock(self) -> BaseFileLock:
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK, timeout=0)
        for _ in range(_TRIES):
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                lock.acquire()
            except Timeout:
                raise RunFolderError(
                    f"Another process is working in {self.path}; wait until it has ended, or choose another folder "
                    "with `out=...`."
                ) from None
            except FileNotFoundError:  # a process that was refused has just removed the folder
                continue
            except (OSError, NotImplementedError) as problem:  # filelock raises the second where a disk has no locks
                why = getattr(problem, "strerror", None) or problem
                raise RunFolderError(f"Cannot make or lock the folder {self.path}: {why}.") from None
            if (self.path / LOCK).exists():
                return lock
            lock.release()  # the file was removed as above
        raise RunFolderError(f"Cannot make the folder {self.path}: it disappears at once.")

    def keep_recordings(self, split: Split, used: UsedRecordings) -> None:
        """Write the split and the recordings. Raises RunFolderError where the folder was begun with other recordings.

        Results of before and after a change would otherwise be of different patients.
        """
        why = ""
        if self.recordings.exists():
            text = self.recordings.read_text(encoding="utf-8")
            why = load_record(text, UsedRecordings, str(self.recordings)).difference(used)
        elif self.split.exists() and from_json(self.split.read_text(encoding="utf-8")).hash != split.hash:
            why = "other patients are in its parts"  # begun before recordings were kept
        if why:
            raise RunFolderError(
                f"The recordings have changed since {self.path} was begun: {why}. Put them back as they were, or begin "
                "anew in another folder with `out=...`."
            )
        write_atomically(self.split, to_json(split))
        if not self.recordings.exists():
            write_atomically(self.recordings, dump_record(used))


_SWEPT = ("cells", "classifiers")  # folders inside, which the same lock protects
_TRIES = 9


@contextmanager
def removed_if_empty(path: Path) -> Iterator[None]:
    """At the end, remove this folder and the folders above it that are missing now, up to one that is not empty."""
    # Path.exists would raise PermissionError below a folder that is closed to this user.
    missing = [one for one in (path, *path.parents) if not os.path.exists(one)]  # noqa: PTH110
    try:
        yield
    finally:
        with suppress(OSError):
            for folder in missing:
                if any(folder.iterdir()):
                    break
                folder.rmdir()


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

    def encoder_of(self, name: str) -> Path:
        """The file of an encoder beside the first, by the name of its reader; empty: that of the first."""
        return self.path / f"encoder-{name}.safetensors" if name else self.encoder

    @property
    def metrics(self) -> Path:
        """One JSON line per epoch."""
        return self.path / "metrics.jsonl"

    @property
    def profile(self) -> Path:
        """Traces of training steps, if requested."""
        return self.path / "profile"

    @property
    def told(self) -> Path:
        """The last epoch that listeners were told of. Removed once they were told of the end of the run."""
        return self.path / ".told"

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do: the report is written, and listeners know."""
        return self.report.exists() and not self.told.exists()


def refuse_taken(path: Path) -> None:
    """Raise RunFolderError where a new run folder cannot be created at `path`.

    A run that was killed before it wrote its settings leaves a lock and perhaps a temporary file: such a place is free.
    """
    if not is_free(path):
        if (path / SEEDS).is_file():
            raise RunFolderError(
                f"{path} has runs of several seeds already. Choose another folder with `out=...`, or, if they were "
                f"interrupted, go on with them: `pretrain_seeds(..., out={str(path)!r})`."
            )
        raise RunFolderError(
            f"{path} is there already. Choose another folder with `out=...`, or, if it is a run that was interrupted, "
            f"go on with it: `pretrain(..., out={str(path)!r})`."
        )
    above = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):  # fail now, not after an hour of reading recordings
        raise RunFolderError(f"Cannot make the run folder {path}: {above} is not a folder that can be written to.")


def is_free(path: Path) -> bool:
    """Return whether nothing is at `path`, or a folder that holds nothing but remains of `ReportFolder.reserve`."""
    if not path.is_dir():
        return not path.exists()
    return all(one.name == LOCK or is_temporary(one.name) for one in path.iterdir())


_FREE = {("data", "root"), ("data", "data_root"), ("evaluate", "pictures")}  # settings that change no result


def refuse_other_settings(path: Path, stored: Tables, asked: Tables) -> None:
    """Raise RunFolderError where a run folder was created with other settings than the requested ones.

    Data paths and pictures may differ: they change no result. Channels, framings and a constant may be missing from
    `asked`, because some are known only once files are read. A setting that an earlier version did not store had its
    default.
    """
    unknown: dict[str, tuple[object, ...]] = {"channels": ([], ""), "constant": ("none",)}  # until files are read
    unread = {name for name in stored if name.endswith("_framing") and name not in asked}
    for table in sorted({*stored, *asked} - unread):
        before, now, default = stored.get(table, {}), asked.get(table, {}), default_settings(table)
        for key in sorted({*before, *now}):
            if (table, key) in _FREE or (table == "data" and now.get(key, "") in unknown.get(key, ())):
                continue
            there = before.get(key, default.get(key))
            if there != now.get(key):
                raise RunFolderError(
                    f"{path} holds a run with other settings: {table}.{key} is {there!r} there and "
                    f"{now.get(key)!r} here. Choose another folder with `out=...`."
                )


def open_run_folder(path: Path) -> tuple[RunFolder, Tables]:
    """Open a run folder and read its settings. Raises RunFolderError where it is none, or of another version."""
    folder = RunFolder(path)
    if not folder.settings.is_file():
        if (path / SEEDS).is_file():
            raise RunFolderError(holds_seeds(path))
        found = "is not there" if not path.exists() else "has no settings.toml"
        raise RunFolderError(f"{path} is not a run folder: it {found}. Give the folder that `pretrain` made.")
    try:
        tables = read_tables(folder.settings, edited=False)
    except SettingsError as problem:
        raise RunFolderError(str(problem)) from None
    if "evaluation" in tables:
        raise RunFolderError(no_run(path))
    return folder, tables


def holds_seeds(path: Path) -> str:
    """Say of a folder of several seeds what it is, and what to open instead."""
    runs = sorted((one.name for one in path.glob("seed*") if one.is_dir()), key=lambda name: (len(name), name))
    return f"{path} holds runs of several seeds; give the folder of one of them, such as {path / (*runs, 'seed0')[0]}."


def no_run(path: Path) -> str:
    """Say of the folder of an evaluation what it is, and what to open instead."""
    run = path.absolute().parent.parent
    instead = f"its encoder is that of the run {run}" if RunFolder(run).encoder.exists() else "it has no encoder"
    return (
        f"{path} is an evaluation, not a run: {instead}. Its results are in report.json, for `clocs compare`; an "
        "interrupted one goes on when the same `clocs evaluate` is given again."
    )
