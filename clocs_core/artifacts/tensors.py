"""Read and write tensors as safetensors files with a JSON description in the header, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import SCHEMA


def pack_tensors(tensors: Mapping[str, Tensor], description: dict[str, object]) -> bytes:
    """Return the bytes of a safetensors file with tensors and their description."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return save(ready, {"clocs": json.dumps(description)})


def save_tensors(tensors: Mapping[str, Tensor], description: dict[str, object], path: Path) -> None:
    """Write tensors and their description atomically."""
    write_atomically(path, pack_tensors(tensors, description))


def read_tensors(source: Path | bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the description of a file, or of its bytes.

    Raises RunFolderError where the file is damaged or was not written by clocs.
    """
    if isinstance(source, bytes):
        return _unpack(source)
    return _read(source, with_tensors=True)


def read_description(path: Path) -> dict[str, Any]:
    """Read the description of a file without its tensors. Raises RunFolderError as `read_tensors`."""
    return _read(path, with_tensors=False)[1]


def refuse_other_schema(description: dict[str, Any], path: Path, what: str) -> None:
    """Raise RunFolderError where a file was written by another version of clocs. what: "encoder", "classifier"."""
    if description.get("schema") != SCHEMA:
        found = (
            f"schema {description['schema']!r}, this one reads {SCHEMA}"
            if "schema" in description
            else "it says nothing of itself"
        )
        raise RunFolderError(f"{path} holds no {what} of this version of clocs: {found}.")


def _unpack(source: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        length = int.from_bytes(source[:8], "little")
        header = json.loads(source[8 : 8 + length])
        return load(source), json.loads(header.get("__metadata__", {}).get("clocs", "{}"))
    except (SafetensorError, ValueError, AttributeError) as problem:
        raise RunFolderError(f"The bytes are no file of clocs: {problem}.") from None


def _read(path: Path, with_tensors: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            description = json.loads((file.metadata() or {}).get("clocs", "{}"))
            names = file.keys() if with_tensors else ()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunFolderError(f"Cannot read {path}: {problem}.") from None
    return tensors, description if isinstance(description, dict) else {}
