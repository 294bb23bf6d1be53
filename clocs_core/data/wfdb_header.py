"""Parse headers of WFDB recordings, including faulty ones of published data sets.

A fault that leaves the meaning clear is tolerated, and listed in `tolerated`; any other is a DataError.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import attrs

from clocs_core.contracts.records import FASTEST, SLOWEST
from clocs_core.data.regular_file import open_regular
from clocs_core.errors import DataError

LONGEST_HEADER = 1 << 20  # bytes; the longest real headers have a few thousand


@attrs.frozen
class Signal:
    """One signal as its header line describes it: physical value = (sample - baseline) / gain, in `unit`."""

    file: str
    name: str
    gain: float = 200.0  # WFDB's own default, for a header that gives none or 0
    baseline: int = 0
    unit: str = "mV"
    format: int = 16
    offset: int = 0  # bytes before the first sample
    initial_value: int | None = None
    checksum: int | None = None  # of all samples, modulo 65536
    samples_per_frame: int = 1
    skew: int = 0


@attrs.frozen
class Header:
    """A parsed header. `samples` per channel is None if it is not given; `tolerated` lists faults."""

    record: str
    sampling_rate: float  # Hz
    samples: int | None
    signals: tuple[Signal, ...]
    comments: tuple[str, ...] = ()  # without the "#"
    tolerated: tuple[str, ...] = ()

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the signals, in the order of the file."""
        return tuple(signal.name for signal in self.signals)

    def comment(self, key: str) -> str | None:
        """Return the text after `#Key:` or `# key :` in the first comment that has it; None if no comment has it."""
        for line in self.comments:
            name, colon, value = line.partition(":")
            if colon and name.strip().lower() == key.lower():
                return value.strip()
        return None

    def listed(self, key: str) -> tuple[str, ...]:
        """Split a comment at its commas: "a, b,,c," is a, b and c."""
        parts = (part.strip() for part in (self.comment(key) or "").split(","))
        return tuple(part for part in parts if part)


def read_header(path: Path | str) -> Header:
    """Read `path`, a .hea file, the signal file beside it, or the name of both without an ending.

    Raises DataError where the header cannot be understood, and OSError where it cannot be read.
    """
    file = header_file(Path(path))
    with open_regular(file, LONGEST_HEADER) as stream:
        raw = stream.read()
    text, notes = _decode(raw)
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    content = [line for line in lines if line and not line.startswith("#")]
    comments = tuple(line.lstrip("# \t") for line in lines if line.startswith("#"))
    try:
        header = _parse(content)
    except DataError as problem:
        raise DataError(f"{file}: {problem}") from None
    return attrs.evolve(header, comments=comments, tolerated=notes + header.tolerated)


_NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,3})?"
_RATE = re.compile(rf"({_NUMBER})(?:/.*)?", re.IGNORECASE)  # a counter frequency may follow
_BASELINE = r"-?[0-9]{1,10}"  # of 32 bits
_GAIN = re.compile(rf"(-?{_NUMBER})(?:\(({_BASELINE})\))?(?:/(\S+))?", re.IGNORECASE)
_FORMAT = re.compile(r"([0-9]{1,4})(?:x([0-9]{1,4}))?(?::([0-9]{1,9}))?(?:\+([0-9]{1,9}))?")
_ENDING = re.compile(r"\.(mat|dat|hea)$")
_TIME_OF_DAY = re.compile(r"[0-9]{1,2}(:[0-9]{1,2}){0,2}(\.[0-9]+)?")
_MERGED = "The record line has run into that of the first signal; lost fields are taken from the next signal."


def header_file(path: Path) -> Path:
    """Return the .hea file of a recording, given that file, its signal file, or its name without an ending."""
    if path.suffix.lower() == ".hea":
        return path
    return path.with_suffix(".hea") if path.suffix.lower() in (".mat", ".dat") else Path(f"{path}.hea")


def _decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    try:
        return raw.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return raw.decode("latin-1"), ("The header is not UTF-8; it was read as Latin-1.",)


def _parse(lines: list[str]) -> Header:
    words = lines[0].split() if lines else []
    if len(words) < 2:
        raise DataError(f"expected a record line such as '100 2 360 650000', found {_quote(lines)}.")
    name, declared = words[0], _whole(words[1], "the number of signals")
    if "/" in name:
        raise DataError(f"record {name!r} is made of several segments, which are not read; read them one by one.")
    rate = _parse_rate(words[2]) if len(words) > 2 else 250.0  # WFDB's default
    if len(words) > 3 and "/" in words[3]:
        lines, length, notes = _unmerge(words, lines), None, [_MERGED]
    else:
        length, notes = _parse_length(words), _odd_record_line(words)
    signals, extra = lines[1 : declared + 1], len(lines) - 1 - declared
    if not signals or extra < 0:
        raise DataError(f"the record line declares {declared} signals, but {len(lines) - 1} lines describe one.")
    if extra:
        notes.append(f"More signals are described than the record line declares; the first {declared} count.")
    if any("/mv" in line for line in signals):
        notes.append("The unit mV is written mv.")
    parsed = tuple(_parse_signal(line, i) for i, line in enumerate(signals))
    return Header(_ENDING.sub("", name), rate, length, parsed, (), tuple(notes))


def _odd_record_line(words: list[str]) -> list[str]:
    notes = []
    if _ENDING.search(words[0]):
        notes.append("The record's name has the ending of a file.")
    if len(words) > 4 and not _TIME_OF_DAY.fullmatch(words[4]):
        notes.append("The date is written before the time.")
    return notes


def _unmerge(words: list[str], lines: list[str]) -> list[str]:
    """Restore the first signal's line from "JS1 12 500 500000/mV 16 0 15 31255 0 I".

    Length, file and format are lost between "5000" and "1000/mV". The fields after the gain are intact; the file, the
    format and the gain are taken from the next signal, and the length from the signal file.
    """
    following = lines[1].split()[:3] if len(lines) > 1 else []
    if len(lines) != int(words[1]) or len(following) < 3:
        raise DataError(f"the record line has run into another, in a way that is not known: {_quote(lines)}.")
    return [lines[0], " ".join([*following, *words[4:]]), *lines[1:]]


def _parse_length(words: list[str]) -> int | None:
    length = _whole(words[3], "the number of samples") if len(words) > 3 else 0  # 0: not known
    if length < 0:
        raise DataError(f"the record line declares {length} samples.")
    return length or None


def _parse_signal(line: str, index: int) -> Signal:
    # file format gain(baseline)/unit resolution zero initial-value checksum block-size description
    words = line.split(maxsplit=8)
    if len(words) < 2:
        raise DataError(f"signal {index} has the line {_quote([line])}, expected a file and a format.")
    form, per_frame, skew, offset = _parse_format(words[1])
    gain, baseline, unit = _parse_gain(words[2]) if len(words) > 2 else (200.0, None, "mV")
    zero, initial, checksum = [*(_whole(word, "a whole number") for word in words[4:7]), None, None, None][:3]
    return Signal(
        file=words[0],
        name=words[8] if len(words) > 8 else f"signal {index}",
        gain=gain,
        baseline=(zero or 0) if baseline is None else baseline,
        unit=unit,
        format=form,
        offset=offset,
        initial_value=initial,
        checksum=checksum,
        samples_per_frame=per_frame,
        skew=skew,
    )


def _parse_rate(word: str) -> float:
    found = _RATE.fullmatch(word)
    rate = float(found[1]) if found else 0.0
    if not SLOWEST <= rate <= FASTEST:
        raise DataError(f"the sampling rate is {_quote([word])}, expected {SLOWEST:g} to {FASTEST:,.0f} Hz.")
    return rate


@lru_cache(maxsize=64)  # the channels of a recording, and mostly of a data set, have the same format
def _parse_format(word: str) -> tuple[int, int, int, int]:
    found = _FORMAT.fullmatch(word)
    if not found:
        raise DataError(f"the format of a signal is {_quote([word])}, expected one such as 16 or 16x1+24.")
    return int(found[1]), int(found[2] or 1), int(found[3] or 0), int(found[4] or 0)


@lru_cache(maxsize=64)
def _parse_gain(word: str) -> tuple[float, int | None, str]:
    found = _GAIN.fullmatch(word)
    if not found or not -1e30 < float(found[1]) < 1e30:
        raise DataError(f"the gain of a signal is {_quote([word])}, expected one such as 1000(0)/mV.")
    unit = found[3] or "mV"
    return float(found[1]) or 200.0, int(found[2]) if found[2] else None, "mV" if unit == "mv" else unit


def _whole(word: str, what: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise DataError(f"expected {what}, found {_quote([word])}.") from None


def _quote(lines: list[str]) -> str:
    return repr(lines[0][:80]) if lines else "an empty file"
