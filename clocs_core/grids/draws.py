"""Make bootstrap draws of cells from their raw predictions, for intervals and paired differences.

Drawing costs half a second for 20,000 rows, so draws are kept as files, and made by several threads: NumPy lets others
run while it sorts (two threads take half the time of one). While a grid waits for its jobs, draws_ahead.py makes the
draws of those that have ended, so that the page has few left to make.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from hashlib import sha256
from pathlib import Path

import attrs
import numpy as np

from clocs_core import seeds
from clocs_core.artifacts.predictions import PredictedRows, read_predicted_rows
from clocs_core.contracts.result_offers import Metric
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.bootstrap import Interval, bootstrap, cut_interval
from clocs_core.evaluation.identification import find_recall
from clocs_core.evaluation.linear import by_record
from clocs_core.files import sweep, write_atomically
from clocs_core.grids.cells import GridCell, digest
from clocs_core.grids.measure import Measure
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins


@attrs.frozen
class Source:
    """The predictions of one classifier, and the file that keeps their draws."""

    predictions: Path
    protocol: str
    init: str
    label_fraction: float
    split_seed: int
    measure: Measure
    kept: Path

    @property
    def is_kept(self) -> bool:
        """Whether there are draws, and none of older predictions. Predictions may be deleted once they are drawn."""
        if not self.kept.exists():
            return False
        return not self.predictions.exists() or self.predictions.stat().st_mtime_ns <= self.kept.stat().st_mtime_ns


def source_of(cell: GridCell, init: str, predictions: Path, measure: Measure, out: Path) -> Source:
    """Say where the draws of a cell come from, for the trained encoder or for `random`."""
    about = f"{init}-F{cell.label_fraction:g}-{measure.metric}-{measure.level}-{measure.resamples}"
    kept = out / "draws" / digest(cell.evaluation) / f"{about}.npy"
    seed = cell.pretraining.split_seed
    return Source(predictions, cell.protocol, init, cell.label_fraction, seed, measure, kept)


def sources_of(cell: GridCell, predictions: Path, measure: Measure, out: Path) -> tuple[Source, Source]:
    """Say where the draws of a cell come from: those of the trained encoder, and of `random` beside it."""
    trained = source_of(cell, cell.pretraining.method, predictions, measure, out)
    return trained, source_of(cell, RANDOM, predictions, measure, out)


def fill_draws(sources: Iterable[Source], at_once: int, tick: Callable[[int, int], None]) -> None:
    """Make the draws that are not kept yet. A cell whose predictions are damaged has no interval.

    Raises OSError where the system cannot read a file today: the next call would find other cells.
    """
    folders = missing_draws(sources)
    for name in {source.measure.metric for each in folders.values() for source in each}:
        find_metric(name)
    total, made = sum(map(len, folders.values())), 0
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="draws")
    try:
        for done in as_completed([pool.submit(make_draws, each) for each in folders.values()]):
            made += done.result()
            tick(made, total)
    finally:
        pool.shutdown(cancel_futures=True)


def missing_draws(sources: Iterable[Source]) -> dict[Path, list[Source]]:
    """Return the draws that are not kept yet and can be made, by folder."""
    folders: dict[Path, list[Source]] = {}
    for source in dict.fromkeys(sources):
        if not source.is_kept and source.predictions.exists():
            folders.setdefault(source.kept.parent, []).append(source)
    return folders


def read_draws(source: Source) -> Interval | None:
    """Read the value of a cell with its draws; None where there are none."""
    if not source.is_kept:
        return None
    numbers = np.load(source.kept, allow_pickle=False)  # (1 + resamples,): the value, then its draws
    return cut_interval(float(numbers[0]), numbers[1:], find_metric(source.measure.metric).limits)


def scored_rows(source: Source) -> str:
    """Return a hash of the patients, recordings and labels that were scored; "" where nothing says them any more.

    Draws of two cells may be compared where they are the same: the split alone does not say who has frames and labels.
    """
    kept = _rows_file(source)
    if not kept.exists():
        found = _read(source.predictions) if source.predictions.exists() else None
        if found is None:
            return ""
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, _hash_rows(found).encode())
    return kept.read_text(encoding="ascii")


def _rows_file(source: Source) -> Path:
    return source.kept.parent / "rows.sha256"


def _hash_rows(rows: PredictedRows) -> str:
    label = rows.label if rows.label.ndim == 1 else rows.label.astype(np.int64)
    each = zip(rows.patient.tolist(), rows.record.tolist(), label.tolist(), strict=True)
    return sha256(json.dumps(sorted({json.dumps(one) for one in each})).encode()).hexdigest()


def make_draws(sources: Sequence[Source]) -> int:
    """Make the draws of one folder; return the number of sources. One thread works on a folder: it sweeps it first."""
    read = {path: _read(path) for path in dict.fromkeys(source.predictions for source in sources)}
    written: set[Path] = set()
    for source in sources:
        whole = read[source.predictions]
        rows = None if whole is None else whole.predicted.get((source.protocol, source.init, source.label_fraction))
        if whole is None or rows is None:  # damaged, or made without this classifier
            continue
        rows = by_record(rows) if source.measure.level == "record" else rows
        seed = seeds.derive(source.split_seed, "bootstrap")  # as `clocs` itself draws
        found = bootstrap(rows, find_metric(source.measure.metric), source.measure.resamples, seed)
        source.kept.parent.mkdir(parents=True, exist_ok=True)
        sweep(source.kept.parent)  # what a killed grid was writing
        if source.predictions not in written:
            write_atomically(_rows_file(source), _hash_rows(whole).encode())
            written.add(source.predictions)
        write_atomically(source.kept, _bytes(np.append(found.value, found.draws)))
    return len(sources)


def _read(path: Path) -> PredictedRows | None:
    """Read the rows of all classifiers; None where the file is damaged."""
    try:
        return read_predicted_rows(path)
    except RunFolderError:
        return None


def _bytes(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    np.save(buffer, numbers, allow_pickle=False)
    return buffer.getvalue()


@cache
def find_metric(name: str) -> Metric:
    """Load the plugins, and return a metric by its name. Call it in one thread first: several would load them twice."""
    if (own := find_recall(name)) is not None:
        return own
    catalogue, _ = build_catalogue(load_plugins(installed_entry_points()))
    return catalogue.metrics.get(name).offer
