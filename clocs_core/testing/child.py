"""Script that the checks run in a separate process: `child.py RESULT`, with the pickled job on stdin.

It imports nothing of clocs before the job begins, so that it can report what a plugin imports, opens and writes.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Events = list[tuple[str, str]]


def main() -> None:
    """Run the job and write its result, or the exception's text, to the file RESULT."""
    job, arguments = pickle.load(sys.stdin.buffer)
    result: object = try_imports(*arguments) if job == "imports" else try_dataset(*arguments)
    Path(sys.argv[1]).write_bytes(pickle.dumps(result))


def try_imports(
    modules: list[str], heavy: tuple[str, ...], budget: float, clock: Callable[[], float]
) -> dict[str, dict[str, Any]]:
    """Import modules one after the other and report what each did; stop after the first that breaks a rule.

    A broken rule hides what the next module does, so the caller starts another process for the rest.
    """
    events = watch()
    importlib.import_module("clocs_core")  # every plugin needs it, so its cost is not the plugin's
    told: dict[str, dict[str, Any]] = {}
    for name in modules:
        events.clear()
        began, error = clock(), ""
        try:
            importlib.import_module(name)
        except BaseException as problem:  # a plugin may raise anything, SystemExit included
            error = f"{type(problem).__name__}: {problem}"
        seconds = clock() - began  # processor time of this process: other processes do not count
        found = {
            "error": error,
            "seconds": seconds,
            "heavy": [one for one in heavy if one in sys.modules],
            "sockets": [what for event, what in events if event.startswith("socket.")],
            "written": [what for event, what in events if event == "write"],
            "api": getattr(sys.modules.get(name), "CLOCS_API", None),
        }
        told[name] = found
        if error or found["heavy"] or found["sockets"] or found["written"] or seconds > budget:
            break
    return told


def try_dataset(pickled: bytes) -> dict[str, Any]:
    """Scan a data set and load the given entries; report what was found, opened, read and imported."""
    events = watch()
    try:
        offer, task, root, options, entries = pickle.loads(pickled)
        offer.scan(root, task, options)  # the first scan imports modules, which opens files too
        events.clear()
        before = bytes_read()
        listing = offer.scan(root, task, options)
        after = bytes_read()
        opened = {what for event, what in events if event == "open"}
        did = list(events)
        loads = []
        for entry in entries:
            events.clear()
            loads.append((offer.load(entry, options), {what for event, what in events if event == "open"}))
            did += events
    except BaseException as problem:  # a plugin may raise anything
        return {"error": f"{type(problem).__name__}: {problem}"}
    return {
        "error": "",
        "listing": listing,
        "opened": opened,
        "opened_by_load": [opens for _, opens in loads],
        "sockets": [what for event, what in did if event.startswith("socket.")],
        "written": [what for event, what in did if event == "write"],
        "bytes_read": None if before is None or after is None else after - before,
        "records": [(r.patient, r.record, r.channels, r.unit, r.sampling_rate, r.label, r.samples) for r, _ in loads],
        "torch": "torch" in sys.modules,
    }


def watch() -> Events:
    """Return a list that fills with this process's events: sockets, files opened, files and folders written."""
    events: Events = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith("socket."):
            events.append((event, f"{event}{arguments[1:]}"))
        elif event == "os.mkdir":
            events.append(("write", str(arguments[0])))
        elif event == "open" and isinstance(arguments[0], (str, bytes)):
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR) if isinstance(flags, int) else False
            writes = writes or (isinstance(mode, str) and any(letter in mode for letter in "wax+"))
            writes = writes and os.fsdecode(path) != os.devnull
            events.append(("write" if writes else "open", os.path.realpath(os.fsdecode(path))))

    sys.addaudithook(note)
    return events


def bytes_read() -> int | None:
    """Return the number of bytes that this process has read so far, or None if the system does not count them."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("rchar")), None)


if __name__ == "__main__":
    main()
