"""Prepare the frames of recordings: write shards in parallel, join them into one set, and rename it last of all.

A kill at any moment leaves the old frames, the new frames, or shards from which the next call resumes.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from filelock import FileLock, Timeout
from safetensors.numpy import load_file, save

from clocs_core.contracts.records import DropReport, Entry, Framing
from clocs_core.data.checksums import sum_file
from clocs_core.data.joining import Joining
from clocs_core.data.prepared import (
    FRAMES,
    INDEX,
    MANIFEST,
    SCHEMA,
    Damaged,
    Prepared,
    PreparedAgain,
    open_prepared,
    read_drops,
    seal,
)
from clocs_core.data.recipe import Recipe
from clocs_core.data.shards import Convention, Job, Workers, agree_on_convention, list_jobs, run_jobs
from clocs_core.errors import DataError
from clocs_core.files import sweep, sync_folder, write_atomically
from clocs_core.versions import version_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORGOTTEN = 7 * 86_400  # seconds after which nobody is expected to resume a preparation


def prepare(recipe: Recipe, folder: Path, workers: Workers, progress: Callable[[int, int], None]) -> Prepared:
    """Open the frames of a recipe in `folder`, preparing them first where they are not on disk or are damaged.

    load(entry, options) -> Record runs in `workers` processes of this machine, or by those that make shards elsewhere;
    a recording whose load raises is dropped. Channels are put in the order of the recipe, or of the first recording
    that loads if that is empty. Voltages are converted to that recording's unit. progress(done, total) counts
    recordings, and is not called where nothing is left to do.

    Raises DataError where no recording gives a usable frame, or where the system could not read one today, and OSError
    where the disk is full. Damaged frames are a ClocsWarning.
    """
    _refuse_bad_listing(recipe.entries, recipe.dataset)
    fingerprint = recipe.fingerprint()
    with suppress(DataError):
        return _open_and_tidy(folder, fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{fingerprint}.lock"):
        try:
            return _open_and_tidy(folder, fingerprint)  # another process was first
        except Damaged as problem:
            if (folder / fingerprint).exists():
                warnings.warn(PreparedAgain(problem), stacklevel=2)
        shutil.rmtree(folder / fingerprint, ignore_errors=True)
        _sweep(folder)
        begun = folder / f"{fingerprint}.partial"
        begun.mkdir(exist_ok=True)
        convention = agree_on_convention(begun, recipe)
        jobs = list_jobs(begun, recipe, convention)
        target = begun / "assembled"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        joining = Joining(jobs, target / FRAMES, len(convention.channels) * recipe.framing.frame_samples)
        run_jobs(jobs, workers, progress, recipe.dataset, joining.add)
        if recipe.fingerprint() != fingerprint:  # a drive was unplugged, or somebody edits the files
            shutil.rmtree(begun)
            raise DataError(
                f"{recipe.dataset}: files of recordings changed while they were read. Run the same command again."
            )
        facts = {"dataset": recipe.dataset, "revision": recipe.revision, "fingerprint": fingerprint}
        _assemble(target, jobs, joining, facts, recipe.framing, convention)
        target.rename(folder / fingerprint)
        sync_folder(folder)
    return _open_and_tidy(folder, fingerprint)


def _refuse_bad_listing(entries: Sequence[Entry], dataset: str) -> None:
    if not entries:
        raise DataError(f"{dataset}: there is no recording to prepare. Check the folder, and the drops of its scan.")
    record, times = Counter(entry.record for entry in entries).most_common(1)[0]
    if times > 1:
        raise DataError(f"{dataset}: record {record} is listed {times} times; each needs a unique name.")


def _open_and_tidy(folder: Path, fingerprint: str) -> Prepared:
    prepared = open_prepared(folder, fingerprint)
    shutil.rmtree(folder / f"{fingerprint}.partial", ignore_errors=True)  # a kill may have come before this
    return prepared


def _sweep(folder: Path) -> None:
    """Delete what killed preparations left: shards of other sets after a week, for they can be resumed."""
    for partial in folder.glob("*.partial"):
        with suppress(OSError, Timeout):
            if time.time() - partial.stat().st_mtime > _FORGOTTEN:
                with FileLock(folder / f"{partial.stem}.lock", timeout=0):  # a live preparation holds it
                    shutil.rmtree(partial)
    for one in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        sweep(one)


def _assemble(
    target: Path,
    jobs: list[Job],
    joining: Joining,
    facts: Mapping[str, object],
    framing: Framing,
    convention: Convention,
) -> None:
    """Write the index and the manifest of the joined shards to `target`, and flush all of it to disk."""
    shards = joining.shards
    records = [pair for shard in shards for pair in shard["records"]]
    drops = sum((read_drops(shard["drops"]) for shard in shards), DropReport())
    index = _join_indices(jobs, [len(shard["records"]) for shard in shards])
    if not index["valid"].any():
        shutil.rmtree(target.parent)  # tiny, and useless to a call with other settings
        raise _no_usable_frame(facts, framing, drops, max(tuple(shard["longest"]) for shard in shards), bool(records))
    if not joining.lossless:
        index["gain"][:] = 1.0  # integers are divided by their gain while they are copied
    rates, seconds = (_counts(shards, name) for name in ("rates", "seconds"))
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        **facts,
        "framing": attrs.asdict(framing),
        "channels": convention.channels,
        "unit": convention.unit,
        "sampling_rates": sorted(rates.items()),
        "record_seconds": sorted(seconds.items()),
        "shape": [len(index["start"]), len(convention.channels), framing.frame_samples],
        "stored": "<i2" if joining.lossless else "<f4",
        "drops": attrs.asdict(drops),
        "tolerated": attrs.asdict(sum((read_drops(shard["tolerated"]) for shard in shards), DropReport())),
        "versions": {name: version_of(name) for name in ("clocs", "numpy", "scipy")},
        "files": {
            FRAMES: joining.finish(),
            INDEX: _save_index(target / INDEX, index),
        },
        "records": records,
    }
    manifest["sha256"] = seal(manifest)
    write_atomically(target / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
    sync_folder(target)


def _counts(shards: Sequence[Mapping[str, Any]], name: str) -> Counter[float]:
    """Add the counts of all shards; those of an earlier version may lack them."""
    return sum((Counter(dict(map(tuple, shard.get(name, ())))) for shard in shards), Counter[float]())


def _join_indices(jobs: list[Job], records: list[int]) -> dict[str, NDArray[Any]]:
    """Concatenate the indices of the shards, and number their records from shard to shard."""
    indices = [load_file(job.file(".index")) for job in jobs]
    before = 0
    for index, count in zip(indices, records, strict=True):
        index["record"] = index["record"] + before
        before += count
    return {name: np.concatenate([index[name] for index in indices]) for name in indices[0]}


def _save_index(path: Path, index: dict[str, NDArray[Any]]) -> list[tuple[object, ...]]:
    write_atomically(path, save(index))
    return [attrs.astuple(sum_file(path))]


def _no_usable_frame(
    facts: Mapping[str, object],
    framing: Framing,
    drops: DropReport,
    longest: tuple[float, int, float, str],
    some_frames: bool,
) -> DataError:
    if some_frames or not longest[1]:
        return DataError(f"{facts['dataset']}: no frame can be used: {drops.sentence()}. Check the recordings.")
    field = "source_samples" if framing.source_samples else "frame_samples"
    rate = f" at {framing.sampling_rate:g} Hz" if framing.sampling_rate else ""
    seconds, samples, own_rate, record = longest
    half = max(1, samples // 2)
    way_out = (
        f"Ask for shorter frames, such as `frame_samples={max(1, int(seconds * framing.sampling_rate) // 2)}`"
        if framing.sampling_rate
        else f"Windows of half of it can be resampled to a frame each: `source_samples={half}`"
    )
    return DataError(
        f"{facts['dataset']}: no recording gives a frame of {getattr(framing, field)} samples{rate}. The longest, "
        f"{record}, has {samples} samples ({seconds:g} s at {own_rate:g} Hz). {way_out}. In total: "
        f"{drops.sentence()}."
    )
