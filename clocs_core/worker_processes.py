"""Let a worker process end with the process that started it. Workers import this module: no torch here."""

from __future__ import annotations

import os
import signal
import threading
import time


def end_with(parent: int) -> None:
    """Make this worker end when its parent ends or is killed, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
