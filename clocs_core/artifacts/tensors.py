"""Read and write tensors as safetensors files with a JSON description in the header, without pickle.

The description ends up in the header's metadata, under "clocs". Its first two fields are `format` and `sha256`, the
checksum of the whole file, computed with 64 zeros in the place of the checksum. Files of format 1 have neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as save_arrays
from safetensors.torch import load, save
from torch import Tensor

from clocs_core.artifacts.file_kinds import kind_of_bytes, kind_of_file
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import SCHEMA

FORMAT = 2  # of the container: with it came the checksum
_NO_CHECKSUM = "0" * 64
_LONGEST_HEADER = 100_000_000  # bytes; safetensors reads no longer one
_UNREADABLE = (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError)


def pack_tensors(tensors: Mapping[str, Tensor], description: Mapping[str, object]) -> bytes:
    """Return the bytes of a safetensors file with tensors, their description and a checksum of both."""
    ready = to_host(tensors)
    about = {"clocs": json.dumps({"format": FORMAT, "sha256": _NO_CHECKSUM, **description})}
    try:  # the same bytes in a fifth of the time, which every epoch spends on its checkpoint
        blank = save_arrays({name: tensor.numpy() for name, tensor in ready.items()}, about)
    except TypeError:  # NumPy has no such type: bfloat16
        blank = save({name: tensor.clone() for name, tensor in ready.items()}, about)  # tensors may share memory
    return blank.replace(_NO_CHECKSUM.encode(), sha256(blank).hexdigest().encode(), 1)  # the first is ours


def to_host(tensors: Mapping[str, Tensor], copy: bool = False) -> dict[str, Tensor]:
    """Return tensors on the CPU, each contiguous. From a GPU all of one type are copied at once, not one by one.

    copy: also copy those that are on the CPU already.
    """
    found = {name: tensor.detach() for name, tensor in tensors.items()}
    found |= {name: tensor.clone() for name, tensor in found.items() if copy and not tensor.is_cuda}
    found |= copied_at_once({name: tensor for name, tensor in found.items() if tensor.is_cuda}, torch.Tensor.cpu)
    return {name: tensor.contiguous() for name, tensor in found.items()}


def copied_at_once(
    tensors: Mapping[str, Tensor], move: Callable[[Tensor], Tensor] = lambda flat: flat
) -> dict[str, Tensor]:
    """Copy tensors, all of one device and type in one launch. move: takes each of these copies elsewhere."""
    copies: dict[str, Tensor] = {}
    for device, dtype in dict.fromkeys((tensor.device, tensor.dtype) for tensor in tensors.values()):
        some = {name: one for name, one in tensors.items() if (one.device, one.dtype) == (device, dtype)}
        flat = move(torch.cat([tensor.flatten() for tensor in some.values()]))
        pieces = flat.split([tensor.numel() for tensor in some.values()])
        copies |= {name: piece.view(some[name].shape) for name, piece in zip(some, pieces, strict=True)}
    return copies


def save_tensors(tensors: Mapping[str, Tensor], description: Mapping[str, object], path: Path) -> None:
    """Write tensors, their description and a checksum of both atomically."""
    write_atomically(path, pack_tensors(tensors, description))


def read_tensors(source: Path | bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the description of a file, or of its bytes, and compare them with their checksum.

    A file of format 1 has no checksum and is read without. Raises RunFolderError where the file is damaged or was not
    written by clocs.
    """
    try:
        raw = source if isinstance(source, bytes) else _read_all(source)
        metadata = json.loads(raw[8 : _end_of_header(raw, len(raw))]).get("__metadata__")
        description = _describe(metadata, raw)
        return load(raw), description
    except _UNREADABLE as problem:
        raise _refusal(source, problem) from None


def read_description(path: Path) -> dict[str, Any]:
    """Read the description of a file without its tensors. Raises RunFolderError as `read_tensors`.

    The checksum is of both, so it is not checked here.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return _describe(file.metadata())
    except _UNREADABLE as problem:
        raise _refusal(path, problem) from None


def refuse_other_schema(description: dict[str, Any], path: Path, what: str) -> None:
    """Raise RunFolderError where a file was written by another version of clocs. what: "encoder", "classifier"."""
    schema = description.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        found = (
            f"schema {schema!r}, this one reads {SCHEMA}" if "schema" in description else "it says nothing of itself"
        )
        raise RunFolderError(f"{path} holds no {what} of this version of clocs: {found}.")


def _read_all(path: Path) -> bytes:
    """Read a file whole, but only its first bytes where these show that it is no safetensors file."""
    with open(path, "rb") as file:
        head = file.read(4096)
        _end_of_header(head, path.stat().st_size)
        return head + file.read()


def _end_of_header(raw: bytes, size: int) -> int:
    """Return the position of the first tensor. Raises ValueError where a file of `size` bytes has no such header."""
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or not 2 <= length <= min(size - 8, _LONGEST_HEADER) or raw[8:9] not in (b"{", b""):
        raise ValueError("it has no header of a safetensors file")
    return 8 + length


def _describe(metadata: Mapping[str, str] | None, whole: bytes | None = None) -> dict[str, Any]:
    """Return the description in the metadata, without format and checksum; {} for a file of another program.

    whole: the file, to compare with the checksum. Raises ValueError where it differs, or where a file that has a
    format has no checksum.
    """
    found = json.loads((metadata or {}).get("clocs", "{}"))
    if not isinstance(found, dict):
        return {}
    if "format" not in found and "sha256" not in found:
        return found
    kept, checksum = found.pop("format", None), found.pop("sha256", None)
    if type(kept) is not int or not isinstance(checksum, str) or len(checksum) != len(_NO_CHECKSUM):
        raise ValueError(f"its format is {kept!r} and its checksum {checksum!r}, expected {FORMAT} and 64 digits")
    if whole is not None and _checksum(whole, checksum) != checksum:
        raise ValueError("its checksum does not match: it was damaged or changed after it was written. Copy it again")
    if kept != FORMAT:
        raise ValueError(f"it has format {kept}, this version of clocs reads {FORMAT}: use the version that wrote it")
    return found


def _checksum(whole: bytes, checksum: str) -> str:
    """Compute the checksum of a file that holds `checksum`, as if it held zeros there."""
    place = whole.find(checksum.encode())
    if place < 0:
        return ""
    digest = sha256(memoryview(whole)[:place])
    digest.update(_NO_CHECKSUM.encode())
    digest.update(memoryview(whole)[place + len(checksum) :])
    return digest.hexdigest()


def _refusal(source: Path | bytes, problem: BaseException) -> RunFolderError:
    """Say why a file, or its bytes, cannot be read, and what it seems to be instead."""
    begins = "The bytes are no file of clocs: " if isinstance(source, bytes) else f"Cannot read {source}: "
    if kind := kind_of_bytes(source) if isinstance(source, bytes) else kind_of_file(source):
        problem = ValueError(f"it is {kind}, not a safetensors file. Give a file that clocs wrote")
    why = getattr(problem, "strerror", None) or str(problem)
    return RunFolderError(f"{begins}{why}.")
