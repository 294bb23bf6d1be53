"""Repeat any table or figure of the paper, or any grid of methods, data sets and settings, with one command.

    python benchmarks/run_all.py --list
    python benchmarks/run_all.py linear-main transfer-main --jobs 8
    python benchmarks/run_all.py linear-main --datasets ptbxl --seeds 3
    python benchmarks/run_all.py --methods cmsc,simclr --datasets ptbxl --downstream cardiology --label-fractions 0.25,1
    python benchmarks/run_all.py --pages
    python benchmarks/run_all.py --smoke
    python benchmarks/run_all.py --check

Finished jobs are not repeated, interrupted ones are resumed, and failed ones are noted while the rest goes on.
docs/benchmarks-grid.md says more.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core.cli.signals import heed_signals
from clocs_core.cli.unforeseen_errors import describe_io
from clocs_core.errors import ClocsError

if TYPE_CHECKING:
    from grid.story import OpenExecutor


def main(arguments: Sequence[str] | None = None, open_executor: OpenExecutor | None = None) -> int:
    """Run one grid. Returns 0; 1 where cells failed or a score left its interval; 2 for a mistake; 130 if stopped.

    open_executor: what runs the jobs, such as those of a cluster; processes of this machine without it.
    """
    from grid.flags import build_parser, read_request
    from grid.story import carry_out, local_processes

    from clocs_core.grids.invocations import Call, say_command

    given = build_parser(__doc__ or "").parse_args(arguments)
    # Behind `nohup … &` it is ignored, here and in the jobs, which are asked by it to save themselves and stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    typed = sys.argv if arguments is None else ["benchmarks/run_all.py", *arguments]
    call = Call(say_command(typed, str(Path.home())), lambda: datetime.now(UTC))
    try:
        with heed_signals():  # jobs are asked to stop and save themselves, as after Ctrl-C
            return carry_out(read_request(given, datetime.now()), call, open_executor or local_processes)
    except ClocsError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` has what it wants; Python would complain at its end, when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as problem:  # a full disk, a folder without permission
        print(f"Error: {describe_io(problem)} The same command goes on from here.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped; the same command goes on from here.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
