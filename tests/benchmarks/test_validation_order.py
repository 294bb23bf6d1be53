"""Validation in the order of the recordings, and shuffled: two losses of the same weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import validation_order


@pytest.mark.slow
def test_each_epoch_is_validated_in_both_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss that contrasts the instances of a batch depends on the order; the mean of single instances does not."""
    monkeypatch.setattr(validation_order, "METHODS", ("simclr", "supervised"))
    flags = ["--dataset", "demo", "--epochs", "2", "--instances", "60", "--out", str(tmp_path / "found.json")]
    assert validation_order.main(flags) == 0
    found = json.loads((tmp_path / "found.json").read_text())["methods"]
    assert all(len(found[name][order]) == 2 for name in found for order in ("in order", "shuffled"))
    assert found["simclr"]["in order"] != found["simclr"]["shuffled"]
    assert found["supervised"]["in order"] == pytest.approx(found["supervised"]["shuffled"], abs=2e-4)
