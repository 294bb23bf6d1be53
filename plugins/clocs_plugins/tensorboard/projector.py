"""Write embeddings with labels and patients as files for TensorBoard's projector."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clocs_plugins.tensorboard.eventfile import replace

if TYPE_CHECKING:
    from clocs_core import EmbeddingMap

PROJECTED = 5000  # points in the projector, which is slow with more

_CONFIG = """\
embeddings {{
  tensor_name: "{part} part"
  tensor_path: "projector/embeddings.tsv"
  metadata_path: "projector/metadata.tsv"
}}
"""


def write_projector(folder: Path, embeddings: EmbeddingMap) -> None:
    """Write embeddings and labels as tables of at most PROJECTED evenly spaced rows, and the projector's config."""
    count = len(embeddings.embedding)
    kept = np.linspace(0, count - 1, min(count, PROJECTED)).astype(int)
    columns = {"label": embeddings.label, "patient": embeddings.patient, "record": embeddings.record}
    table = BytesIO()
    np.savetxt(table, embeddings.embedding[kept], fmt="%.7g", delimiter="\t")
    (folder / "projector").mkdir(exist_ok=True)
    replace(folder / "projector" / "embeddings.tsv", table.getvalue())
    replace(folder / "projector" / "metadata.tsv", _metadata(columns, kept.tolist()).encode())
    replace(folder / "projector_config.pbtxt", _CONFIG.format(part=embeddings.part).encode())


def _metadata(columns: Mapping[str, Sequence[str]], kept: Sequence[int]) -> str:
    """Format a table with headings; a tab or line break inside a name becomes a space, so that rows do not shift."""
    rows = [[_cell(" ".join(column[row].split())) for column in columns.values()] for row in kept]
    return "".join("\t".join(cells) + "\n" for cells in [list(columns), *rows])


def _cell(name: str) -> str:
    """Put an apostrophe before a name that a spreadsheet would take for a formula; a negative number is none."""
    number = re.fullmatch(r"[+-]?\d+(\.\d+)?", name)
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) and not number else name
