"""Documents of ours with other values, sealed as if a program of ours had written them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clocs_core.artifacts.documents import DIGEST, seal


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Change the document in a file, and return it."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    document.pop(DIGEST, None)
    change(document)
    path.write_text(json.dumps(seal(document)), encoding="utf-8")
    return document
