"""Processes connected by gloo that stay alive from case to case: importing torch takes longer than all cases."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs
import torch

from clocs_core.train.ranks import Group, TorchWire

MOST = 4
LONGEST = 60.0  # seconds that a case may take


@attrs.frozen(eq=False)
class Pool:
    """Four processes, of which a case uses the first two, three or four."""

    ends: tuple[Connection, ...]

    def run(self, count: int, work: Callable[[Group], Any]) -> list[Any]:
        """Run `work` in the first `count` processes; return what each gives, or raise what one raised."""
        for end in self.ends[:count]:
            end.send((count, work))
        found = []
        for end in self.ends[:count]:
            if not end.poll(LONGEST):
                raise TimeoutError(f"a process gave no answer in {LONGEST:g} s")
            found.append(end.recv())
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found


@contextmanager
def rank_pool() -> Iterator[Pool]:
    """Start the processes, and stop them at the end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "clocs_core.train.ranks", "rank_cases"])
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe() for _ in range(MOST)]
        processes = [
            context.Process(target=partial(_serve, rank, pipes[rank][1], Path(folder) / "store"), daemon=True)
            for rank in range(MOST)
        ]
        for process in processes:
            process.start()
        try:
            yield Pool(tuple(ours for ours, _ in pipes))
        finally:
            for ours, _ in pipes:
                ours.close()  # ends the process
            for process in processes:
                process.join(10)
                process.kill()


def _serve(rank: int, end: Connection, store: Path) -> None:
    """Answer cases until the other end of the pipe is closed."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the one process that the case is compared with warns too
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=MOST, timeout=timedelta(seconds=LONGEST)
    )
    groups = {count: torch.distributed.new_group(list(range(count))) for count in range(2, MOST + 1)}
    while True:
        try:
            count, work = end.recv()
        except EOFError:
            return
        try:
            end.send(work(Group(TorchWire(rank, count, groups[count]))))
        except Exception as problem:
            end.send(RuntimeError(f"rank {rank}: {type(problem).__name__}: {problem}"))
