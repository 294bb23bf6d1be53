"""Send what plugins print to stderr: it must not stand in the JSON that a command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TextIO

import attrs


@attrs.define
class _Aside:
    """The stdout of the process while `print` goes to stderr, and how many blocks want it so."""

    stdout: TextIO | None = None
    blocks: int = 0


_LOCK, _ASIDE = Lock(), _Aside()


@contextmanager
def printing_to_stderr() -> Iterator[TextIO]:
    """Let `print` write to stderr within a block. Gives the stdout that is hidden meanwhile.

    `contextlib.redirect_stdout` puts back what it found. A thread that loads plugins could find what another has put
    there, and then stdout would stay hidden. Here blocks of all threads are counted, and the last one puts stdout back.
    """
    with _LOCK:
        if _ASIDE.stdout is None:
            _ASIDE.stdout, sys.stdout = sys.stdout, sys.stderr
        _ASIDE.blocks += 1
        hidden = _ASIDE.stdout
    try:
        yield hidden
    finally:
        with _LOCK:
            _ASIDE.blocks -= 1
            if _ASIDE.blocks == 0:
                sys.stdout, _ASIDE.stdout = hidden, None
