"""Time a training on a machine with other work, with threads that wait in a loop and with threads that sleep.

    python benchmarks/shared_machine.py --json benchmarks/results/shared_machine.json

`clocs run --plugin cmsc --dataset demo --epochs 12` on the CPU, beside 0 and 2 processes that keep a core busy each.
`clocs` lets waiting threads sleep soon (GOMP_SPINCOUNT=3000); `passive` lets them sleep at once (0); `default` is what
GNU's OpenMP does by itself. They take turns, and of the seconds of training the medians count, with quartiles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from command_line import command_line

from clocs_core.grids.machine import describe_machine

POLICIES: dict[str, dict[str, str]] = {
    "default": {"GOMP_SPINCOUNT": "300000"},
    "clocs": {},
    "passive": {"GOMP_SPINCOUNT": "0"},
}
"""Ways to wait, and variables for them: how often a thread turns in its loop before it sleeps."""


def main() -> int:
    """Measure, print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 2], help="processes beside the training")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, object] = {"command": command_line(__file__), "date": datetime.now(UTC).date().isoformat()}
    found |= {"machine": describe_machine(), "epochs": given.epochs, "rounds": given.rounds, "training_seconds": {}}
    with tempfile.TemporaryDirectory() as folder:
        train("clocs", 1, Path(folder))  # prepares the frames
        for busy in given.busy:
            seconds: dict[str, list[float]] = defaultdict(list)
            with beside(busy):
                for _ in range(given.rounds):
                    for policy in POLICIES:
                        seconds[policy].append(train(policy, given.epochs, Path(folder)))
            found["training_seconds"][f"{busy} others"] = {name: _summary(one) for name, one in seconds.items()}  # type: ignore[index]
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


@contextmanager
def beside(count: int) -> Iterator[None]:
    """Keep cores busy with other processes."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def train(policy: str, epochs: int, folder: Path) -> float:
    """Run the command in a process of its own. Return the seconds of its training."""
    command = [sys.executable, "-m", "clocs_core", "run", "--plugin", "cmsc", "--dataset", "demo", "--device", "cpu"]
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command += ["--epochs", str(epochs), "-o", "resamples=10", "--data-root", str(folder), "--out", f"{out}/run"]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **POLICIES[policy]})
        seconds = json.loads(Path(out, "run", "report.json").read_text(encoding="utf-8"))["seconds"]
    return float(seconds["pretrain/training"])


def _summary(seconds: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
    return {"median": round(middle, 2), "low": round(low, 2), "high": round(high, 2)}


if __name__ == "__main__":
    raise SystemExit(main())
