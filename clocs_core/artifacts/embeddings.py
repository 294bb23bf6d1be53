"""Write embeddings to a file: one row per frame, with the names of its patient, recording and channel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.files import write_atomically


@attrs.frozen(eq=False)
class NamedRows:
    """Embeddings with the names of their patient, recording, channel ("all" where read at once), part and label.

    part and label may be empty. start: index of the frame's first sample in its recording, at the recording's rate.
    """

    embedding: NDArray[np.float32]  # (n, dim)
    patient: NDArray[np.str_]  # (n,), as all below
    record: NDArray[np.str_]
    channel: NDArray[np.str_]
    start: NDArray[np.int64]
    part: NDArray[np.str_]
    label: NDArray[np.str_]


def save_rows(rows: NamedRows, about: Mapping[str, Any], path: Path) -> None:
    """Write one .npz file without pickles: an array for each field, and `about` (encoder, data, settings) as JSON."""
    arrays: dict[str, NDArray[Any]] = attrs.asdict(rows, recurse=False)
    buffer = BytesIO()
    told = np.array(json.dumps(about, ensure_ascii=False))
    np.savez(buffer, allow_pickle=False, about=told, **arrays)  # compressed takes 20 x longer; embeddings hardly shrink
    write_atomically(path, buffer.getvalue())
