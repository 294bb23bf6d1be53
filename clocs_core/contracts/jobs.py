"""Jobs of a grid or of a preparation, and executors that run them: here, or on a cluster by way of a plugin."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol

import attrs

from clocs_core.contracts.offers import Offer

_REPORT, _SETTINGS = "report.json", "settings.toml"  # as the folders of runs and evaluations have them


@attrs.frozen(kw_only=True)
class Job:
    """A command of clocs: `fresh` fills the folder, `resume` goes on with one that has been begun.

    The folder is filled when it has a report.json.
    group: jobs of one group read the same recordings, and are best run on the same machine.
    """

    name: str
    folder: Path
    fresh: tuple[str, ...]
    resume: tuple[str, ...]
    group: str = ""

    @property
    def log(self) -> Path:
        """The file with the output of the command, beside its folder."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def lock(self) -> Path:
        """The lock of the process that works on the folder."""
        return self.folder.with_name(f".{self.folder.name}.job")

    @property
    def locks(self) -> tuple[Path, ...]:
        """The locks to take before the job is run, in this order."""
        return (self.lock,)

    def command(self) -> tuple[str, ...] | None:
        """Choose the command that remains to be run; None where the report is there. Ask while holding the lock."""
        if (self.folder / _REPORT).exists():
            return None
        return self.resume if (self.folder / _SETTINGS).exists() else self.fresh


@attrs.frozen
class Outcome:
    """How a job ended: with its folder filled, or with an error. seconds: of the command; 0 if none was needed."""

    error: str = ""
    seconds: float = 0.0


class Executor(Protocol):
    """Runs jobs somewhere, several at once, in any order. Used as a context manager: leaving it stops what still runs.

    at_once: how many jobs are submitted before the first of them has ended.
    """

    @property
    def at_once(self) -> int:
        """How many jobs may be submitted before the first of them has ended."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Run a job when there is room for it. The future ends with an Outcome, whatever became of the job."""

    def __enter__(self) -> Executor: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@attrs.frozen(kw_only=True)
class Workplace:
    """Tells an executor what its jobs need, when it is opened.

    command: the words before those of a job, such as `python -m clocs_core`. at_once: how many jobs a user wants to run
    together. threads: of each job; None leaves it to the job. plugins: the versions of all plugins by
    "distribution:plugin", which the jobs need too. say: shows one line to the user; it may be called from any thread.
    """

    command: tuple[str, ...]
    at_once: int = 1
    threads: int | None = None
    plugins: dict[str, str] = attrs.field(factory=dict)
    say: Callable[[str], None] = lambda text: None


@attrs.frozen(kw_only=True)
class ExecutorOffer(Offer):
    """An executor by name, for `clocs grid run … --engine NAME` and `clocs data prepare … --engine NAME`.

    open(options, workplace) -> Executor; called once, before the first job. All machines must see the same disk.
    """

    kind: ClassVar[str] = "executor"
    open: Callable[[Any, Workplace], Executor]
