"""Connect to a Ray cluster, and refuse one that does not answer or whose machines lack clocs or a plugin."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs

from clocs_core import SettingsError, Unavailable

_LOOK = 120.0  # seconds for a look at every machine: Ray starts a Python there first


@attrs.frozen
class Connection:
    """Ray, connected to a cluster. ours: whether to leave the cluster at the end. dashboard: its address, or ""."""

    ray: Any
    ours: bool
    dashboard: str


def connect(address: str, patience: float) -> Connection:
    """Connect to a cluster, or start one here without an address.

    Raises Unavailable where Ray is not installed, and SettingsError for a cluster that does not answer in time.
    """
    if address and has_token(os.environ, Path.home()):
        os.environ["RAY_AUTH_MODE"] = "token"  # read when Ray is imported; a cluster without tokens ignores it
    try:
        import ray
    except ImportError:
        raise Unavailable("The engine 'ray' needs Ray, which is not here: pip install 'clocs[ray]'.") from None
    ours = not ray.is_initialized()
    host, _, port = address.removeprefix("ray://").rpartition(":")
    found: list[Any] = []
    problems: list[BaseException] = []

    def begin() -> None:
        try:
            if ours and port.isdecimal():
                socket.create_connection((host, int(port)), timeout=patience).close()
            found.append(
                ray.init(
                    address=address or None,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    ignore_reinit_error=True,
                )
            )
        except Exception as problem:  # Ray raises many kinds for a cluster that is not there
            problems.append(problem)

    if _still_waits(begin, patience if address else None) or problems:
        why = (str(problems[0]).strip().splitlines() or [type(problems[0]).__name__])[0] if problems else "no answer"
        raise SettingsError(
            f"No Ray cluster answers at {address or 'this machine'} within {patience:g} s ({why.rstrip('.')}). "
            "Start one with `ray start --head`, or give its address: `address=HOST:PORT`."
        )
    return Connection(ray, ours, found[0].dashboard_url or "")


def has_token(variables: Mapping[str, str], home: Path) -> bool:
    """Return whether there is a token of Ray, and no word about whether to send it.

    From Ray 2.60 on, the first cluster that a program starts leaves a token in the home folder. Clusters that `ray
    start` makes ask for it from then on, and Ray does not send it by itself.
    """
    if "RAY_AUTH_MODE" in variables:
        return False
    named = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & variables.keys()
    return bool(named) or (home / ".ray" / "auth_token").exists()


def _still_waits(begin: Callable[[], None], patience: float | None) -> bool:
    """Begin, and return whether it still waits after so many seconds; None: start a cluster, however long it takes.

    Ray itself waits longer for a cluster, and cannot be told how long, so a thread waits. A thread must not start one:
    Linux ends the processes that Ray starts when the thread that started them ends.
    """
    if patience is None:
        begin()
        return False
    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    thread.join(patience)
    return thread.is_alive()


def refuse_unfit_workers(ray: Any, plugins: Mapping[str, str]) -> None:
    """Ask every machine for its plugins, all at once. Raises SettingsError for a machine without clocs or a plugin."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look = ray.remote(lacking)
    asked = {}
    for node in (node for node in ray.nodes() if node["Alive"]):
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        answer = look.options(num_cpus=0, scheduling_strategy=there).remote(dict(plugins))
        asked[answer] = f"The machine {node['NodeManagerHostname']} of the Ray cluster"
    for answer, name in asked.items():
        try:
            lacks = ray.get(answer, timeout=_LOOK)
        except Exception as problem:
            if "No module named" in str(problem):
                lacks = "has no clocs: install it there, with the same plugins as here."
            else:
                lacks = f"did not answer: {(str(problem).strip().splitlines() or [''])[-1]}"
        if lacks:
            raise SettingsError(f"{name} {lacks}")


def lacking(plugins: Mapping[str, str]) -> str:
    """Say which of these plugins, "distribution:plugin" by version, this machine lacks; "" if it has all."""
    here = {f"{one.dist.name}:{one.name}": one.dist.version for one in entry_points(group="clocs") if one.dist}
    for name, version in plugins.items():
        distribution, _, plugin = name.partition(":")
        if name not in here:
            return f"has no plugin {plugin!r}: install {distribution} {version} there."
        if here[name] != version:
            return f"has {distribution} {here[name]} instead of {version}: install the same version there."
    return ""
