"""Scores as curves of one point, with names that are equal for all methods, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clocs_plugins.tensorboard.values import scalar, text

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

    from clocs_core import Comparison, Score


def score_values(init: str, scores: Sequence[Score], comparisons: Sequence[Comparison]) -> list[Summary.Value]:
    """Return every score, every difference to a control, and all scores as a table.

    init: the init of the run itself. Its name is not in the tags, so that methods can be compared. The tab HPARAMS
    shows the first tags of the alphabet: `final` comes before the others.
    """
    values = [scalar(_score_tag(init, score), score.value) for score in scores]
    ours = [one for one in comparisons if one.a == init]
    values += [scalar(_tag(f"gain_over_{one.b}/{one.protocol}", one), one.difference) for one in ours]
    return [*values, text("scores", _score_table(scores))] if scores else values


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a Markdown table; the first row has the headings."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _score_tag(init: str, score: Score) -> str:
    if score.protocol == "prior":
        return _tag("scores_of_controls/prior", score)
    return _tag(
        f"final/{score.protocol}" if score.init == init else f"scores_of_controls/{score.protocol}/{score.init}", score
    )


def _tag(start: str, one: Score | Comparison) -> str:
    tag = f"{start}/{one.metric}/{one.level}"
    return tag if one.label_fraction == 1 else f"{tag}/labels_{one.label_fraction:g}"


def _score_table(scores: Sequence[Score]) -> str:
    headings = ("protocol", "init", "labels", "metric", "level", "value", "95 % interval")
    return markdown([headings, *map(_score_row, scores)])


def _score_row(score: Score) -> tuple[str, ...]:
    numbers = (f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}")
    return (score.protocol, score.init, f"{score.label_fraction:g}", score.metric, score.level, *numbers)
