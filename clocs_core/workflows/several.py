"""Make several runs in one process: those of several seeds, or of several methods.

Every run is made as `pretrain_run` makes it alone, to the last bit. Runs share what they read: recordings are prepared
once, and a device holds one copy of the frames. A training step leaves most of a large GPU idle, so runs on a GPU are
trained at the same time, each by a thread with a stream and graphs of its own. A CPU has nothing idle: there they are
made one after the other.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue

import attrs
import torch

from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.data.audit import certified_audit
from clocs_core.data.store import keeping_frames
from clocs_core.errors import OutOfMemory
from clocs_core.plan.pretraining import Plan
from clocs_core.progress import COMMAND, RunDisplay, collect_warnings
from clocs_core.train.build import choose_device
from clocs_core.turns import Turns
from clocs_core.workflows.pretrain import FinishedRun, pretrain_run
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import find_recordings

AT_ONCE = 8
"""Runs that a GPU trains at the same time. Each adds its activations to the memory; torch has 32 streams in all."""

_NOW_AND_THEN = 0.2  # seconds

_NO_MEMORY = (OutOfMemory, torch.OutOfMemoryError)
"""How a run ends that has too little memory. Training raises the first; torch raises the second everywhere else."""


@attrs.frozen(eq=False)
class PlannedRun:
    """A run to make: its name in messages, its plan, and the keeper of its files.

    command: the command line that its report names, where it is not that of this process.
    """

    name: str
    plan: Plan
    keeper: RunKeeper
    command: str = ""


@attrs.frozen(eq=False)
class RunOutcome:
    """How one of several runs ended: finished, or with an error."""

    name: str
    finished: FinishedRun | None = None
    problem: Exception | None = None


def pretrain_several(
    runs: Sequence[PlannedRun], around: Surroundings, at_once: int | None = None
) -> tuple[RunOutcome, ...]:
    """Make runs, and return how each ended, in their order. An error ends its own run only, an interruption all.

    at_once: runs to train at the same time; default: up to eight on a GPU, one on a CPU.
    """
    said: set[str] = set()
    each = [(one, attrs.evolve(around, show=RunDisplay(around.show, one.name, said), began=None)) for one in runs]
    on_gpu = all(choose_device(one.plan.run.device).type == "cuda" for one in runs)
    count = min(len(runs), (AT_ONCE if on_gpu else 1) if at_once is None else at_once)
    with keeping_frames():
        if count < 2:
            return tuple(copy_context().run(_make, *one) for one in each)
        outcomes = _make_at_once(each, count, on_gpu)
        return tuple(_make_if_crowded(*one, outcome) for one, outcome in zip(each, outcomes, strict=True))


def _make(one: PlannedRun, around: Surroundings) -> RunOutcome:
    """Make one run, and return an error instead of raising it."""
    COMMAND.set(one.command or COMMAND.get())
    try:
        with collect_warnings(around.show.warn):
            return RunOutcome(one.name, finished=pretrain_run(one.plan, one.keeper, around))
    except Exception as problem:
        return _failed(one, around, problem)


def _make_at_once(each: Sequence[tuple[PlannedRun, Surroundings]], count: int, on_gpu: bool) -> tuple[RunOutcome, ...]:
    """Make runs by `count` threads that take turns. This thread waits, and hears signals."""
    gpu = torch.cuda.current_device() if on_gpu else None
    if on_gpu:
        torch.linalg.cholesky(torch.eye(2, device="cuda"))  # loads solvers, which one thread alone may do
    outcomes = {number: one for number, pair in enumerate(each) if (one := _read_ahead(*pair)) is not None}
    todo = deque((number, pair) for number, pair in enumerate(each) if number not in outcomes)
    turns = Turns()
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def work() -> None:
        problem: BaseException | None = None
        try:
            with _own_stream(gpu), turns.taking_part():
                while todo and not turns.stopped:
                    number, one = todo.popleft()
                    outcomes[number] = copy_context().run(_make, *one)
        except BaseException as stop:  # a thread must not end without a word: the first one waits for it
            problem = stop
            turns.stop()
        ended.put(problem)

    for _ in range(count):
        # daemon: a second interruption ends the process at once. The copied context has the name of the command.
        threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
    problems: list[BaseException | None] = []
    try:
        _hear(ended, count, problems)
    except KeyboardInterrupt:
        turns.stop()
        _hear(ended, count, problems)
        raise
    finally:
        turns.restore()
    for problem in problems:
        if problem is not None:
            raise problem
    return tuple(outcomes[number] for number in range(len(each)))


def _make_if_crowded(one: PlannedRun, around: Surroundings, outcome: RunOutcome) -> RunOutcome:
    """Make a run again, alone, that had too little memory beside the others: it goes on after its last epoch."""
    if not isinstance(outcome.problem, _NO_MEMORY):
        return outcome
    around.show.warn("it is made again, now that the others no longer need the memory")
    traceback.clear_frames(outcome.problem.__traceback__)  # they hold what is in the memory
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return copy_context().run(_make, attrs.evolve(one, keeper=one.keeper.again()), around)


def _read_ahead(one: PlannedRun, around: Surroundings) -> RunOutcome | None:
    """Read the recordings of a run, for all that share them. Returns how the run ended, if with an error.

    The threads find them read: preparing and auditing lock and write files that runs share, and a thread that waits for
    a lock would keep the turn from the one that holds it.
    """
    try:
        device = choose_device(one.plan.run.device)
        _, cohort = find_recordings(one.plan, around, device)
        certified_audit(cohort.evaluate, cohort.split, device)
    except Exception as problem:
        return _failed(one, around, problem)
    return None


def _failed(one: PlannedRun, around: Surroundings, problem: Exception) -> RunOutcome:
    around.show.warn(f"it ended with an error, and the others go on: {type(problem).__name__}: {problem}")
    return RunOutcome(one.name, problem=problem)


def _hear(ended: SimpleQueue[BaseException | None], count: int, problems: list[BaseException | None]) -> None:
    """Wait until all threads have ended, and add to `problems` how.

    It looks up now and then: a signal that another thread received interrupts this one only when it is awake.
    """
    while len(problems) < count:
        with suppress(Empty):
            problems.append(ended.get(timeout=_NOW_AND_THEN))


@contextmanager
def _own_stream(gpu: int | None) -> Iterator[None]:
    """Let a thread work on a stream of its own, on the GPU that the first thread chose; None: on the CPU."""
    if gpu is None:
        yield
        return
    with torch.cuda.device(gpu), torch.cuda.stream(torch.cuda.Stream()):
        yield
