"""Make shards by an executor: each of its processes repeats the command for a part of the recordings.

All of them see one disk. The process of a part scans the data set again, refuses other files than those it was told of,
makes the shards of its part, and then writes a report. A part whose machine was lost is begun again, and keeps the
shards that are finished.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import attrs

from clocs_core.contracts import jobs
from clocs_core.contracts.records import Entry, Framing
from clocs_core.data.cohort import scan
from clocs_core.data.recipe import stamp_entries
from clocs_core.data.shards import Convention, Job, make_shard
from clocs_core.errors import DataError
from clocs_core.files import write_atomically
from clocs_core.plan.data import DataPlan
from clocs_core.settings.options import plain, structure

PART = 32  # shards of a process: seconds to minutes of work, beside which the scan is short
_REPORT = "report.json"  # its presence says that a job is done


@attrs.frozen
class Elsewhere:
    """Makes shards by an executor. open: connects to it, when there is something to do.

    command: the words of the command that the processes repeat. Each gets `--part FILE` in addition.
    """

    open: Callable[[], jobs.Executor]
    command: tuple[str, ...]

    def make(self, shards: list[Job]) -> Generator[tuple[Job, list[str]], None, None]:
        """Make shards, and yield each with the recordings that could not be read. Raises DataError for lost parts."""
        parts = deque(self._parts(shards))
        count, lost = len(parts), list[str]()
        running: dict[Future[jobs.Outcome], tuple[jobs.Job, list[Job]]] = {}
        with self.open() as executor:
            while parts or running:
                while parts and len(running) < executor.at_once:
                    job, of_part = parts.popleft()
                    running[executor.submit(job)] = job, of_part
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job, of_part = running.pop(future)
                    error, report = future.result().error, job.folder / _REPORT
                    if error or not report.exists():
                        error = error or f"it left no {report}, so its machine does not see this disk"
                        lost.append(f"{job.name}: {error}")
                        continue
                    failures = json.loads(report.read_text(encoding="utf-8"))
                    yield from ((shard, failures.get(shard.path.name, [])) for shard in of_part)
        if lost:
            raise DataError(
                f"{len(lost)} of {count} parts were not prepared. The first, {min(lost).rstrip('.')}. Finished "
                "shards are kept: repair this and run the same command again."
            )

    def _parts(self, shards: list[Job]) -> list[tuple[jobs.Job, list[Job]]]:
        """Write what each process is told. A shard is in the same part in every call, so parts of two never overlap."""
        found = []
        for number, several in groupby(shards, lambda shard: int(shard.path.name.rpartition("-")[2]) // PART):
            of_part = list(several)
            folder = of_part[0].path.parent.absolute() / "parts" / f"part-{number:04d}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _REPORT).unlink(missing_ok=True)  # of an earlier call, which did not finish these
            file = folder.with_suffix(".json")
            write_atomically(file, _tell(of_part))
            words = (*self.command, "--part", str(file))
            found.append((jobs.Job(name=folder.name, folder=folder, fresh=words, resume=words), of_part))
        return found


def _tell(shards: list[Job]) -> str:
    first = shards[0]
    return json.dumps(
        {
            "here": str(Path.cwd()),
            "shards": {shard.path.name: [entry.record for entry in shard.entries] for shard in shards},
            "framing": plain(first.framing),
            "convention": plain(first.convention),
            "files": _seal(entry for shard in shards for entry in shard.entries),
        }
    )


def _seal(entries: Iterable[Entry]) -> str:
    return sha256(json.dumps(stamp_entries(entries)).encode()).hexdigest()


def folder_of_part(file: Path) -> Path:
    """Return the folder in which the command was typed, for paths that are relative."""
    return Path(json.loads(file.read_text(encoding="utf-8"))["here"])


def make_part(asked: DataPlan, file: Path) -> None:
    """Make the shards that a file of `Elsewhere` names, but for those that are finished, and report."""
    told = json.loads(file.read_text(encoding="utf-8"))
    framing = structure(Framing, told["framing"], "framing", arguments=False)
    convention = structure(Convention, told["convention"], "convention", arguments=False)
    listed = {entry.record: entry for entry in scan(asked).entries}
    load, options = asked.dataset.offer.load, asked.dataset.options
    shards = [
        Job(file.parents[1] / name, tuple(listed[one] for one in records if one in listed), load, options, framing,
            convention)
        for name, records in told["shards"].items()
    ]  # fmt: skip
    if _seal(entry for shard in shards for entry in shard.entries) != told["files"]:
        raise DataError(
            f"This machine sees other recordings of {asked.name!r} than the one that asked for them. All machines must "
            "see the same files."
        )
    failures = {shard.path.name: make_shard(shard) for shard in shards if not shard.done()}
    write_atomically(file.with_suffix("") / _REPORT, json.dumps(failures))
