"""Show the results for clinicians on a page: draw the classes, and the worst recordings on ECG paper."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from clocs_core.artifacts.clinical import Clinical, WorstRecording
from clocs_core.contracts.events import Picture
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Entry
from clocs_core.data.cohort import Cohort
from clocs_core.plan.data import Chosen
from clocs_core.report.blocks import Section
from clocs_core.report.clinical import clinical_sections

_DRAWN = 3  # recordings that are drawn: each takes a quarter of a second
_DPI = 100  # as wide as the page: a quarter less would be too coarse, a third more takes twice as long


def show_clinical(
    clinical: Clinical | None, dataset: Chosen[Dataset], cohort: Cohort, warn: Callable[[str], None], pictures: bool
) -> list[Section]:
    """Return the sections, with pictures if asked. A recording that cannot be read any more costs a warning."""
    if clinical is None:
        return []
    if not pictures:
        return clinical_sections(clinical, [], [])
    from clocs_core.report import class_figures  # imports matplotlib, which takes a second

    drawn = (class_figures.class_curves(clinical), class_figures.predicted_against_true(clinical))
    papers = draw_worst(clinical, dataset, cohort, warn)
    return clinical_sections(clinical, [one for one in drawn if one is not None], papers)


def draw_worst(
    clinical: Clinical, dataset: Chosen[Dataset], cohort: Cohort, warn: Callable[[str], None]
) -> list[Picture]:
    """Draw the first of the worst recordings, ten seconds each."""
    entries = {entry.record: entry for entry in cohort.listing.entries}
    pictures = []
    for place, one in enumerate(clinical.worst[:_DRAWN], start=1):
        try:
            pictures.append(_draw(place, one, dataset, entries[one.record]))
        except Exception as problem:  # a reader may raise anything; the report goes on
            warn(f"Recording {one.record!r} is not drawn in the report: {type(problem).__name__}: {problem}")
    return pictures


def _draw(place: int, one: WorstRecording, dataset: Chosen[Dataset], entry: Entry) -> Picture:
    from clocs_core.report.paper import SECONDS, draw_recording

    record = dataset.offer.load(entry, dataset.options)
    begin = min(one.start, max(0, record.samples.shape[1] - int(SECONDS * record.sampling_rate)))
    shown = attrs.evolve(record, samples=record.samples[:, begin:])
    title = f"{one.record}  patient {one.patient}  label {one.label}  predicted {one.predicted}"
    from_second = f" from second {begin / record.sampling_rate:.3g}" if begin else ""
    caption = f"Labelled {one.label}; predicted {one.predicted}. Ten seconds at most{from_second}, 25 mm/s."
    return Picture(f"worst-{place}", one.record, caption, draw_recording(shown, title, dpi=_DPI))
