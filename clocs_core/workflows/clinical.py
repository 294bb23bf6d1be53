"""Show the results for clinicians on a page: draw the classes, and the worst recordings on ECG paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from clocs_core.artifacts.clinical import Clinical, WorstRecording
from clocs_core.contracts.events import Picture
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Entry
from clocs_core.data.cohort import Cohort
from clocs_core.plan.data import Chosen
from clocs_core.report.blocks import Section
from clocs_core.report.clinical import clinical_sections
from clocs_core.report.paper import SECONDS, draw_recording
from clocs_core.report.pictures import draw_classes
from clocs_core.workflows.drawing import Drawing, Drawn

_DRAWN = 3  # recordings that are drawn: each takes a quarter of a second
_DPI = 100  # as wide as the page: a quarter less would be too coarse, a third more takes twice as long


def begin_clinical(
    clinical: Clinical | None,
    dataset: Chosen[Dataset],
    cohort: Cohort,
    warn: Callable[[str], None],
    drawing: Drawing | None,
) -> Drawn[list[Section]]:
    """Begin to draw the sections; drawing: None for sections without pictures."""
    if clinical is None or drawing is None:
        return lambda: clinical_sections(clinical)
    classes = drawing.begin(draw_classes, clinical)
    papers = begin_worst(clinical, dataset, cohort, warn, drawing)
    return lambda: clinical_sections(clinical, classes(), papers())


def begin_worst(
    clinical: Clinical, dataset: Chosen[Dataset], cohort: Cohort, warn: Callable[[str], None], drawing: Drawing
) -> Drawn[list[Picture]]:
    """Begin to draw the first of the worst recordings, ten seconds each.

    One that cannot be read any more costs a warning: a reader may raise anything, and the report goes on.
    """
    entries = {entry.record: entry for entry in cohort.listing.entries}
    begun: list[tuple[WorstRecording, Drawn[Picture]]] = []
    for place, one in enumerate(clinical.worst[:_DRAWN], start=1):
        with _warning(one, warn):
            begun.append((one, _begin(place, one, dataset, entries[one.record], drawing)))

    def finish() -> list[Picture]:
        pictures = []
        for one, drawn in begun:
            with _warning(one, warn):
                pictures.append(drawn())
        return pictures

    return finish


@contextmanager
def _warning(one: WorstRecording, warn: Callable[[str], None]) -> Iterator[None]:
    """Warn of an error instead of raising it."""
    try:
        yield
    except Exception as problem:
        warn(f"Recording {one.record!r} is not drawn in the report: {type(problem).__name__}: {problem}")


def _begin(place: int, one: WorstRecording, dataset: Chosen[Dataset], entry: Entry, drawing: Drawing) -> Drawn[Picture]:
    record = dataset.offer.load(entry, dataset.options)
    begin = min(one.start, max(0, record.samples.shape[1] - int(SECONDS * record.sampling_rate)))
    shown = attrs.evolve(record, samples=record.samples[:, begin:])
    title = f"{one.record}  patient {one.patient}  label {one.label}  predicted {one.predicted}"
    from_second = f" from second {begin / record.sampling_rate:.3g}" if begin else ""
    caption = f"Labelled {one.label}; predicted {one.predicted}. Ten seconds at most{from_second}, 25 mm/s."
    drawn = drawing.begin(draw_recording, shown, title, dpi=_DPI)
    return lambda: Picture(f"worst-{place}", one.record, caption, drawn())
