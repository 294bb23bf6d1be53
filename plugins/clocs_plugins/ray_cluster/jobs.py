"""Submit jobs as tasks of a Ray cluster. Ray tries a task again when its machine is lost.

A task runs its job under the lock of the job's folder, so a command that outlived its task is waited for, not repeated,
and one that died with its machine is resumed. The folder must lie on a disk that all machines see.
"""

from __future__ import annotations

import io
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any

from clocs_core import Job, Outcome, Workplace, run_job
from clocs_plugins.ray_cluster import RayOptions
from clocs_plugins.ray_cluster.cluster import connect, lacking, refuse_unfit_workers

_COLOUR = re.compile(r"\x1b\[\d*m")
_CACHED = 10.0  # seconds for which a network disk may hide a new folder
_STOPPING = 30.0  # seconds for tasks that are asked to stop: their commands save themselves


class RayJobs:
    """Jobs as tasks of a Ray cluster. A job prefers the machine that did the last job with the same recordings."""

    def __init__(self, options: RayOptions, workplace: Workplace) -> None:
        found = connect(options.address, options.patience)
        self._ray, self._ours = found.ray, found.ours
        self._workplace, self.at_once = workplace, workplace.at_once
        refuse_unfit_workers(self._ray, workplace.plugins)
        self._task = self._ray.remote(work)
        self._needs = {
            "num_cpus": workplace.threads or 1,
            "num_gpus": options.gpus,
            "memory": options.memory * 1e9 or None,
            "max_retries": options.retries,
        }
        self._guard, self._aside = threading.Lock(), ExitStack()
        self._pending: set[Any] = set()
        self.last: dict[str, str] = {}
        """The machine of the last job, by group."""
        board = f"http://{found.dashboard}" if found.dashboard else "none (`pip install 'ray[default]'`)"
        workplace.say(f"Ray cluster at {self._ray.get_runtime_context().gcs_address}; dashboard: {board}")
        for remark in remarks([node["Resources"] for node in self._ray.nodes() if node["Alive"]], self._needs):
            workplace.say(remark)

    def __enter__(self) -> RayJobs:
        self._aside.enter_context(redirect_stdout(Remarks(self._workplace.say)))
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
        self._aside.close()

    def submit(self, job: Job) -> Future[Outcome]:
        """Run a job when a machine has room for it."""
        place, future = self._workplace, Future[Outcome]()
        task = self._task.options(**self._needs, name=job.name, scheduling_strategy=self._prefer(job.group)).remote(
            job, place.command, sys.executable, place.threads, place.plugins
        )
        with self._guard:
            self._pending.add(task)
        task.future().add_done_callback(lambda done: future.set_result(self._end(task, job, done)))
        return future

    def _prefer(self, group: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self.last.get(group) if group else None
        # Without spilling, a task would wait for its machine while others are idle.
        return NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True) if node else "DEFAULT"

    def _end(self, task: Any, job: Job, done: Future[tuple[Outcome, str]]) -> Outcome:
        with self._guard:
            self._pending.discard(task)
        problem = done.exception()
        if problem is not None:
            first = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            return Outcome(error=f"Its Ray task was lost with its machine or its memory: {first}")
        outcome, node = done.result()
        self.last[job.group] = node
        return outcome


class Remarks(io.TextIOBase):
    """Stands in for the standard output, where Ray prints that a machine was lost, with pages of its log.

    The first line is said where all progress is; lines of the log, which are indented, are left out.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._line, self._said = say, "", {""}

    def write(self, text: str) -> int:
        """Say each line that is whole, and new: Ray repeats itself at the end."""
        *lines, self._line = f"{self._line}{text}".split("\n")
        for line in lines:
            if line not in self._said and not line.startswith(" "):
                self._said.add(line)
                self._say(_COLOUR.sub("", line))
        return len(text)


def remarks(machines: list[dict[str, float]], needs: dict[str, Any]) -> list[str]:
    """Say where jobs would wait for a machine that is large enough, or would leave all GPUs idle."""
    asked = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"], "memory": needs["memory"] or 0}
    found = []
    if not any(all(machine.get(name, 0) >= count for name, count in asked.items()) for machine in machines):
        words = f"{asked['CPU']} processors, {asked['GPU']:g} GPUs and {asked['memory'] / 1e9:g} GB"
        found.append(
            f"No machine of the cluster has {words}: jobs wait until one joins. --threads sets the processors."
        )
    if not asked["GPU"] and any(machine.get("GPU") for machine in machines):
        found.append("The cluster has GPUs, and no job gets one: -e gpus=0.25 lets four jobs share one.")
    return found


def work(
    job: Job, command: tuple[str, ...], python: str, threads: int | None, plugins: dict[str, str]
) -> tuple[Outcome, str]:
    """Do a job on a machine of the cluster; return its outcome, and which machine it was.

    python: the interpreter of the machine that submits jobs. Where the command begins with it, that of this machine
    takes its place.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    lacks = lacking(plugins)
    if lacks:
        return Outcome(error=f"A machine of the Ray cluster {lacks}"), node
    if not _is_seen(job.folder.parent):
        here = f"The machine {socket.gethostname()} of the Ray cluster does not see {job.folder.parent}"
        return Outcome(error=f"{here}: put it on a disk that all machines share."), node
    words = (sys.executable, *command[1:]) if command[0] == python else command
    return run_job(job, Workplace(command=words, threads=threads)), node


def _is_seen(folder: Path) -> bool:
    """Tell whether this machine sees a folder that another one made: at once, or when its cache of the disk is over."""
    end = time.monotonic() + _CACHED
    while not folder.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True
