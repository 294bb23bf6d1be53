"""Download many files at the same time, with one lock, one stop and one progress for all of them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

from clocs_core.data.transfer import Transfer, Wanted, open_session
from clocs_core.errors import DownloadError
from clocs_core.files import sweep, sweep_old, sync_folder

Progress = Callable[[int, int | None], None]


def download(
    wanted: Sequence[Wanted], progress: Progress, *, connections: int = 8, pause: float = 0.5
) -> tuple[Path, ...]:
    """Download files, and return those that were not there yet. At most `connections` files come at a time.

    A target that exists is complete, because it is renamed last. progress(bytes done, bytes in total or None) counts
    all files together, including bytes of earlier calls. `pause` is the first wait before another try, in seconds.

    Raises DownloadError; the bytes received stay as `<name>.part`, and the next call resumes from them.
    """
    absent = {one.target: one for one in wanted if _is_absent(one)}
    folders = sorted({target.parent for target in absent})
    stop = threading.Event()
    with ExitStack() as held, open_session(connections) as session, ThreadPoolExecutor(connections, "download") as pool:
        try:
            for folder in folders:
                held.callback(_lock(folder).release)
            for folder in folders:
                sweep(folder)
                sweep_old(folder, ".*.unpacking")  # received bytes stay, for they can be resumed
            transfers = [Transfer(one, session, stop, pause) for one in absent.values()]
            for transfer in transfers:
                transfer.resume()

            def tell() -> None:
                sizes = [transfer.size for transfer in transfers]
                known = [size for size in sizes if size is not None]
                progress(sum(each.came for each in transfers), sum(known) if len(known) == len(sizes) else None)

            _run(pool, [transfer.measure for transfer in transfers if transfer.size is None], tell)
            _refuse_full_disk(transfers)
            _run(pool, [transfer.fetch for transfer in transfers], tell)
            for folder in folders:
                sync_folder(folder)
        except BaseException:
            stop.set()  # also for Ctrl-C: every thread looks at it after every chunk
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(absent)


def _run(pool: ThreadPoolExecutor, jobs: Iterable[Callable[[], None]], tell: Callable[[], None]) -> None:
    """Run all jobs, and report progress four times a second. Raises the first failure."""
    tell()
    waiting: set[Future[None]] = {pool.submit(job) for job in jobs}
    while waiting:
        done, waiting = wait(waiting, timeout=0.25, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        tell()


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
    """Acquire a lock, so that two processes do not write one file."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".download.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DownloadError(f"Another process is downloading into {folder}; wait for it, or stop it.") from None
    return lock


def _refuse_full_disk(transfers: Sequence[Transfer]) -> None:
    """Raise DownloadError where the missing bytes do not fit on the disk, before hours of downloading."""
    needed = sum(transfer.size - transfer.came for transfer in transfers if transfer.size is not None)
    if needed <= 0:
        return
    folder = transfers[0].wanted.target.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"The download needs {needed / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} GB left. Make room, or "
            "choose another folder with `data_root=...`."
        )
