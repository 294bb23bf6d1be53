"""Downloads that go on where they stopped, over several connections, checked before a file gets its name.

On urllib and threads: pooch, the usual library for this and no dependency of ours, neither resumes nor divides a file.
"""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

import attrs
from filelock import FileLock, Timeout

from clocs_core.data.partfile import PartFile, Range, gaps
from clocs_core.data.web import FAILURES, Answer, Refused, ask
from clocs_core.errors import DownloadError

Progress = Callable[[int, int | None], None]

_PIECE = 1 << 24  # bytes asked for at a time: seconds on a slow line, so that a lost connection costs little
_CHUNK = 1 << 17  # bytes read at a time
_TRIES = 6  # in a row that bring no byte
_LONGEST_PAUSE = 30.0  # seconds


@attrs.frozen
class Wanted:
    """A file to download: from where, to where, and its size in bytes and SHA-256 where they are known."""

    address: str
    target: Path
    size: int | None = None
    sha256: str | None = None


def download(
    wanted: Sequence[Wanted],
    progress: Progress,
    *,
    connections: int = 8,
    pause: float = 0.5,
    piece: int = _PIECE,
) -> tuple[Path, ...]:
    """Download files, and return those that were not there yet. At most `connections` requests at a time.

    A target that exists is whole, for it gets its name last. progress(bytes done, bytes in total or None) is told of
    all files together, what was there before included. `pause` is the first wait before another try, in seconds.

    Raises DownloadError; what came stays as `<name>.part`, and the next call goes on from it.
    """
    absent = [one for one in wanted if _is_absent(one)]
    stop = threading.Event()
    with ExitStack() as held, ThreadPoolExecutor(connections, "download") as pool:
        try:
            for folder in sorted({one.target.parent for one in absent}):
                held.callback(_lock(folder).release)
            transfers = [_Transfer(one, stop, pause) for one in absent]
            for transfer in transfers:
                held.callback(transfer.close)
            _all(pool, [transfer.begin for transfer in transfers], stop, lambda: None)
            _refuse_full_disk(transfers)

            def tell() -> None:
                totals = [transfer.total for transfer in transfers]
                known = [total for total in totals if total is not None]
                progress(
                    sum(transfer.size for transfer in transfers), sum(known) if len(known) == len(totals) else None
                )

            jobs = [_job(transfer, one) for transfer in transfers for one in transfer.pieces(piece)]
            tell()
            _all(pool, jobs, stop, tell)
            _all(pool, [transfer.finish for transfer in transfers], stop, lambda: None)
        except BaseException:
            stop.set()  # Ctrl-C too: threads look at it after every chunk
            raise
    return tuple(one.target for one in absent)


def _job(transfer: _Transfer, piece: Range | None) -> Callable[[], None]:
    return lambda: transfer.fetch(piece)


def _all(
    pool: ThreadPoolExecutor, jobs: Sequence[Callable[[], None]], stop: threading.Event, tell: Callable[[], None]
) -> None:
    """Do all jobs, telling how far they are four times a second; the first failure stops the others."""
    waiting: set[Future[None]] = {pool.submit(job) for job in jobs}
    try:
        while waiting:
            done, waiting = wait(waiting, timeout=0.25, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            tell()
    finally:
        if waiting:
            stop.set()
            for future in waiting:
                future.cancel()
            wait(waiting)


def _is_absent(wanted: Wanted) -> bool:
    if not wanted.target.exists():
        return True
    found = wanted.target.stat().st_size
    if wanted.size is not None and found != wanted.size:
        raise DownloadError(
            f"{wanted.target} is there already, with {found:,} bytes, expected {wanted.size:,}. Delete it, and "
            "download it again."
        )
    return False


def _lock(folder: Path) -> FileLock:
    """A lock, acquired, so that two processes do not write one file."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".download.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DownloadError(f"Another process is downloading into {folder}; wait for it, or stop it.") from None
    return lock


@attrs.define(eq=False)
class _Transfer:
    """One file on its way."""

    wanted: Wanted
    stop: threading.Event
    pause: float
    part: PartFile | None = None
    ranged: bool = False

    @property
    def total(self) -> int | None:
        return self.part.total if self.part is not None else None

    @property
    def size(self) -> int:
        return self.part.size if self.part is not None else 0

    def begin(self) -> None:
        """Ask how long the file is and whether its parts can be had, by asking for its first byte."""
        answer = self._patiently(lambda: ask(self.wanted.address, 0, 0))
        with answer.response:
            self.ranged = answer.partial and answer.total is not None
        expected = self.wanted.size
        if expected is not None and answer.total not in (None, expected):
            raise DownloadError(
                f"{self.wanted.address} has {answer.total:,} bytes, expected {expected:,}: the publisher has changed "
                "it. Look at the data set's own page, and fetch it by hand."
            )
        trust = self.wanted.sha256 is not None
        total = answer.total if self.ranged else None
        self.part = PartFile.open(self.wanted.target, total, answer.tag, trust)
        if not self.ranged:
            self.part.total = answer.total

    def pieces(self, piece: int) -> list[Range | None]:
        """What is to be fetched; None is the whole file in one go."""
        assert self.part is not None  # begin() has been called
        if not self.ranged:
            return [None]
        return list(gaps(self.part.done, self.part.total or 0, piece))

    def fetch(self, piece: Range | None) -> None:
        """Fetch a piece, going on after every lost connection."""
        if piece is None:
            self._patiently(self._whole)
            return
        at, end = piece
        tries = 0
        while at < end:
            before = at
            try:
                at = self._some(at, end)
                problem: Exception = Refused("the connection ended too early")
            except FAILURES as failure:
                at, problem = self._reached(before, end), failure
            if at < end:
                tries = 1 if at > before else tries + 1
                self._wait(tries, problem)

    def finish(self) -> None:
        """Check the file and give it its name."""
        assert self.part is not None
        self.part.finish(self.wanted.target, self.wanted.size or self.part.total, self.wanted.sha256)

    def close(self) -> None:
        """Keep what came."""
        if self.part is not None:
            self.part.close()

    def _some(self, at: int, end: int) -> int:
        """Fetch from `at` on, as far as one connection goes. Returns the place after the last byte that came."""
        assert self.part is not None
        answer = ask(self.wanted.address, at, end - 1, self.part.tag)
        with answer.response as response:
            if (answer.tag, answer.total) != (self.part.tag, self.part.total):
                self.part.begin_anew()
                raise DownloadError(f"{self.wanted.address} was changed while it was downloaded. Download it again.")
            if not answer.partial or answer.first != at:
                raise Refused("the server sent another part of the file than it was asked for")
            while at < end and not self.stop.is_set() and (data := response.read(min(_CHUNK, end - at))):
                self.part.write(at, data)
                at += len(data)
        self._stopped()
        return at

    def _reached(self, at: int, end: int) -> int:
        """Where the bytes that came end, counted from `at`."""
        assert self.part is not None
        return next((min(stop, end) for first, stop in self.part.done if first <= at < stop), at)

    def _whole(self) -> None:
        """Fetch everything over one connection from the beginning: the server knows no ranges."""
        assert self.part is not None
        self.part.begin_anew()
        answer, at = ask(self.wanted.address), 0
        self.part.total = answer.total
        with answer.response as response:
            while not self.stop.is_set() and (data := response.read(_CHUNK)):
                self.part.write(at, data)
                at += len(data)
        self._stopped()
        expected = self.wanted.size or answer.total
        if expected is not None and at < expected:
            raise Refused(f"the connection ended after {at:,} of {expected:,} bytes")

    def _patiently(self, attempt: Callable[[], Answer | None]) -> Answer:
        tries = 0
        while True:
            try:
                return attempt()  # type: ignore[return-value]  # who passes a function without an answer needs none
            except FAILURES as problem:
                tries += 1
                self._wait(tries, problem)

    def _wait(self, tries: int, problem: Exception) -> None:
        """Wait before another try, longer each time. Raises what no try can mend, and DownloadError after the last."""
        if isinstance(problem, DownloadError) or _is_local(problem):
            raise problem
        if tries >= _TRIES:
            raise DownloadError(
                f"{self.wanted.address} could not be downloaded: {problem or type(problem).__name__}, after {tries} "
                "tries. What came is kept; the same command goes on from there."
            ) from problem
        asked = problem.wait if isinstance(problem, Refused) else 0.0
        self.stop.wait(max(asked, min(_LONGEST_PAUSE, self.pause * 2 ** (tries - 1))))
        self._stopped()

    def _stopped(self) -> None:
        if self.stop.is_set():
            raise DownloadError(f"The download of {self.wanted.target.name} was stopped. What came is kept.")


def _is_local(problem: Exception) -> bool:
    """Whether it is this machine's disk that refused, which no try can mend; such errors name no host."""
    names = ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO")  # not all systems have all of them
    return isinstance(problem, OSError) and errno.errorcode.get(problem.errno or 0) in names


def _refuse_full_disk(transfers: Sequence[_Transfer]) -> None:
    """Ask for the room before the hours: raises DownloadError where what is missing does not fit."""
    needed = sum((transfer.total or transfer.wanted.size or 0) - transfer.size for transfer in transfers)
    if not transfers or needed <= 0:
        return
    folder = transfers[0].wanted.target.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"The download needs {needed / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} GB left. Make room, or "
            "choose another folder with `data_root=...`."
        )
