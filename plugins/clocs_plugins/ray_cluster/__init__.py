"""Run jobs on a Ray cluster: `clocs grid run FILE --engine ray --address HOST:PORT`, and `clocs data prepare`.

`pip install 'clocs[ray]'` brings Ray, which is imported when it is used.
"""

from __future__ import annotations

import attrs

from clocs_core import Executor, ExecutorOffer, Workplace, hookimpl, option


@attrs.frozen
class RayOptions:
    """Options of the engine `ray`."""

    address: str = option("", "HOST:PORT of the cluster; `auto` finds that of this machine; empty starts one here.")
    gpus: float = option(
        0.0,
        "GPUs of a job; 0.25 lets four jobs share one.",
        check=(lambda share: 0 <= share <= 1 or share == int(share) > 1, "be between 0 and 1, or a whole number"),
    )
    memory: float = option(
        0.0, "Memory of a job in GB; 0 reserves none.", check=(lambda gigabytes: gigabytes >= 0, "be at least 0")
    )
    retries: int = option(
        3, "How often a job is tried again when its machine is lost.", check=(lambda n: n >= 0, "be at least 0")
    )
    patience: float = option(
        20.0, "Seconds within which the cluster has to answer.", check=(lambda seconds: seconds > 0, "be positive")
    )


def open_ray(options: RayOptions, workplace: Workplace) -> Executor:
    """Connect to the cluster, and refuse one that cannot do the jobs."""
    from clocs_plugins.ray_cluster.jobs import RayJobs

    return RayJobs(options, workplace)


@hookimpl
def clocs_executors() -> list[ExecutorOffer]:
    """Offer the engine `ray`."""
    return [ExecutorOffer(name="ray", summary="Jobs on a Ray cluster.", options=RayOptions, open=open_ray)]
