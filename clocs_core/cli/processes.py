"""Several processes that train together: those that torchrun started, and those that `clocs run --gpus N` starts.

This is the only place that reads the environment of torchrun. Process 0 speaks for all of them; an error is printed
once, by the process that meets it first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.cli.signals import end_after_sigterm, end_with_parent
from clocs_core.errors import ClocsError, LostProcess, SettingsError
from clocs_core.progress import COMMAND

if TYPE_CHECKING:
    import torch

    from clocs_core.train.ranks import Group

_OURS = "clocs-run-"  # beginning of the run id of processes that `clocs run` started
_PATIENCE = timedelta(hours=24)  # that a process waits for another: process 0 may prepare recordings for hours
_GRACE = 10.0  # seconds that a process has to end after SIGTERM
_speaking: list[Callable[[], bool]] = []


@attrs.frozen
class Place:
    """The place of this process among those of a training.

    local: its number on this machine, which is that of its GPU. restarts: how often torchrun has started all anew.
    launched: whether a launcher started them, which is the parent of each. ours: whether it is `clocs run`, which will
    say which one ended.
    """

    rank: int
    count: int
    local: int
    restarts: int = 0
    launched: bool = False
    ours: bool = False


def read_place(variables: Mapping[str, str]) -> Place | None:
    """Return the place that torchrun gave to this process; None where it is the only one."""
    if not {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"} <= variables.keys():
        return None
    count = int(variables["WORLD_SIZE"])
    if count == 1:
        return None
    return Place(
        rank=int(variables["RANK"]),
        count=count,
        local=int(variables["LOCAL_RANK"]),
        restarts=int(variables.get("TORCHELASTIC_RESTART_COUNT", "0")),
        launched="TORCHELASTIC_RUN_ID" in variables,
        ours=variables.get("TORCHELASTIC_RUN_ID", "").startswith(_OURS),
    )


@cache
def own_place() -> Place | None:
    """Return the place of this process."""
    return read_place(os.environ)


def is_first() -> bool:
    """Return whether this process prints what all have to say."""
    place = own_place()
    return place is None or place.rank == 0


def is_repeating() -> bool:
    """Return whether another process already prints the warnings about plugins, so that this one must not."""
    place = own_place()
    return place is not None and (place.ours or place.rank > 0)


def may_speak(problem: BaseException | None = None) -> bool:
    """Return whether this process is the first to print an error; with one process always.

    A process that `clocs run` started does not report that another one ended: `clocs run` reports that.
    """
    place = own_place()
    if place is not None and place.ours and isinstance(problem, LostProcess):
        return False
    return all(ask() for ask in _speaking)


@contextmanager
def meeting(place: Place) -> Iterator[Any]:
    """Connect to the other processes, so that one of them speaks; yield the store that all can write to."""
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    try:
        found, _, _ = next(iter(rendezvous("env://", timeout=timedelta(minutes=5))))
    except (RuntimeError, ValueError) as problem:
        raise LostProcess(f"The processes of this training cannot find each other: {_first_line(problem)}") from None
    store = PrefixStore(f"clocs-{place.restarts}", found)  # torchrun keeps what earlier attempts wrote
    asked: list[bool] = []

    def is_first_to_speak() -> bool:
        if not asked:
            try:
                asked.append(store.add("spoken", 1) == 1)
            except RuntimeError:  # the store is gone, and with it whoever could have spoken
                asked.append(place.rank == 0)
        return asked[0]

    _speaking[:] = [is_first_to_speak]
    yield store


@contextmanager
def joined(place: Place, store: Any, device: torch.device) -> Iterator[Group]:
    """Join the other processes, by NCCL between GPUs and by gloo between CPUs; leave them at the end."""
    import torch

    from clocs_core.train.ranks import Group, TorchWire

    refuse_different_devices(place, store, device.type)
    if device.type == "cuda":
        refuse_missing_gpus(place.local + 1, torch.cuda.device_count())
        torch.cuda.set_device(place.local)
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        torch.distributed.init_process_group(
            backend, store=store, rank=place.rank, world_size=place.count, timeout=_PATIENCE
        )
    except RuntimeError as problem:
        raise LostProcess(f"The processes of this training cannot be connected: {_first_line(problem)}") from None
    # A process that is stopped for a moment while another dies can wait for it in gloo's C++ for ever: gloo does not
    # notice that the connection is closed, and no handler of Python runs. The launcher of torch kills it 30 s after
    # SIGTERM; the `shutdown_timeout` of its settings does not change this wait.
    end_after_sigterm(_GRACE)
    if place.launched:
        end_with_parent()
    yield Group(TorchWire(place.rank, place.count))
    torch.distributed.destroy_process_group()  # not after an error: it would wait for processes that are gone


def refuse_different_devices(place: Place, store: Any, kind: str) -> None:
    """Raise SettingsError where one process has a GPU and another has none: they would wait for each other for ever."""
    store.set(f"device-{place.rank}", kind)
    for rank in range(place.count):
        try:
            other = store.get(f"device-{rank}").decode()  # waits until that process has come here
        except RuntimeError as problem:
            raise LostProcess(f"Process {rank} of this training does not come: {_first_line(problem)}") from None
        if other != kind:
            raise SettingsError(
                f"Process {place.rank} of this training has the device {kind!r}, and process {rank} has {other!r}. "
                "Start all of them on machines with GPUs, or with `device='cpu'`."
            )


def refuse_missing_gpus(asked: int, found: int) -> None:
    """Raise SettingsError where a machine has fewer GPUs than processes that need one."""
    if asked > found:
        raise SettingsError(
            f"{asked} processes of this machine need a GPU each, and torch finds {found}. Use fewer processes, or "
            "`device='cpu'`."
        )


def leave_after_error(code: int) -> None:
    """End this process at once where it trains with others; return where it is alone.

    Threads of a connection that was not closed end the process by SIGABRT now and then, while Python shuts down, and
    the exit code is lost. Closing it would wait for processes that are gone.
    """
    if own_place() is not None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def count_processes(gpus: int | None, processes: int | None) -> int:
    """Return how many processes are asked for. Raise SettingsError where this machine has fewer GPUs."""
    if gpus is not None:
        import torch

        if processes is not None:
            raise SettingsError("--gpus N starts N processes with a GPU each; leave out --processes.")
        found = torch.cuda.device_count()
        if gpus > found:
            raise SettingsError(
                f"--gpus {gpus} starts {gpus} processes with a GPU each, and torch finds {found} on this machine. Use "
                f"fewer, or train on CPUs: --processes {gpus} --device cpu."
            )
    return gpus or processes or 1


@contextmanager
def met_others() -> Iterator[tuple[Place, Any] | None]:
    """Yield the place among processes that were started, and the store that they share; None where this is alone."""
    place = own_place()
    if place is None:
        yield None
        return
    with meeting(place) as store:
        yield place, store


def start_processes(count: int, words: Sequence[str], goes_on: str) -> int:
    """Start a command in `count` processes, by torchrun's own launcher; return the exit code when all have ended.

    words: of the command. goes_on: the sentence that says how to go on. Raise ClocsError where one was killed: the
    others are stopped then.
    """
    import logging
    import signal

    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=f"{_OURS}{os.urandom(8).hex()}",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        max_restarts=0,
        monitor_interval=0.2,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "clocs_core", *words)
    except ChildFailedError as problem:
        # One that was killed comes first: those that lose it end at once, without a word, and may be noted before it.
        killed = [(rank, one) for rank, one in problem.failures.items() if one.exitcode < 0]
        rank, failure = killed[0] if killed else problem.get_first_failure()
        if failure.exitcode >= 0:
            return int(failure.exitcode)  # that process has said why
        name = signal.Signals(-failure.exitcode).name
        raise ClocsError(
            f"Process {rank} of {count} was ended by {name}, and the others were stopped. {goes_on}"
        ) from None
    except SignalException as stop:
        raise KeyboardInterrupt from stop
    return 0


def words_of_one() -> list[str]:
    """Return the words of this command for each process: without the number of processes."""
    import shlex

    words, kept = shlex.split(COMMAND.get())[1:], []
    while words:
        word = words.pop(0)
        if word in ("--gpus", "--processes"):
            words = words[1:]
        elif not word.startswith(("--gpus=", "--processes=")):
            kept.append(word)
    return kept


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
