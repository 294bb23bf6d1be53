"""`clocs verify`, on the built-in methods."""

from __future__ import annotations

import pytest

from clocs_core.cli import main


@pytest.mark.parametrize("method", ["cmsc", "cmsmlc", "simclr", "byol", "mt-ssl", "cmsc-rlm"])
def test_the_ways_of_the_built_in_methods_agree(capsys, method):
    assert main(["verify", "--plugin", method, "--batch-size", "8", "--embedding-dim", "16", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "plain, float64" in shown
    assert "DOES NOT AGREE" not in shown
