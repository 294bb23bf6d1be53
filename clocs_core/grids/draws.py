"""Make bootstrap draws of cells from their raw predictions, for intervals and paired differences.

Drawing costs seconds a cell, so draws are kept as files and made in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import attrs
import numpy as np

from clocs_core import seeds
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.bootstrap import Interval, bootstrap, cut_interval
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


def source_of(cell: GridCell, init: str, predictions: Path, measure: Measure, out: Path) -> Source:
    """Say where the draws of a cell come from, for the trained encoder or for `random`."""
    about = f"{init}-F{cell.label_fraction:g}-{measure.metric}-{measure.level}-{measure.resamples}"
    kept = out / "draws" / digest(cell.evaluation) / f"{about}.npy"
    seed = cell.pretraining.split_seed
    return Source(predictions, cell.protocol, init, cell.label_fraction, seed, measure, kept)


def fill_draws(sources: Iterable[Source], at_once: int, tick: Callable[[int, int], None]) -> None:
    """Make the draws that are not kept yet. A cell whose predictions are damaged has no interval.

    Raises OSError where the system cannot read a file today: the next call would find other cells.
    """
    missing = [source for source in dict.fromkeys(sources) if not source.kept.exists() and source.predictions.exists()]
    if at_once == 1 or len(missing) < 2:
        for number, source in enumerate(missing, 1):
            _make(source)
            tick(number, len(missing))
        return
    # Spawned: forking a process that has threads, as matplotlib and torch have, can hang.
    with ProcessPoolExecutor(min(at_once, len(missing)), mp_context=get_context("spawn")) as pool:
        for number, done in enumerate(as_completed([pool.submit(_make, source) for source in missing]), 1):
            done.result()
            tick(number, len(missing))


def read_draws(source: Source) -> Interval | None:
    """Read the value of a cell with its draws; None where there are none."""
    if not source.kept.exists():
        return None
    numbers = np.load(source.kept, allow_pickle=False)  # (1 + resamples,): the value, then its draws
    return cut_interval(float(numbers[0]), numbers[1:])


def _make(source: Source) -> None:
    try:
        rows = read_predictions(source.predictions)[source.protocol, source.init, source.label_fraction]
    except (RunFolderError, KeyError):  # damaged, or made without this classifier
        return
    rows = by_record(rows) if source.measure.level == "record" else rows
    seed = seeds.derive(source.split_seed, "bootstrap")  # as `clocs` itself draws
    metric = _metric(source.measure.metric)
    found = bootstrap(rows, metric, source.measure.resamples, seed)
    source.kept.parent.mkdir(parents=True, exist_ok=True)
    sweep(source.kept.parent)  # what a killed grid was writing
    write_atomically(source.kept, _bytes(np.append(found.value, found.draws)))


def _bytes(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    np.save(buffer, numbers, allow_pickle=False)
    return buffer.getvalue()


@cache
def _metric(name: str) -> Metric:
    catalogue, _ = build_catalogue(load_plugins(installed_entry_points()))
    return catalogue.metrics.get(name).offer
