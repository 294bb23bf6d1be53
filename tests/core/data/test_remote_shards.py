"""Shards that an executor makes: the same bytes, kept when a part is lost, and refused where other files are seen."""

from __future__ import annotations

import errno
import hashlib
import json
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs
import numpy as np
import pytest

from clocs_core.contracts.jobs import Executor, Job, Outcome
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Entry, Framing, Listing, Record, Task
from clocs_core.data import remote_shards, shards
from clocs_core.data.cohort import Cohort, get_cohort
from clocs_core.data.remote_shards import Elsewhere, make_part
from clocs_core.errors import ClocsError, DataError
from clocs_core.plan.data import Chosen, DataPlan
from clocs_core.settings.options import structure
from clocs_core.settings.sections import DataSettings

FRAMING = Framing(frame_samples=50)


@attrs.frozen
class Options:
    """denied: a recording that the system does not let us read today. killed: one at which the machine is lost."""

    denied: str = ""
    killed: str = ""


READ: list[str] = []
"""The recordings that were read, in their order."""


def scan(root: Path, task: Task, options: Options) -> Listing:
    return Listing([Entry(f"r{n:02d}", f"p{n:02d}", n % 2, files=(root / f"r{n:02d}",)) for n in range(20)])


def load(entry: Entry, options: Options) -> Record:
    READ.append(entry.record)
    if entry.record == options.killed:
        raise KeyboardInterrupt
    if entry.record == options.denied:
        raise PermissionError(errno.EACCES, "denied")
    seed = int(entry.files[0].read_text())
    samples = np.random.default_rng(seed).normal(size=(2, 230))
    return Record(entry.patient, entry.record, ("X", "Y"), "mV", 100.0, samples, entry.label)


MADE = Dataset(
    name="made",
    summary="twenty patients",
    modality="test",
    tasks=(Task("kind", classes=("a", "b")),),
    channels=("X", "Y"),
    scan=scan,
    load=load,
    options=Options,
)


@attrs.define
class Here:
    """An executor that does a job when it is submitted.

    fails: names of parts whose machine is lost. blind: whether files that it writes are seen by nobody else.
    """

    asked: DataPlan
    fails: frozenset[str] = frozenset()
    blind: bool = False
    done: list[str] = attrs.field(factory=list)
    at_once: int = 2

    def submit(self, job: Job) -> Future[Outcome]:
        ended = Future[Outcome]()
        try:
            if job.name in self.fails:
                raise DataError("its machine is lost.")
            assert job.fresh[:3] == ("data", "prepare", "made")
            if not self.blind:
                make_part(self.asked, Path(job.fresh[-1]))
            self.done.append(job.name)
            ended.set_result(Outcome(seconds=1.0))
        except ClocsError as problem:
            ended.set_result(Outcome(error=str(problem)))
        return ended

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shards of three recordings, parts of two shards: four parts, the last of one shard with two recordings."""
    monkeypatch.setattr(shards, "SHARD", 3)
    monkeypatch.setattr(remote_shards, "PART", 2)
    (tmp_path / "files").mkdir()
    for number in range(20):
        (tmp_path / "files" / f"r{number:02d}").write_text(str(number))


def plan(tmp_path: Path, root: str, **options: Any) -> DataPlan:
    data = DataSettings(data_root=str(tmp_path / root), root=tmp_path / "files")
    return DataPlan(Chosen(MADE, Options(**options)), data, MADE.tasks[0])


def prepared(asked: DataPlan, workers: Any) -> tuple[Cohort, list[tuple[int, int]]]:
    ticks: list[tuple[int, int]] = []
    return get_cohort(asked, FRAMING, FRAMING, workers, lambda *tick: ticks.append(tick)), ticks


def by(executor: Here) -> Elsewhere:
    return Elsewhere(lambda: executor, ("data", "prepare", "made"))


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_frames_made_elsewhere_are_those_made_here_to_the_last_byte(tmp_path: Path) -> None:
    here, _ = prepared(plan(tmp_path, "here"), 1)
    executor = Here(plan(tmp_path, "there"))
    there, ticks = prepared(executor.asked, by(executor))
    assert there.pretrain.fingerprint == here.pretrain.fingerprint
    assert bytes_of(there.pretrain.folder) == bytes_of(here.pretrain.folder)
    assert executor.done == [f"part-{number:04d}" for number in range(4)]
    assert ticks[0] == (0, 20)
    assert ticks[-1] == (20, 20)
    assert [path.name for path in there.pretrain.folder.parent.iterdir() if path.is_dir()] == [
        there.pretrain.fingerprint
    ]


def test_every_field_of_a_framing_is_told(tmp_path: Path) -> None:
    framing = Framing(frame_samples=50, sampling_rate=100 / 3, resampler="polyphase", band_pass=(0.5, 15.0), notch=9.0)
    convention = shards.Convention(("X", "Y"), "mV")
    job = shards.Job(tmp_path / "shard-00000", (), load, Options(), framing, convention)
    ((part, _),) = Elsewhere(lambda: pytest.fail("never"), ())._parts([job])
    told = json.loads(Path(part.fresh[-1]).read_text())
    assert structure(Framing, told["framing"], "framing") == framing
    assert structure(shards.Convention, told["convention"], "convention") == convention


def test_a_second_call_opens_no_executor(tmp_path: Path) -> None:
    first, _ = prepared(plan(tmp_path, "here"), 1)
    again, _ = prepared(plan(tmp_path, "here"), Elsewhere(lambda: pytest.fail("there is nothing to do"), ()))
    assert again.pretrain.folder == first.pretrain.folder


def test_a_part_that_is_begun_again_keeps_the_shards_that_are_finished(tmp_path: Path) -> None:
    class BeginsAgain(Here):
        def submit(self, job: Job) -> Future[Outcome]:
            with suppress(KeyboardInterrupt):
                make_part(plan(tmp_path, "there", killed="r10"), Path(job.fresh[-1]))
            return super().submit(job)

    READ.clear()
    executor = BeginsAgain(plan(tmp_path, "there"))
    there, _ = prepared(executor.asked, by(executor))
    assert {record: count for record, count in Counter(READ).items() if count > 1} == {"r00": 2, "r09": 2, "r10": 2}
    here, _ = prepared(plan(tmp_path, "here"), 1)
    assert bytes_of(there.pretrain.folder) == bytes_of(here.pretrain.folder)


def test_a_lost_part_is_told_and_the_next_call_makes_that_part_alone(tmp_path: Path) -> None:
    lossy = Here(plan(tmp_path, "there"), fails=frozenset({"part-0001"}))
    with pytest.raises(
        DataError, match=r"1 of 4 parts were not prepared. The first, part-0001: its machine is lost\. "
    ):
        prepared(lossy.asked, by(lossy))
    assert len(lossy.done) == 3
    whole = Here(lossy.asked)
    there, ticks = prepared(whole.asked, by(whole))
    assert whole.done == ["part-0001"]
    assert ticks[0] == (14, 20)
    here, _ = prepared(plan(tmp_path, "here"), 1)
    assert bytes_of(there.pretrain.folder) == bytes_of(here.pretrain.folder)


def test_a_machine_that_sees_other_files_is_refused(tmp_path: Path) -> None:
    """Under the same fingerprint, its frames would be those of other recordings."""
    executor = Here(plan(tmp_path, "there"))
    (tmp_path / "copy").mkdir()
    for path in (tmp_path / "files").iterdir():
        (tmp_path / "copy" / path.name).write_text(path.read_text() + " ")
    executor.asked = attrs.evolve(executor.asked, data=attrs.evolve(executor.asked.data, root=tmp_path / "copy"))
    with pytest.raises(DataError, match="part-0000: This machine sees other recordings of 'made' than the one that"):
        prepared(plan(tmp_path, "there"), by(executor))


def test_a_machine_that_does_not_see_the_disk_is_told(tmp_path: Path) -> None:
    executor = Here(plan(tmp_path, "there"), blind=True)
    with pytest.raises(DataError, match=r"it left no .*report\.json, so its machine does not see this disk"):
        prepared(executor.asked, by(executor))


def test_recordings_that_cannot_be_read_today_are_told_as_ever_and_read_again_later(tmp_path: Path) -> None:
    denied = Here(plan(tmp_path, "there", denied="r07"))
    with pytest.raises(DataError, match=r"1 of 20 recordings could not be read now.* The first, r07"):
        prepared(plan(tmp_path, "there"), by(denied))
    whole = Here(plan(tmp_path, "there"))
    prepared(whole.asked, by(whole))
    assert whole.done == ["part-0001"]
