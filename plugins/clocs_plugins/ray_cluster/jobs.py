"""Submit the jobs of a grid as tasks of a Ray cluster. Ray tries a task again when its machine is lost.

A task runs its job under the lock of the job's folder, so a command that outlived its task is waited for, not repeated,
and one that died with its machine is resumed. The folder must lie on a disk that all machines see.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from clocs_core import Job, Outcome, Workplace, run_job
from clocs_plugins.ray_cluster import RayOptions
from clocs_plugins.ray_cluster.cluster import connect, lacking, refuse_unfit_workers

_STOPPING = 30.0  # seconds for tasks that are asked to stop: their commands save themselves


class RayJobs:
    """Jobs as tasks of a Ray cluster. A job prefers the machine that did the last job with the same recordings."""

    def __init__(self, options: RayOptions, workplace: Workplace) -> None:
        self._ray, self._ours = connect(options.address, options.patience)
        self._workplace, self.at_once = workplace, workplace.at_once
        refuse_unfit_workers(self._ray, workplace.plugins)
        self._task = self._ray.remote(work).options(
            num_cpus=workplace.threads or 1, num_gpus=options.gpus, max_retries=options.retries
        )
        self._guard = threading.Lock()
        self._pending: dict[Any, str] = {}
        self._last: dict[str, str] = {}  # the machine of the last job, by group
        link = self._ray.get_runtime_context().gcs_address
        board = getattr(self._ray._private.worker.global_worker.node, "webui_url", None)
        workplace.say(f"Ray cluster at {link}; dashboard: {f'http://{board}' if board else 'none (ray[default])'}")

    def __enter__(self) -> RayJobs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            pending = list(self._pending)
        for task in pending:
            self._ray.cancel(task, recursive=False)  # KeyboardInterrupt there: the command is asked to save itself
        if pending:
            self._ray.wait(pending, num_returns=len(pending), timeout=_STOPPING)
        if self._ours:
            self._ray.shutdown()

    def submit(self, job: Job) -> Future[Outcome]:
        """Run a job when a machine has room for it."""
        place, future = self._workplace, Future[Outcome]()
        task = self._task.options(scheduling_strategy=self._prefer(job.group)).remote(
            job, place.command, sys.executable, place.threads, place.plugins
        )
        with self._guard:
            self._pending[task] = job.group
        task.future().add_done_callback(lambda done: future.set_result(self._end(task, job, done)))
        return future

    def _prefer(self, group: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._last.get(group)
        # Without spilling, a task would wait for its machine while others are idle.
        return NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True) if node else "DEFAULT"

    def _end(self, task: Any, job: Job, done: Future[tuple[Outcome, str]]) -> Outcome:
        with self._guard:
            self._pending.pop(task, None)
        problem = done.exception()
        if problem is not None:
            first = (str(problem).strip().splitlines() or [type(problem).__name__])[-1]
            return Outcome(error=f"The Ray task of {job.name} was lost: {type(problem).__name__}: {first}")
        outcome, node = done.result()
        self._last[job.group] = node
        return outcome


def work(
    job: Job, command: tuple[str, ...], python: str, threads: int | None, plugins: dict[str, str]
) -> tuple[Outcome, str]:
    """Do a job on a machine of the cluster; return its outcome, and which machine it was.

    python: the interpreter of the grid. Where the command begins with it, this machine's own takes its place.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    lacks = lacking(plugins)
    if lacks:
        return Outcome(error=f"A machine of the Ray cluster {lacks}"), node
    words = (sys.executable, *command[1:]) if command[0] == python else command
    return run_job(job, Workplace(command=words, threads=threads)), node
