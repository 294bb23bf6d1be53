"""Read all that an evaluation keeps, without times, to compare two evaluations that must agree to the last bit."""

from __future__ import annotations

from pathlib import Path

from clocs_core.artifacts.tensors import read_tensors

_WITH_TIMES = (".lock", "report.json", "report.html")


def held(folder: Path) -> dict[str, object]:
    """Read every file of an evaluation, but for its report and its page, which have seconds and a date in them."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in _WITH_TIMES)
    return {
        str(path.relative_to(folder)): _weights_and_card(path) if path.suffix == ".safetensors" else path.read_bytes()
        for path in files
    }


def _weights_and_card(file: Path) -> list[object]:
    """Return the bytes of every tensor, and the description without the command and the date, which has minutes."""
    tensors, about = read_tensors(file)
    card = {name: value for name, value in about.items() if name not in ("command", "date")}
    return [{name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, card]
