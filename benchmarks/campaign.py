"""Disturb clocs in every way that a machine can, with a seed and a budget: does it ever give another number?

    python benchmarks/campaign.py --seconds 60
    python benchmarks/campaign.py --jobs 3 --log trials --json benchmarks/results/campaign.json
    python benchmarks/campaign.py --again benchmarks/results/campaign.json
    python benchmarks/campaign.py --table benchmarks/results/campaign.json

Every trial ends as one of: equal (the results of an undisturbed process, after the same command was given again),
refused (one sentence, exit code 2); or it is a fault: another result, a traceback, more than 20 s, more than 2 GiB.
docs/reliability.md has the table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def main() -> int:
    """Run a campaign. Returns 0, or 1 where a trial broke a promise."""
    from faults.file_faults import is_loaded, restart_with_library
    from faults.page import table_of

    given = _parser().parse_args()
    if given.table is not None:
        print(table_of(json.loads(given.table.read_text())))
        return 0
    with tempfile.TemporaryDirectory(prefix="clocs-campaign-") as scratch:
        if not is_loaded():
            return restart_with_library(Path(scratch), [sys.executable, *sys.argv])
        from faults.campaign import Budget, make_again, run_campaign

        if given.again is not None:
            return make_again(Path(scratch), given.again)

        budget = Budget(given.kills, given.disks, given.reads, given.inputs, given.files, given.pairs, given.seconds)
        return run_campaign(Path(scratch), budget, given.seed, given.jobs, given.only, given.json, given.log)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds; trials are drawn over all groups")
    parser.add_argument("--kills", type=int, default=1000, help="processes killed, at file operations and at moments")
    parser.add_argument("--disks", type=int, default=400, help="full disks")
    parser.add_argument("--reads", type=int, default=400, help="failing reads, and changing files and clocks")
    parser.add_argument("--inputs", type=int, default=10000, help="mutated recordings and tables")
    parser.add_argument("--files", type=int, default=2000, help="damaged files of clocs")
    parser.add_argument("--pairs", type=int, default=60, help="two processes in one folder")
    parser.add_argument("--jobs", type=int, default=1, help="trials at once")
    parser.add_argument("--only", help="groups to run, with commas")
    parser.add_argument("--log", type=Path, help="folder for a line per trial; an interrupted campaign goes on there")
    parser.add_argument("--json", type=Path, help="file for the result")
    parser.add_argument("--again", type=Path, help="make only the trials again that broke a promise in this result")
    parser.add_argument(
        "--table", type=Path, help="print a result as the table of docs/reliability.md, and do nothing else"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
