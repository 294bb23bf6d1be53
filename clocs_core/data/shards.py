"""Load, frame and write a shard of recordings in a worker process, with one recording in memory at a time.

A shard is finished when its .json exists, which is written last; an interrupted preparation keeps finished shards.
Workers import this module: no torch here.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from pathlib import Path
from socket import gethostname
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs
import numpy as np
from safetensors.numpy import save

from clocs_core.contracts.records import FASTEST, SLOWEST, Drop, DropReport, Entry, Framing, Record
from clocs_core.contracts.units import MICROVOLTS
from clocs_core.data.checksums import Summing, sum_file
from clocs_core.data.framing import Frames, cut_frames
from clocs_core.data.recipe import Recipe
from clocs_core.data.regular_file import is_passing
from clocs_core.errors import DataError
from clocs_core.files import write_atomically
from clocs_core.worker_processes import end_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clocs_core.contracts.offers import Load

SHARD = 64  # recordings per shard, which a kill can lose: about 15 MB of ten-second twelve-lead recordings
IN_PROCESS = 256  # for at most this many recordings, starting workers takes longer than the work
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from malloc.h


@attrs.frozen
class Convention:
    """The channels and the unit that all recordings of a set are converted to."""

    channels: tuple[str, ...]
    unit: str


@attrs.frozen(eq=False)
class Job:
    """One shard: recordings to load, frame and write to `<path>.bin`, `.index` and, last of all, `.json`."""

    path: Path
    entries: tuple[Entry, ...]
    load: Load
    options: Any
    framing: Framing
    convention: Convention

    def file(self, suffix: str) -> Path:
        """Return the path of one of the shard's three files."""
        return self.path.with_suffix(suffix)

    def done(self) -> bool:
        """Return whether an earlier call finished this shard with the same recordings."""
        try:
            held = json.loads(self.file(".json").read_text(encoding="utf-8"))
            whole = [list(attrs.astuple(sum_file(self.file(suffix)))) for suffix in (".bin", ".index")]
            return bool(held["pieces"] == whole and held["asked"] == [entry.record for entry in self.entries])
        except (OSError, ValueError, KeyError, TypeError):
            return False


def agree_on_convention(partial: Path, recipe: Recipe) -> Convention:
    """Take channels and unit of the set from the first entry that loads, so that no worker's speed decides them."""
    kept = partial / "convention.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        held = json.loads(kept.read_text(encoding="utf-8"))
        return Convention(tuple(held["channels"]), held["unit"])
    failure: Exception | None = None
    dataset, entries = recipe.dataset, recipe.entries
    for entry in entries:
        found = _load_one(entry, recipe.load, recipe.options)
        if isinstance(found, Record):
            convention = Convention(recipe.channels or found.channels, found.unit)
            write_atomically(kept, json.dumps(attrs.asdict(convention)))
            return convention
        if is_passing(found):  # another recording must not decide because this one cannot be read today
            raise _not_today(dataset, [f"{entry.record}: {found}"], len(entries)) from found
        failure = failure or found
    shutil.rmtree(partial)
    raise DataError(
        f"{dataset}: none of {len(entries):,} recordings could be read. The first, {entries[0].record}: {failure!r}. "
        "Check the folder, and that what its reader needs is installed."
    ) from failure


def _not_today(dataset: str, failures: Sequence[str], recordings: int) -> DataError:
    return DataError(
        f"{dataset}: {len(failures):,} of {recordings:,} recordings could not be read now, which says nothing about "
        f"them. The first, {failures[0].rstrip('.')}. All others are kept: repair this and run the same command again, "
        "or move the files of these recordings away to go on without them."
    )


def _load_one(entry: Entry, load: Load, options: Any) -> Record | Exception:
    """Return the recording, or the exception of its load: a damaged file costs one recording. MemoryError is raised."""
    try:
        found: object = load(entry, options)
        if not isinstance(found, Record):
            raise TypeError(f"its reader must return a Record, got {found!r:.60}")
        return attrs.evolve(found, record=entry.record)
    except MemoryError:
        raise
    except Exception as error:
        return error


def _say(problem: Exception, entry: Entry) -> str:
    """Return what was wrong in at most a line, without the paths of the recording, which has a name."""
    text = " ".join(str(problem).split())
    for path in entry.files:
        text = text.replace(str(path), "it")
    return shorten(text.rstrip("."), 160, placeholder=" …")


def list_jobs(partial: Path, recipe: Recipe, convention: Convention) -> list[Job]:
    """Return the shards of a set, in the order of its entries."""
    entries = recipe.entries
    parts = [tuple(entries[first : first + SHARD]) for first in range(0, len(entries), SHARD)]
    return [
        Job(partial / f"shard-{number:05d}", part, recipe.load, recipe.options, recipe.framing, convention)
        for number, part in enumerate(parts)
    ]


class ShardMaker(Protocol):
    """Makes shards in other ways than in processes of this machine."""

    def make(self, shards: list[Job]) -> Generator[tuple[Job, list[str]], None, None]:
        """Make shards in any order, and yield each with the recordings that could not be read."""


Workers: TypeAlias = int | ShardMaker
"""The number of processes of this machine that read recordings, or others that do it for them."""


def run_jobs(
    jobs: list[Job],
    workers: Workers,
    progress: Callable[[int, int], None],
    dataset: str,
    finished: Callable[[Job], None] = lambda job: None,
) -> None:
    """Make the unfinished shards, here, in workers or elsewhere, in any order. `finished` is told of every shard.

    Raises DataError where the system could not read some recordings. A set without them would give other results
    under the same name, so their shards are not finished, and the next call reads them again.
    """
    total = sum(len(job.entries) for job in jobs)
    left = []
    for job in jobs:
        if job.done():
            finished(job)
        else:
            left.append(job)
    waiting = sum(len(job.entries) for job in left)
    done = total - waiting
    progress(done, total)
    with closing(_making(left, workers)) as shards:
        failures: list[str] = []
        for job, failed in shards:
            done += len(job.entries)
            failures += failed
            if not failed:
                finished(job)
            progress(done, total)
    if failures:
        raise _not_today(dataset, sorted(failures), total)


def _making(jobs: list[Job], workers: Workers) -> Generator[tuple[Job, list[str]], None, None]:
    if not jobs:
        return ((job, []) for job in jobs)
    if not isinstance(workers, int):
        return workers.make(jobs)
    if workers <= 1 or sum(len(job.entries) for job in jobs) <= IN_PROCESS:
        return ((job, make_shard(job)) for job in jobs)
    return _in_workers(jobs, workers)


def _in_workers(jobs: list[Job], workers: int) -> Generator[tuple[Job, list[str]], None, None]:
    """Make shards in worker processes, and yield the result of each when it is done.

    loky starts new processes without fork, which can hang where there are threads or a CUDA context, and without
    running the main script again. With multiprocessing's spawn, a script without a main guard started itself in every
    worker, and all of them waited for the lock of the preparation.
    """
    from loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(workers, initializer=_begin_worker, initargs=(os.getpid(),))
    try:
        made = {pool.submit(make_shard, job): job for job in jobs}
        for future in as_completed(made):
            yield made[future], future.result()
    except BrokenProcessPool as error:
        raise DataError(
            f"One of {workers} processes that read recordings was killed, perhaps because memory ran out. "
            "Finished work is kept: run the same command again, with fewer workers."
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _begin_worker(parent: int) -> None:
    _keep_freed_memory()
    end_with(parent)


def _keep_freed_memory() -> None:
    """Tell glibc to keep memory that numpy frees: fresh pages for each recording cost a tenth of a worker's time."""
    with suppress(OSError, AttributeError, TypeError):  # another C library has no such function
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 26)
        mallopt(_M_TRIM_THRESHOLD, 1 << 28)


def make_shard(job: Job) -> list[str]:
    """Load, frame and write the recordings of one shard, one in memory at a time.

    Return those that the system could not read, with the reason; the shard is then not finished.
    """
    shard, sums = _Shard(), Summing()
    # Renamed when it is whole: a machine that was given up for lost may still write the same shard as another one.
    aside = job.path.with_name(f".{job.path.name}.{gethostname()}.{os.getpid()}.tmp")
    # Not flushed to the disk: a kill loses no written bytes, and checksums detect losses after a power cut.
    with open(aside, "wb") as file:
        for entry in job.entries:
            frames = shard.frames_of(entry, job)
            if frames is not None and len(frames.start):
                stored = "<i2" if frames.samples.dtype == np.int16 else "<f4"
                piece = np.ascontiguousarray(frames.samples, dtype=stored).data
                sums.update(piece)
                file.write(piece)
    if shard.failures:
        aside.unlink()
        return shard.failures
    aside.replace(job.file(".bin"))
    aside.write_bytes(save(shard.index(len(job.convention.channels))))
    aside.replace(job.file(".index"))
    facts = {
        "asked": [entry.record for entry in job.entries],
        "pieces": [attrs.astuple(sums.piece()), attrs.astuple(sum_file(job.file(".index")))],
        "records": shard.records,
        "stored": shard.stored,
        "rates": sorted(shard.rates.items()),
        "seconds": sorted(shard.seconds.items()),
        "longest": shard.longest,
        "drops": attrs.asdict(DropReport.of(shard.drops)),
        "tolerated": attrs.asdict(DropReport.of(shard.tolerated)),
    }
    write_atomically(job.file(".json"), json.dumps(facts))
    return []


@attrs.define
class _Shard:
    """The index and facts of a shard, collected while it is made."""

    records: list[tuple[str, str]] = attrs.field(factory=list)
    valid: list[NDArray[np.bool_]] = attrs.field(factory=list)
    start: list[NDArray[np.int64]] = attrs.field(factory=list)
    gain: list[float] = attrs.field(factory=list)
    stored: list[tuple[int, str]] = attrs.field(factory=list)  # frames of each record, and their type
    drops: list[Drop] = attrs.field(factory=list)
    tolerated: list[Drop] = attrs.field(factory=list)  # counted like drops, though nothing is dropped
    failures: list[str] = attrs.field(factory=list)  # recordings that the system could not read, with the reason
    rates: Counter[float] = attrs.field(factory=Counter)
    seconds: Counter[float] = attrs.field(factory=Counter)  # recordings by how long they last, in s, to four digits
    longest: tuple[float, int, float, str] = (0.0, 0, 0.0, "")  # seconds, samples, Hz, record

    def frames_of(self, entry: Entry, job: Job) -> Frames | None:
        """Load and frame one recording, and record all but its samples."""
        found = _load_one(entry, job.load, job.options)
        if isinstance(found, Exception) and is_passing(found):
            self.failures.append(f"{entry.record}: {found}")
            return None
        if isinstance(found, Exception):
            self.drops.append(Drop(f"unreadable: {type(found).__name__}", entry.record, why=_say(found, entry)))
            return None
        self.tolerated.extend(
            Drop(f"{what[:1].lower()}{what[1:]}".rstrip("."), entry.record) for what in found.tolerated
        )
        samples, rate = found.samples.shape[1], float(found.sampling_rate)
        if not SLOWEST <= rate <= FASTEST:
            self.drops.append(Drop("implausible sampling rate", entry.record))
            return None
        self.rates[rate] += 1
        self.longest = max(self.longest, (samples / rate, samples, rate, entry.record))
        record = _conform(found, job.convention)
        if isinstance(record, Drop):
            self.drops.append(record)
            return None
        frames = cut_frames(record, job.framing)
        self.drops.extend(frames.drops)
        if len(frames.start):
            self.records.append((entry.record, entry.patient))
            self.seconds[float(f"{samples / rate:.4g}")] += 1  # those that last nearly alike are counted together
            self.valid.append(frames.valid)
            self.start.append(frames.start)
            self.gain.append(frames.gain)
            self.stored.append((len(frames.start), "<i2" if frames.samples.dtype == np.int16 else "<f4"))
        return frames

    def index(self, channels: int) -> dict[str, NDArray[Any]]:
        none, counts = np.zeros(0, dtype=np.int64), [len(start) for start in self.start]
        return {
            "valid": np.concatenate([np.zeros((0, channels), np.bool_), *self.valid]).astype(np.uint8),
            "start": np.concatenate([none, *self.start]),
            "gain": np.repeat(np.array(self.gain, dtype=np.float64), counts),
            "record": np.repeat(np.arange(len(counts), dtype=np.int64), counts),
            "position": np.concatenate([none, *map(np.arange, counts)]),
        }


def _conform(record: Record, convention: Convention) -> Record | Drop:
    """Put a record's channels in the order of the set and its samples in the unit of the set."""
    missing = [name for name in convention.channels if name not in record.channels]
    if missing:
        return Drop(f"missing channel {missing[0]}", record.record)
    samples, gain = record.samples, record.gain
    if record.channels != convention.channels:
        samples = samples[[record.channels.index(name) for name in convention.channels]]
    if record.unit != convention.unit:
        if not {record.unit, convention.unit} <= MICROVOLTS.keys():
            return Drop(f"unit {record.unit} instead of {convention.unit}", record.record)
        # Microvolts are whole numbers, so both are exact: integer samples keep their type, only the gain changes.
        up, down = MICROVOLTS[record.unit], MICROVOLTS[convention.unit]
        if samples.dtype.kind == "i":
            gain = gain * down / up
        else:
            samples = samples.astype(np.float64) * up / down
    conforming: dict[str, Any] = {"samples": samples, "gain": gain, **attrs.asdict(convention)}
    return attrs.evolve(record, **conforming)
