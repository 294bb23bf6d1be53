"""Make the draws of cells that are scored while a grid waits for its other jobs.

The grid's own process has nothing to do meanwhile. Its main thread must not wait, since it starts the next jobs, so
threads beside it load the libraries and draw. The page makes what is left when the last job has ended, and shows how
far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from clocs_core.grids.cells import GridCell
from clocs_core.grids.measure import Measure
from clocs_core.grids.results import Results

Scored = Callable[[Sequence[GridCell]], None]
"""Is told of cells that one evaluation has scored."""

_JOBS = 4  # at a time for each thread that draws: a draw takes a tenth of the time of a short job


@contextmanager
def drawing_ahead(measure: Measure, out: Path, at_once: int) -> Iterator[Scored]:
    """Give a function that lets draws of cells be made. At the end, those that have begun are waited for.

    at_once: jobs at a time. A problem with a file is left to the page, which meets it again.
    """
    pool = ThreadPoolExecutor(max(1, at_once // _JOBS), thread_name_prefix="draws")
    loaded = pool.submit(_load, measure.metric)

    def make(cells: Sequence[GridCell]) -> None:
        from clocs_core.grids.draws import make_draws, missing_draws, sources_of

        loaded.result()
        results = Results(out)
        found = [(cell, one.predictions) for cell in cells if (one := results.cell(cell)) is not None and one.report]
        sources = [one for cell, predictions in found for one in sources_of(cell, predictions, measure, out)]
        for each in missing_draws(sources).values():
            make_draws(each)

    def scored(cells: Sequence[GridCell]) -> None:
        pool.submit(make, cells)

    try:
        yield scored
    finally:
        pool.shutdown(cancel_futures=True)


def _load(metric: str) -> None:
    """Load what draws, and then what makes the page: in one thread, before others need it."""
    from clocs_core.grids.draws import find_metric

    find_metric(metric)
    import clocs_core.grids.page  # noqa: F401
