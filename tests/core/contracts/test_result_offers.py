"""Offers about results: what a protocol and a metric must have."""

from __future__ import annotations

from typing import Any

import pytest

from clocs_core import Metric, Protocol


def answer(options: Any, trial: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "linear", "predict": answer}, "'linear' is a protocol of clocs itself; give yours another name"),
        ({"name": "mine"}, "protocol 'mine' needs a function `predict`"),
        ({"name": "mine", "predict": answer, "wants": "encoder", "rows": "record"}, "which reads frames"),
        ({"name": "mine", "predict": answer, "rows": "patient"}, "rows"),
    ],
)
def test_a_protocol_that_cannot_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Protocol(summary="one of mine", **given)


def test_a_metric_says_which_end_is_better() -> None:
    assert Metric(name="mine", summary="one of mine", score=lambda *rows: 0.0).better == "higher"
    with pytest.raises(ValueError, match="better"):
        Metric(name="mine", summary="one of mine", score=lambda *rows: 0.0, better="lowest")  # type: ignore[arg-type]
