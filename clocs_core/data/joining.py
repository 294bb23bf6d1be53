"""Join the frames of shards into one file, in the order of the entries, while later shards are still being made.

The system copies a shard without its bytes passing through this process; a file system that shares blocks copies
nothing. A kill loses the joined file alone, which the next call makes again from the finished shards.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import attrs
import numpy as np
from safetensors.numpy import load_file

from clocs_core.data.checksums import Piece, Summing
from clocs_core.data.shards import Job
from clocs_core.files import flush

_COPIED = 1 << 22  # bytes copied at a time where the system does not copy by itself


class Joining:
    """Appends finished shards to one file. All samples are float32 unless every record has 16-bit integers."""

    def __init__(self, jobs: list[Job], target: Path, frame_samples: int) -> None:
        """Join the shards of all jobs in a new file `target`. frame_samples: of one frame, all channels."""
        self.shards: list[dict[str, Any]] = []
        """The facts of the shards that are joined so far."""
        self._jobs, self._finished, self._kinds = jobs, set[Path](), set[str]()
        self._samples, self._target = frame_samples, target
        target.write_bytes(b"")

    def add(self, job: Job) -> None:
        """Take note that a shard is finished, and append all that are next in the order."""
        self._finished.add(job.path)
        while len(self.shards) < len(self._jobs) and self._jobs[len(self.shards)].path in self._finished:
            following = self._jobs[len(self.shards)]
            shard = json.loads(following.file(".json").read_text(encoding="utf-8"))
            self._kinds.update(kind for _, kind in shard["stored"])
            if len(self._kinds) < 2:
                append_file(following.file(".bin"), self._target)
            self.shards.append(shard)

    @property
    def lossless(self) -> bool:
        """Whether all samples so far are a recorder's own 16-bit integers."""
        return self._kinds <= {"<i2"}

    def finish(self) -> list[tuple[object, ...]]:
        """Flush the file to the disk; return size and checksums of each piece, which workers computed in parallel."""
        assert len(self.shards) == len(self._jobs)
        pieces = [Piece(*shard["pieces"][0]) for shard in self.shards]
        with open(self._target, "r+b") as out:
            if len(self._kinds) > 1:  # some are integers and some are not, which is known only now
                out.truncate(0)
                pieces = [self._write_as_float(out, *one) for one in zip(self._jobs, self.shards, strict=True)]
            flush(out)
        return [attrs.astuple(piece) for piece in pieces]

    def _write_as_float(self, out: IO[bytes], job: Job, shard: dict[str, Any]) -> Piece:
        """Write a shard as float32, integers divided by their gain, one record in memory at a time."""
        gains, done, sums = load_file(job.file(".index"))["gain"], 0, Summing()
        with open(job.file(".bin"), "rb") as file:
            for frames, kind in shard["stored"]:
                samples = np.frombuffer(file.read(frames * self._samples * int(kind[2])), dtype=kind)
                if kind == "<i2":
                    samples = (samples / gains[done]).astype("<f4")
                done += frames
                sums.update(samples.data)
                out.write(samples.data)
        return sums.piece()


def append_file(source: Path, target: Path) -> None:
    """Append a file to another: within the system where it can, or else by reading and writing."""
    with open(source, "rb", buffering=0) as file, open(target, "r+b") as out:
        out.seek(0, os.SEEK_END)
        with suppress(OSError, AttributeError):  # another system than Linux, or another file system
            while os.copy_file_range(file.fileno(), out.fileno(), 1 << 30):
                pass
        out.seek(0, os.SEEK_END)
        shutil.copyfileobj(file, out, _COPIED)  # what is left; a full disk is met again here, and raised
