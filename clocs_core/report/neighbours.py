"""Show the nearest recordings in one HTML file that opens offline, without scripts, with its picture inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.events import Picture
from clocs_core.contracts.records import TOGETHER
from clocs_core.inference.embed import Representations
from clocs_core.inference.similar import Place, Similar
from clocs_core.report.page import page_template
from clocs_core.report.traces import neighbour_traces

_COLUMNS = 4  # channels that fit side by side on a page


def draw_similar(found: Representations, similar: Similar) -> Picture:
    """Draw the query and its neighbours, one below the other; for a recording, its first usable frame."""
    places = [similar.query, *(one.place for one in similar.neighbours)]
    prepared = found.cohort.evaluate
    single = similar.level == "frame" and found.rows.channel[similar.query.row] != TOGETHER
    shown = found.rows.channels[:1] if single else found.rows.channels[:_COLUMNS]
    signal = np.stack([_signal(found, place.row, single)[: len(shown)] for place in places])
    titles = [_title(similar.query, "query", single)]
    titles += [_title(one.place, f"{one.rank}. at {one.distance:.4g}", single) for one in similar.neighbours]
    names = [""] if single else list(shown)
    every = 1 if single else len(found.rows.channels)
    return neighbour_traces(signal, titles, names, prepared.frame_rate, prepared.unit, every)


def render_neighbours(
    title: str, sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]], picture: Picture
) -> str:
    """Return the page as text. Every name in it is escaped: record ids come from files that are not trusted."""
    template = page_template("neighbours.html.jinja")
    return template.render(title=title, sentence=sentence, headings=headings, rows=rows, picture=picture)


def _signal(found: Representations, row: int, single: bool) -> NDArray[np.float64]:
    """Return a row's frame (channel, sample) in the unit of the data set, NaN where a channel cannot be used."""
    prepared, frame = found.cohort.evaluate, found.rows.frame[row]
    chosen = found.rows.channels if not single else (found.rows.channels[found.rows.channel[row]],)
    columns = [prepared.channels.index(name) for name in chosen]
    signal: NDArray[np.float64] = prepared.frames[frame][columns].astype(np.float64) / prepared.gain[frame]
    signal[~prepared.valid[frame][columns]] = np.nan
    return signal


def _title(place: Place, first: str, single: bool) -> str:
    where = f", {place.channel} from sample {place.start:,}" if single else ""
    return f"{first}: {place.record}{where}, patient {place.patient}, {place.label} ({place.part})"
