"""`clocs export`: one line that says what the file reads, and a help for every flag. Mistakes: test_cli_similar.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_encoders import installed, plan_of, write_encoder

from clocs_core.cli import main
from clocs_core.cli.export import export_command


@pytest.mark.slow
def test_an_encoder_is_exported_and_the_line_says_what_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    write_encoder(tmp_path, plan_of(installed()))
    assert main(["export", ".", "--out", "e.onnx", "--sampling-rate", "400"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("e.onnx: signal (n, 1, 2000) in mV at 400 Hz to embedding (n, 8); differs from PyTorch by at")
    assert err == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.onnx", "encoder.safetensors"]


def test_every_flag_has_a_help() -> None:
    """A flag that is only named has to be guessed."""
    for parameter in export_command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name
