"""Choose the metrics of a run or an evaluation: those that were asked for, or all that are installed."""

from __future__ import annotations

from collections.abc import Sequence

from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import SettingsError
from clocs_core.plugins.catalogue import Catalogue


def choose_metrics(catalogue: Catalogue, asked: Sequence[str], task: Task) -> tuple[Metric, ...]:
    """Return the metrics asked for, in this order, or all: one of each name, as a report has them.

    Raises UnknownName, AmbiguousName, or SettingsError where none suits.
    """
    if not asked:
        return tuple(
            catalogue.metrics.get(name).offer for name in dict.fromkeys(one.offer.name for one in catalogue.metrics)
        )
    found = tuple(catalogue.metrics.get(name).offer for name in dict.fromkeys(asked))
    if len({metric.name for metric in found}) < len(found):
        raise SettingsError(
            f"The metrics {', '.join(asked)} have a name in common, and a report has one score of a name. Ask for one."
        )
    if not any(task.kind in metric.tasks for metric in found):
        others = [item.offer.name for item in catalogue.metrics if task.kind in item.offer.tasks]
        raise SettingsError(
            f"None of the metrics {', '.join(asked)} is for tasks of the kind {task.kind}, such as {task.name!r}; "
            f"there is {', '.join(others) or 'no other'}. Leave out `metrics`, or name another."
        )
    return found
