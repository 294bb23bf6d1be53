"""Do what a run needs later in a thread beside it, while the thread of the run waits for a GPU or a disk.

Only for runs on a GPU: on a CPU a thread would take its time from the training. Each is done once in a process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread

import torch


@cache
def import_triton(device: torch.device) -> Thread | None:
    """Import Triton, which takes 0.3 s. Join the thread before anything else imports it.

    Where two threads import it at the same time, one of them may find a module without its names.
    """

    def work() -> None:
        with suppress(Exception):  # the run meets the same problem, and says so
            import_module("triton")

    return _beside(work, device)


@cache
def load_gpu_libraries(device: torch.device) -> Thread | None:
    """Let CUDA, cuBLAS, cuDNN and Triton load what they need at their first call, while recordings are read.

    Triton looks for its compiled kernels by a checksum of its own files, which takes 0.4 s to compute.
    """
    triton = import_triton(device)
    number = torch.cuda.current_device() if torch.cuda.is_initialized() else 0  # a new thread would begin with 0

    def work() -> None:
        with suppress(Exception), torch.cuda.device(number):  # the run meets the same problem, and says so
            some = torch.zeros(1, 1, 16, device=device)
            torch.nn.functional.conv1d(some, some[:, :, :3])
            torch.mm(some[0], some[0].T)
        if triton is not None:
            triton.join()
        with suppress(Exception):  # an older or newer Triton may have it elsewhere, and then does it when it needs it
            import_module("triton.runtime.cache").triton_key()

    return _beside(work, device)


def _beside(work: Callable[[], None], device: torch.device) -> Thread | None:
    if device.type == "cpu":
        return None
    thread = Thread(target=work)  # no daemon: a process must not end while a library is loaded
    thread.start()
    return thread
