"""Record the environment of a result: versions, machine, device, plugins."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

import torch

from clocs_core.plugins.host import Host
from clocs_core.train.ranks import Group
from clocs_core.versions import version_of


def now() -> str:
    """Return the date and the time, in UTC, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def environment(device: torch.device, host: Host, group: Group | None = None) -> dict[str, str]:
    """Return the name and version of everything a result may depend on, without host name, user or paths.

    group: the processes that train together; their number changes the dropout, and statistics of BatchNorm.
    """
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device_name(device),
        "cpus": str(os.cpu_count()),
        "torch threads": str(torch.get_num_threads()),
    }
    together = {} if group is None else {"processes": str(group.count)}
    return found | versions(host) | together


def device_name(device: torch.device) -> str:
    """Return the name of a GPU, or `cpu`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def versions(host: Host) -> dict[str, str]:
    """Return the versions of clocs, its libraries and its plugins."""
    found = {name: version_of(name) for name in ("clocs", "torch", "numpy", "scipy", "scikit-learn")}
    found |= {f"plugin {one.name}": f"{one.distribution} {one.version}" for one in host.plugins}
    return found
