"""Damage small files at random, with a fixed seed, and hold readers to a sentence, a time and a memory for each.

A `Case` writes a small whole data file, or several, and reads it as the program does. `broken_promises` reads many
damaged copies and yields those for which the reader did anything but return or raise one of the allowed exceptions.

    for problem in broken_promises(CASES["npz"], folder, count=200, seed=0):
        print(problem)          # names the mutation's number; `damage(raw, seed, number)` makes its bytes again
"""

from __future__ import annotations

import os
import random
import resource
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import made_files
import numpy as np
from faults.mutations import mutate

from clocs_core.contracts.records import Entry, Task
from clocs_core.data.array_file import open_array_file
from clocs_core.data.signal_file import read_signal_file
from clocs_core.data.wfdb import read_wfdb
from clocs_core.errors import DataError

COUNT = int(os.environ.get("CLOCS_MUTATIONS", "20"))
"""Damaged copies of each file in the fast tests. Set CLOCS_MUTATIONS to a larger number for a long search."""

SECONDS = 2.0
BYTES = 1 << 30
"""Time and additional memory that one small file may cost."""

Files = Mapping[str, bytes]


@attrs.frozen
class Case:
    """Files of one small recording or table by name, how they are read, and the exceptions that are allowed."""

    name: str
    files: Callable[[], Files]
    read: Callable[[Path], object]
    allowed: tuple[type[Exception], ...] = (DataError,)


@attrs.frozen
class BrokenPromise:
    """A damaged file that a reader did not treat as promised."""

    case: str
    file: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.case}: {self.file}, mutation {self.number}: {self.what}"


def damage(raw: bytes, seed: int, number: int) -> bytes:
    """Return the bytes of a file with one to three faults. The same seed and number give the same faults."""
    rng = random.Random(f"{seed} {number}")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        raw, _ = mutate(raw, rng)
    return raw


def broken_promises(case: Case, folder: Path, count: int = COUNT, seed: int = 0) -> Iterator[BrokenPromise]:
    """Read `count` damaged copies of the case's files, each in turn, and yield those that break a promise."""
    whole = case.files()
    names = sorted(whole)
    for name, raw in whole.items():
        (folder / name).write_bytes(raw)
    case.read(folder)  # whole files are read, and imports are not counted as time
    for number in range(count):
        name = names[number % len(names)]
        (folder / name).write_bytes(damage(whole[name], seed, number))
        os.utime(folder / name, ns=(number, number))  # readers remember a file by its size and time
        if what := _outcome(case, folder):
            yield BrokenPromise(case.name, name, number, what)
        (folder / name).write_bytes(whole[name])


def _outcome(case: Case, folder: Path) -> str:
    """Read once; return what went wrong, or nothing."""
    start, what = time.process_time(), ""  # the machine may be busy with other work
    try:
        with at_most(BYTES):
            case.read(folder)
    except case.allowed as problem:
        if "\n" in str(problem) or "allow_pickle" in str(problem):
            what = f"said {problem}"
    except Exception as problem:
        what = f"raised {type(problem).__name__}: {str(problem)[:200]}"
    seconds = time.process_time() - start
    return what or (f"took {seconds:.1f} s" if seconds > SECONDS else "")


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Let this process have `size` more bytes of address space; beyond that, it gets a MemoryError."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# --------------------------------------------------------------------------------------------------------- faults


# ---------------------------------------------------------------------------------------------------------- cases

_RNG = np.random.default_rng(0)
_COUNTS = _RNG.integers(-900, 900, size=(40, 2)).astype("<i2")  # (sample, channel)


def _header(signal: str, format_: str) -> bytes:
    sums = _COUNTS.sum(axis=0)
    lines = [f"r 2 500 {len(_COUNTS)} 12:30:00"]
    for channel, name in enumerate(("I", "II")):
        lines.append(f"{signal} {format_} 1000.0(0)/mV 16 0 {_COUNTS[0, channel]} {sums[channel]} 0 {name}")
    return ("\n".join([*lines, "#Age: 53", "#Dx: 426783006,59118001"]) + "\n").encode()


def _wfdb() -> Files:
    return {"r.hea": _header("r.dat", "16"), "r.dat": _COUNTS.tobytes()}


def _wfdb_by_package() -> Files:
    return {"r.hea": _header("r.dat", "80"), "r.dat": _RNG.integers(0, 255, size=80).astype(np.uint8).tobytes()}


def _matlab4() -> Files:
    start = np.array([30, 2, len(_COUNTS), 0, 4], "<i4").tobytes() + b"val\0"
    return {"r.hea": _header("r.mat", "16+24"), "r.mat": start + _COUNTS.tobytes()}


def _matlab5() -> Files:
    from scipy.io import savemat

    out = BytesIO()
    held = {"sex": "Male", "age": 53.0, "data": _RNG.normal(size=(12, 30))}
    savemat(out, {"ECG": held}, do_compression=True)  # type: ignore[arg-type]  # the stubs forget open files
    return {"A0001.mat": out.getvalue(), "REFERENCE.csv": b"Recording,First_label\nA0001,5,,\n"}


def _text() -> Files:
    rows = "\n".join(f"{a / 10},{b / 10}" for a, b in _COUNTS)
    return {"r.csv": f"I,II\n{rows}\n".encode()}


def _npy() -> Files:
    out = BytesIO()
    np.save(out, _COUNTS.T)
    return {"r.npy": out.getvalue()}


def _npz(save: Callable[..., None]) -> Files:
    out = BytesIO()
    x = _RNG.normal(size=(4, 2, 20)).astype(np.float32)
    save(out, x=x, sampling_rate=125.0, patient=np.array(["a", "b", "c", "d"]), y=np.arange(4), channels=["I", "II"])
    return {"r.npz": out.getvalue()}


def _arrays() -> Files:
    return {
        **_npz(np.savez),
        "patients.csv": b"patient\na\nb\nc\nd\n",
        "labels.csv": b"label,patient\nx,a\ny,b\nx,c\ny,d\n",
    }


def _read_arrays(folder: Path) -> object:
    from clocs_plugins.arrays import ArraysOptions, load, scan

    options = ArraysOptions(patients=folder / "patients.csv", labels=folder / "labels.csv", sampling_rate=125.0)
    listing = scan(folder / "r.npz", Task("label", classes=()), options)
    return [load(entry, options) for entry in listing.entries[:2]]


def _workbook() -> Files:
    from openpyxl import Workbook

    book, out = Workbook(), BytesIO()
    for row in (("FileName", "Rhythm", "Beat"), ("MUSE_1", "SB", "NONE"), ("MUSE_2", "AFIB", "TWC")):
        book.active.append(row)
    book.save(out)
    return {"Diagnostics.xlsx": out.getvalue()}


def _sheet() -> Files:
    """Return the sheet alone, so that faults fall into its XML and not into its compression."""
    with zipfile.ZipFile(BytesIO(_workbook()["Diagnostics.xlsx"])) as book:
        return {"sheet1.xml": book.read("xl/worksheets/sheet1.xml")}


def _read_sheet(folder: Path) -> object:
    with zipfile.ZipFile(BytesIO(_workbook()["Diagnostics.xlsx"])) as book:
        members = {name: book.read(name) for name in book.namelist()}
    members["xl/worksheets/sheet1.xml"] = (folder / "sheet1.xml").read_bytes()
    with zipfile.ZipFile(folder / "Diagnostics.xlsx", "w") as book:
        for name, raw in members.items():
            book.writestr(name, raw)
    return _read_workbook(folder)


def _read_workbook(folder: Path) -> object:
    from clocs_plugins.chapman.diagnostics import read_rhythms

    return read_rhythms(folder / "Diagnostics.xlsx")


def _read_recordings_table(folder: Path) -> object:
    from clocs_plugins.ptbxl.table import read_table

    return list(read_table(folder / "ptbxl_database.csv", 100))


def _ptbxl() -> Files:
    head = "ecg_id,patient_id,scp_codes,strat_fold,filename_lr,filename_hr"
    row = "1,15709.0,\"{'NORM': 100.0, 'SR': 0.0}\",3,records100/00000/00001_lr,records500/00000/00001_hr"
    return {"ptbxl_database.csv": f"{head}\n{row}\n{row}\n".encode()}


def _read_structure(folder: Path) -> object:
    from clocs_plugins.physionet2020 import FINDINGS, LEADS
    from clocs_plugins.physionet2020.listing import list_recordings
    from clocs_plugins.physionet2020.reading import read_recording

    list_recordings(folder, FINDINGS)
    return read_recording(Entry("A0001", "A0001", files=(folder / "A0001.mat",)), LEADS)


def _open_all(folder: Path) -> object:
    return [array.open() for array in open_array_file(folder / "r.npz").arrays.values()]


def _made(name: str, write: Callable[[Path, made_files.Wave, int], Path]) -> Case:
    """Return the case of a format: one second of two leads, written by its library."""

    def files() -> Files:
        with TemporaryDirectory() as folder:
            write(Path(folder) / name, made_files.wave(120, 1.0), 120)
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    return Case(name, files, lambda folder: read_signal_file(folder / name))


CASES = {
    case.name: case
    for case in (
        Case("wfdb", _wfdb, lambda folder: read_wfdb(folder / "r.hea")),
        Case("wfdb, by the package", _wfdb_by_package, lambda folder: read_wfdb(folder / "r.hea")),
        Case("matlab 4", _matlab4, lambda folder: read_wfdb(folder / "r.hea")),
        Case("matlab 5", _matlab5, _read_structure),
        Case("text", _text, lambda folder: read_signal_file(folder / "r.csv")),
        Case("npy", _npy, lambda folder: read_signal_file(folder / "r.npy")),
        Case("npz", lambda: _npz(np.savez), _open_all),
        Case("npz, compressed", lambda: _npz(np.savez_compressed), _open_all),
        Case("arrays and tables", _arrays, _read_arrays),
        Case("workbook", _workbook, _read_workbook),
        Case("sheet", _sheet, _read_sheet),
        _made("a.edf", made_files.write_edf),
        _made("a.bdf", made_files.write_edf),
        _made("a.h5", made_files.write_hdf5),
        _made("structure.mat", made_files.write_matlab),
        _made("v73.mat", made_files.write_matlab73),
        _made("a.dcm", made_files.write_dicom),
        _made("muse.xml", made_files.write_muse),
        _made("aecg.xml", made_files.write_aecg),
        _made("flac.hea", lambda path, samples, rate: made_files.write_wfdb(path, samples, rate, "516")),
        _made("f212.hea", lambda path, samples, rate: made_files.write_wfdb(path, samples, rate, "212")),
        Case("table of recordings", _ptbxl, _read_recordings_table),
    )
}
