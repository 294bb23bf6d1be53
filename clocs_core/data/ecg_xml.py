"""Read ECGs in XML: GE MUSE and HL7 aECG, told apart by their root. Entities are never expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clocs_core.data.aecg_xml import read_aecg
from clocs_core.data.muse_xml import read_muse
from clocs_core.data.recording import Recording, Wish, need
from clocs_core.data.regular_file import open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 27  # bytes; ten seconds of twelve leads have 200 thousand
_STRAY_AND = re.compile(rb"&(?!(?:[A-Za-z][\w.-]*|#\d+|#x[0-9A-Fa-f]+);)")
_STRAY_LESS = re.compile(rb"<(?![A-Za-z_/!?])")
_READERS = {"RestingECG": read_muse, "AnnotatedECG": read_aecg}


def open_ecg_xml(path: Path, wish: Wish) -> Recording:
    """Read a recording. Raises DataError where the file is no ECG, and Unavailable without defusedxml."""
    with open_regular(path, _LARGEST) as stream:
        raw = stream.read()
    root, notes = _parse(path, raw)
    kind = root.tag.rpartition("}")[2]
    read = _READERS.get(kind)
    if read is None:
        raise DataError(f"{path} is XML with the root {kind[:80]!r}, expected {' or '.join(_READERS)}.")
    try:
        return read(root, notes)
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{path} cannot be read: {' '.join(str(problem).split()).rstrip('.')[:300]}.") from None


def _parse(path: Path, raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """Parse a file; where it is not well-formed, once more with stray & and < in its texts written as entities."""
    library = need("defusedxml.ElementTree", "xml", "ECGs in XML")
    refused = need("defusedxml", "xml", "ECGs in XML").DefusedXmlException
    for text, notes in _readings(raw):
        try:
            return library.fromstring(text), notes
        except refused:
            raise DataError(f"{path} defines entities, which can unpack to any size; it is not read.") from None
        except (library.ParseError, ValueError, LookupError) as problem:
            said = " ".join(str(problem).split())
    raise DataError(f"{path} cannot be read as XML: {said.rstrip('.')[:200]}.")


def _readings(raw: bytes) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    yield raw, ()
    mended = _STRAY_LESS.sub(b"&lt;", _STRAY_AND.sub(b"&amp;", raw))
    if mended != raw:
        yield mended, ("The file has & or < in its texts, which XML forbids; they were read as such.",)
