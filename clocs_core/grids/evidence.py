"""Facts beside the scores of a page: controls, split certificates, environments, and warnings about mixing them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from clocs_core.artifacts.reports import EvaluationReport, Report
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import PRIOR, RANDOM
from clocs_core.grids.axes import Repeats
from clocs_core.grids.measure import Measure
from clocs_core.grids.results import Results
from clocs_core.grids.rows import Sheet, say_spread
from clocs_core.grids.summary import spread
from clocs_core.grids.untrained import say_encoder

AnyReport = Report | EvaluationReport


def control_sheet(conditions: Iterable[Condition], repeats: Repeats, results: Results, measure: Measure) -> Sheet:
    """Show the untrained encoder and the class prior wherever something was scored."""
    found: dict[tuple[str, ...], dict[str, dict[tuple[int, int], float]]] = {}
    for one in conditions:
        place = (one.downstream, one.protocol, str(one.embedding_dim), one.leads, f"{one.label_fraction:g}", one.part)
        for cell in repeats.cells(one):
            report = results.evaluated(cell)
            key = (*place, say_encoder(report) if report else "")
            for score in report.scores if report else ():
                asked = (score.label_fraction, score.metric, score.level)
                if score.is_control and asked == (one.label_fraction, measure.metric, measure.level):
                    name = PRIOR if score.is_prior else RANDOM
                    repetition = (cell.pretraining.split_seed, cell.pretraining.seed)
                    found.setdefault(key, {}).setdefault(name, {}).setdefault(repetition, score.value)
    headings = ("downstream", "protocol", "E", "leads", "F", "patients", "encoder", "untrained", "class prior")
    rows = tuple((*key, *(_say_values(of.get(name, {})) for name in (RANDOM, PRIOR))) for key, of in found.items())
    return Sheet("", headings, rows, (False,) * len(rows))


def _say_values(values: dict[tuple[int, int], float]) -> str:
    splits = dict.fromkeys(split for split, _ in values)
    return say_spread(spread([value for (split, _), value in values.items() if split == one] for one in splits))


def split_sheet(reports: Iterable[AnyReport]) -> Sheet:
    """Show what certifies the parts: the same hash, the same patients in every part."""
    headings = (
        *("data set", "split seed", "rule", "train / validate / test"),
        *("in two parts", "same signal twice", "hash"),
    )
    rows = dict.fromkeys(
        (
            *(report.dataset, str(report.split.seed), report.split.rule),
            " / ".join(f"{count:,}" for count in report.split.patients.values()),
            *(str(report.split.shared_patients), str(report.split.duplicate_signals), report.split.hash[:16]),
        )
        for report in reports
    )
    return Sheet("", headings, tuple(rows), (False,) * len(rows))


def mixed_notes(reports: Iterable[AnyReport], commits: Collection[str]) -> tuple[str, ...]:
    """Warn where cells are of different patients under one split seed, or of different states of the source."""
    hashes: dict[tuple[str, int], set[str]] = {}
    for report in reports:
        hashes.setdefault((report.dataset, report.split.seed), set()).add(report.split.hash)
    mixed = [name for (name, _), found in hashes.items() if len(found) > 1]
    notes = [f"Cells on {name} are of different patients under one split seed: they do not compare." for name in mixed]
    if len(commits) > 1:
        notes.append(f"Cells come from {len(commits)} states of the source: {', '.join(sorted(commits))}.")
    return tuple(notes)


def environments(reports: Iterable[AnyReport]) -> tuple[tuple[str, dict[str, str]], ...]:
    """List each environment once, without its plugins, with how many jobs ran in it."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for report in reports:
        key = tuple((name, value) for name, value in report.environment.items() if not name.startswith("plugin "))
        found[key] = found.get(key, 0) + 1
    return tuple((f"{count} jobs", dict(key)) for key, count in found.items() if key)
