"""Kill a piece of work at one of its file operations, for tests of what it leaves and of how it is resumed.

The work runs in a fork of the test's process, which has imported everything already. An audit hook of Python counts its
file operations below a folder, whoever makes them: core, a plugin or a library. A kill comes before the chosen
operation, and is `os._exit`: nothing is cleaned up, no `finally` runs, no buffer is flushed.

    operations = list_operations(work, folder)            # "create .report.json.tmp", "rename report.json", …
    for number, name in enumerate(operations, start=1):
        kill_before(number, work, copy_of(folder))
        …                                                 # resume, and compare

A fork of a process whose GPU has trained cannot train; such a test needs a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clocs_core.artifacts.tensors import read_tensors

KILLED = 137  # exit code of a process that was killed, as shells report it
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_ONE_PATH = {"os.remove": "remove", "os.mkdir": "make", "os.rmdir": "remove", "os.truncate": "truncate"}

Work = Callable[[], int]
"""Something that a process does; returns its exit code."""


class Failed(AssertionError):
    """The work ended with an error of its own. The message has all that it printed."""


def list_operations(work: Work, folder: Path) -> list[str]:
    """Do the work in a fork and list its file operations below `folder`, in order. Raises Failed where it fails."""
    code, operations, printed = _fork(work, folder, None)
    if code:
        raise Failed(f"exit code {code}\n{printed}")
    return operations


def kill_before(number: int, work: Work, folder: Path) -> str:
    """Do the work in a fork and kill it before its `number`-th operation below `folder`, counted from 1.

    Returns the operation that was not made. Raises Failed where the work ended before it.
    """
    code, operations, printed = _fork(work, folder, number)
    if code != KILLED:
        raise Failed(f"it was to be killed before operation {number}, but ended with exit code {code}\n{printed}")
    return operations[-1]


def finish(work: Work, folder: Path) -> str:
    """Do the work in a fork, to its end; return what it printed. Raises Failed where it fails."""
    code, _, printed = _fork(work, folder, None)
    if code:
        raise Failed(f"exit code {code}\n{printed}")
    return printed


def contents_of(run: Path) -> dict[str, Any]:
    """Read all that a finished run keeps, without times, to compare an interrupted run with one that nobody killed.

    Files are read byte by byte, except those with times inside. Events are read as TensorBoard reads them, because a
    resumed run has more files of them.
    """
    held: dict[str, Any] = {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name not in _WITH_TIMES and "tfevents" not in path.name
    }
    tensors, about = read_tensors(run / "encoder.safetensors")
    held["encoder.safetensors"] = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    held["card"] = _without_times(about)
    held["report.html"] = (run / "report.html").exists()
    held["report.json"] = _without_times(json.loads((run / "report.json").read_text(encoding="utf-8")))
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    held["metrics.jsonl"] = [_without_times(json.loads(line)) for line in lines]
    tensors, about = read_tensors(run / "checkpoint.safetensors")
    held["checkpoint.safetensors"] = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    held["progress and log"] = [about["progress"], _without_times(about["log"])]
    for folder in {path.parent for path in run.rglob("*tfevents*")}:
        held[f"events in {folder.relative_to(run)}"] = _curves(folder)
    return held


_WITH_TIMES = ("report.html", "report.json", "metrics.jsonl", "checkpoint.safetensors", "encoder.safetensors")


_OF_A_CLOCK = ("seconds", "digest", "date", "command")  # a command that resumes is another one


def _without_times(held: Any) -> Any:
    if isinstance(held, dict):
        return {name: _without_times(value) for name, value in held.items() if name not in _OF_A_CLOCK}
    return [_without_times(one) for one in held] if isinstance(held, list) else held


def _curves(folder: Path) -> dict[str, list[Any]]:
    """Read the points of every curve; values as text, because NaN does not equal itself."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0}).Reload()
    curves = {tag: [(one.step, repr(one.value)) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    texts = {tag: [one.step for one in found.Tensors(tag)] for tag in found.Tags()["tensors"] if tag == "scores"}
    return curves | texts


def _fork(work: Work, folder: Path, number: int | None) -> tuple[int, list[str], str]:
    """Return the exit code of the work, its operations up to a kill, and what it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        printed, listed = Path(scratch) / "printed", Path(scratch) / "operations"
        child = os.fork()
        if child == 0:
            _be_the_child(work, _Counter(folder, number, listed), printed)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        operations = [json.loads(line) for line in listed.read_text(encoding="utf-8").splitlines()]
        return code, operations, printed.read_text(encoding="utf-8", errors="replace")


def _be_the_child(work: Work, counter: _Counter, printed: Path) -> None:
    code = 1
    try:
        sys.stdout = sys.stderr = printed.open("w", buffering=1, encoding="utf-8")
        for number in (1, 2):  # what C libraries print
            os.dup2(sys.stdout.fileno(), number)
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)  # the parent's pool of threads does not exist in a fork: waiting for it hangs
        sys.addaudithook(counter)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Counter:
    """An audit hook that lists file operations below a folder, and ends the process before the chosen one."""

    def __init__(self, folder: Path, number: int | None, listed: Path) -> None:
        self.folder, self.number, self.count = folder.absolute(), number, 0
        self.listed = os.open(listed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        name = self._name(event, arguments)
        if name is None:
            return
        self.count += 1
        os.write(self.listed, f"{json.dumps(name)}\n".encode())
        if self.count == self.number:
            os._exit(KILLED)

    def _name(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        """Return a name of the operation that is the same in every process; None for any other event."""
        if event == "open":
            path, mode, flags = arguments
            verb = "append to" if isinstance(mode, str) and mode.startswith("a") else "create"
            return self._say(verb, path) if flags & _WRITES else None
        if event == "os.rename":
            return self._say("rename", arguments[1])
        if event in _ONE_PATH:
            number = arguments[-1] if event != "os.truncate" else -1
            return self._say(_ONE_PATH[event], arguments[0], number)
        return None

    def _say(self, verb: str, path: object, beside: int = -1) -> str | None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        start = Path(f"/proc/self/fd/{beside}").readlink() if beside >= 0 else Path.cwd()
        whole = start / os.fsdecode(path)
        if not whole.is_relative_to(self.folder):
            return None
        return f"{verb} {re.sub(r'[.][0-9]+[.]tmp(?=/|$)', '.tmp', str(whole.relative_to(self.folder)))}"
