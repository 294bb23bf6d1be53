"""Tell from its first bytes what a file is that was given in the place of one of ours."""

from __future__ import annotations

from pathlib import Path

_SIGNS = (
    (b"PK\x03\x04", "a zip archive, such as an .npz file or weights that torch.save wrote"),
    (b"\x93NUMPY", "an array of NumPy (.npy)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x1f\x8b", "a file that is compressed by gzip"),
    (b"\x89PNG", "a picture (.png)"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet table"),
    (b"\x80", "a pickle of Python, which clocs does not open, since it could run code"),
)
_ONNX = (b"pytorch", b"onnx", b"ONNX", b"clocs")  # producers that stand near the beginning


def kind_of_file(path: Path) -> str:
    """Return what a file seems to be, as `kind_of_bytes`; "" where it cannot be read."""
    if path.is_dir():
        return "a folder"
    try:
        with open(path, "rb") as file:
            return kind_of_bytes(file.read(200))
    except OSError:
        return ""


def kind_of_bytes(head: bytes) -> str:
    """Return what a file seems to be by its first bytes, such as "an ONNX file"; "" where they do not tell."""
    if not head:
        return "an empty file"
    if head[4:9] == b"\0\0\0\0{":  # the length and the header of a safetensors file
        return ""
    for sign, kind in _SIGNS:
        if head.startswith(sign):
            return kind
    if head[:1] == b"\x08" and any(name in head[:200] for name in _ONNX):  # its first field is the version
        return "an ONNX file"
    return "text" if _is_text(head[:200]) else ""


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as problem:
        if problem.start < len(head) - 3:  # a letter may be cut at the end
            return False
        text = head[: problem.start].decode("utf-8")
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)
