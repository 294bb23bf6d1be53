"""Compare runs and evaluations from Python.

clocs.compare([run_a, run_b])
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import attrs

from clocs_core.api.display import open_display
from clocs_core.api.evaluations import EvaluationResults
from clocs_core.api.runs import Run
from clocs_core.api.several_seeds import SeedRuns
from clocs_core.api.tables import Table
from clocs_core.artifacts.reports import EvaluationReport
from clocs_core.artifacts.results import Candidate, candidate_of_evaluation, candidate_of_run, open_candidate
from clocs_core.artifacts.several_seeds import run_folders
from clocs_core.contracts.scores import Comparison
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import installed_session
from clocs_core.report.compared import Compared, score_table, setting_rows
from clocs_core.report.tables import comparison_sentence
from clocs_core.workflows.compare import compare_candidates
from clocs_core.workflows.differences import Wanted


@attrs.frozen(eq=False)
class ComparisonResults:
    """Runs side by side: what differs in their settings, their scores, and paired differences to the first."""

    record: Compared

    @property
    def scores(self) -> Table:
        """A row for each label fraction, metric, level and weights, a column for each run."""
        return Table(*score_table(self.record))

    @property
    def settings(self) -> Table:
        """The settings that differ, a column for each run."""
        letters = (one.letter for one in self.record.compared)
        return Table(("setting", *letters), setting_rows(self.record.settings))

    @property
    def differences(self) -> Table:
        """Paired differences over the same test patients, with their 95 % intervals."""
        return Table.of_records(self.record.differences, Comparison)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences, and why some could not be computed, as sentences."""
        refused = (f"{one.a} and {one.b} are not paired: {one.reason}." for one in self.record.refused)
        return (*map(comparison_sentence, self.record.differences), *refused, *self.record.notes)

    def __repr__(self) -> str:
        return "\n".join([repr(self.settings), "", repr(self.scores), "", *self.sentences])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(text)}</li>" for text in self.sentences)
        return f"{self.settings._repr_html_()}{self.scores._repr_html_()}<ul>{said}</ul>"


def compare(
    runs: Sequence[Run | SeedRuns | EvaluationResults | str | Path],
    *,
    metrics: Sequence[str] = (),
    levels: Sequence[str] = (),
    label_fraction: Sequence[float] = (),
    progress: bool = True,
) -> ComparisonResults:
    """Compare the first run or evaluation with each other one, over the test patients that they share.

    runs: finished runs, several seeds of them, evaluations, or their folders. Those that differ by their seed only are
    summarised as one.
    metrics, levels, label_fraction: which scores; default: the first metric, both levels, every label fraction.
    """
    if len(runs) < 2:
        raise SettingsError(f"`runs` holds {len(runs)}; give two or more to compare.")
    each = [part for one in runs for part in _parts(one)]
    candidates = [_candidate(one, number) for number, one in enumerate(each)]
    wanted = Wanted(tuple(metrics), tuple(levels), tuple(label_fraction))
    with open_display(progress) as show:
        return ComparisonResults(compare_candidates(candidates, wanted, installed_session().catalogue, show))


def _parts(one: Run | SeedRuns | EvaluationResults | str | Path) -> Sequence[Run | EvaluationResults | str | Path]:
    """Return the runs of several seeds; anything else as it is."""
    if isinstance(one, SeedRuns):
        return tuple(one.runs.values())
    return run_folders(Path(one)) if isinstance(one, (str, Path)) else (one,)


def _candidate(one: Run | EvaluationResults | str | Path, number: int) -> Candidate:
    if isinstance(one, (str, Path)):
        return open_candidate(Path(one))
    if one.path is not None:
        return open_candidate(one.path)
    name = Path(f"runs[{number}]")
    if isinstance(one, Run):
        return candidate_of_run(name, one.record, one.predictions)
    assert isinstance(one.record, EvaluationReport)
    return candidate_of_evaluation(name, one.record, one.predictions)
