"""Time whole commands, from their start to their report, beside those of an older commit.

    python benchmarks/end_to_end.py --old cbcbe04 --device cuda --json benchmarks/results/end_to_end.json

Rows, each of which `--only` makes alone:

    run       `clocs run --plugin cmsc --dataset demo -o patients=8000`, frames prepared: wall time, stages, memory
    prepare   the same of one epoch, from nothing: the stage `prepare`
    demo      the command of `make demo`, frames prepared
    classes   evaluation of 71 any-of classes on 17,000 x 512 features (benchmarks/linear_solver.py)
    table     the paper's linear table of benchmarks/paper_linear.toml, scores and page
    jobs      a grid of twelve small jobs, two at a time, on a CPU: what the start of a job costs

`classes` and `table` are new alone, the others run old and new in turn. One round before each row is not counted: it
prepares frames and compiles kernels. Of the others the medians count, with quartiles. Stages are those that a run
writes into its report; memory is the largest resident set of the run or of one of its workers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
from command_line import command_line

from clocs_core.files import write_atomically
from clocs_core.grids.machine import describe_machine

HERE = Path(__file__).resolve().parent
ROWS = ("run", "prepare", "demo", "classes", "table", "jobs")
JOBS = """
[axes]
method = ["cmsc", "simclr"]
dataset = "demo"
embedding_dim = 16
seed = [0, 1, 2]

[run]
epochs = 1
patients = 40
resamples = 10

[evaluate]
patients = 40
resamples = 10
"""

Measured = dict[str, float]
"""Seconds by stage, `wall` among them, and `resident_megabytes`."""


@attrs.frozen
class Bench:
    """How large and how often. scratch: a folder for data and runs."""

    scratch: Path
    device: str
    patients: int
    repeats: int
    old_repeats: int
    smoke: bool
    runs_per_job: int | None
    jobs: int
    demo_patients: int | None


@attrs.frozen
class Side:
    """A version of clocs: its name in the table, and the folder of its sources."""

    name: str
    tree: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Python imports this version."""
        places = [str(self.tree), str(self.tree / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


def main() -> int:
    """Make the rows that were asked for, print them, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="a commit, or a folder with its sources, to run beside this version")
    parser.add_argument("--only", choices=ROWS, action="append", help="make this row; repeatable")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--patients", type=int, default=8000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--old-repeats", type=int, help="rounds of the older commit, if fewer")
    parser.add_argument("--runs-per-job", type=int, help="runs that a job of the table trains in one process")
    parser.add_argument("--jobs", type=int, default=1, help="jobs of the table at a time")
    parser.add_argument("--demo-patients", type=int, help="patients of `demo` in this version, if not its own number")
    parser.add_argument("--smoke", action="store_true", help="few patients, one round: does every row still work?")
    parser.add_argument("--json", type=Path, help="where to write the table")
    given = parser.parse_args()
    found: dict[str, Any] = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine() if given.device == "cpu" else f"{_gpu()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
        "patients": 40 if given.smoke else given.patients,
        "rows": {},
    }
    with tempfile.TemporaryDirectory() as scratch, sides_of(given.old) as sides:
        repeats = 1 if given.smoke else given.repeats
        bench = Bench(
            scratch=Path(scratch),
            device=given.device,
            patients=found["patients"],
            repeats=repeats,
            old_repeats=repeats if given.old_repeats is None else min(repeats, given.old_repeats),
            smoke=given.smoke,
            runs_per_job=given.runs_per_job,
            jobs=given.jobs,
            demo_patients=given.demo_patients,
        )
        for row in given.only or ROWS:
            found["rows"][row] = measure(row, bench, sides)
            print(row, json.dumps(found["rows"][row], indent=1), flush=True)
            if given.json:  # after every row: time on a GPU may be over before the last one
                write_atomically(given.json, json.dumps(found, indent=1) + "\n")
    return 0


def measure(row: str, bench: Bench, sides: Sequence[Side]) -> dict[str, Any]:
    """Make one row: for each side, medians and quartiles."""
    if row == "classes":
        return {sides[-1].name: time_classes(bench, sides[-1])}
    if row == "table":
        return {sides[-1].name: time_table(bench, sides[-1])}
    rounds: dict[str, list[Measured]] = {side.name: [] for side in sides}
    for number in (1,) if bench.smoke else range(1 + bench.repeats):
        for side in sides if number <= bench.old_repeats else sides[-1:]:  # in turn: both meet the same machine
            data = bench.scratch / row / side.name / (f"data {number}" if row == "prepare" else "data")
            if row == "jobs":
                found = time_jobs(bench, side, data)
            else:
                found = time_run(row, bench, side, data, warm_up=number == 0)
            if number:
                rounds[side.name].append(found)
    return {name: summarise(of_side) for name, of_side in rounds.items()}


def time_run(row: str, bench: Bench, side: Side, data: Path, warm_up: bool) -> Measured:
    """Run the command of a row. A round that warms up has one epoch."""
    command = demo_command(side.tree) if row == "demo" else ["run", "--plugin", "cmsc", "--dataset", "demo"]
    command += ["--data-root", str(data), "--device", bench.device]
    own = bench.demo_patients if side.tree == HERE.parent else None
    patients = own if row == "demo" and not bench.smoke else bench.patients
    command += [] if patients is None else ["-o", f"patients={patients}"]
    command += ["--epochs", "1", "-o", "resamples=10"] if warm_up or row == "prepare" or bench.smoke else []
    with tempfile.TemporaryDirectory(dir=bench.scratch) as folder:
        wall, megabytes = run([sys.executable, "-m", "clocs_core", *command, "--out", f"{folder}/run"], side)
        seconds = json.loads(Path(folder, "run", "report.json").read_text())["seconds"]
    if row == "prepare":
        return {"prepare": seconds["prepare"], "resident_megabytes": megabytes}
    return {"wall": wall, **seconds, "resident_megabytes": megabytes}


def demo_command(tree: Path) -> list[str]:
    """Return the words after `clocs` that `make demo` has in these sources."""
    (line,) = re.findall(r"^\t\$\(BIN\)/clocs (run .*--dataset demo.*)$", (tree / "Makefile").read_text(), re.MULTILINE)
    return shlex.split(line)


def time_classes(bench: Bench, side: Side) -> Any:
    """Time an evaluation of many classes, in the rounds of its own benchmark."""
    out = bench.scratch / "classes.json"
    size = ["--rows", "300", "--features", "8", "--classes", "3"] if bench.smoke else []
    command = [sys.executable, str(HERE / "linear_solver.py"), "--device", bench.device, "--out", str(out)]
    _, megabytes = run([*command, "--rounds", str(max(2, bench.repeats)), *size], side)
    return {**json.loads(out.read_text())["seconds"], "resident_megabytes": megabytes}


def time_table(bench: Bench, side: Side) -> dict[str, dict[str, float]]:
    """Time the whole table, with the frames of its first run prepared."""
    data, file = bench.scratch / "table" / "data", bench.scratch / "paper_linear.toml"
    text = (HERE / "paper_linear.toml").read_text(encoding="utf-8")
    file.write_text(text.replace("patients = 8000", f"patients = {bench.patients}"), encoding="utf-8")
    time_run("table", bench, side, data, warm_up=True)
    command = ["grid", "run", str(file), "--data-root", str(data), "--device", bench.device]
    command += ["--axis", "method=cmsc", "--axis", "seed=0", "--resamples", "10"] if bench.smoke else []
    command += ["--runs-per-job", str(bench.runs_per_job)] if bench.runs_per_job else []
    command += ["--jobs", str(bench.jobs)]
    rounds: list[Measured] = []
    for number in range(bench.repeats):
        out = bench.scratch / f"grid {number}"
        wall, megabytes = run([sys.executable, "-m", "clocs_core", *command, "--out", str(out)], side)
        rounds.append({"wall": wall, "resident_megabytes": megabytes})
        print(f"table {number + 1} of {bench.repeats}: {wall:.1f} s", flush=True)
    return summarise(rounds)


def time_jobs(bench: Bench, side: Side, data: Path) -> Measured:
    """Run the grid of small jobs."""
    with tempfile.TemporaryDirectory(dir=bench.scratch) as folder:
        file = Path(folder, "jobs.toml")
        file.write_text(JOBS, encoding="utf-8")
        command = ["grid", "run", str(file), "--data-root", str(data), "--device", "cpu", "--jobs", "2"]
        command += ["--axis", "seed=0", "--axis", "method=cmsc"] if bench.smoke else []
        wall, megabytes = run([sys.executable, "-m", "clocs_core", *command, "--out", f"{folder}/grid"], side)
    return {"wall": wall, "resident_megabytes": megabytes}


def run(command: Sequence[str], side: Side) -> tuple[float, float]:
    """Run a command of one side; return its seconds and the largest resident memory, in megabytes.

    On Linux that is at least the memory of this process, which a child has until its command begins.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        # `python -m` imports from the folder that it is started in, before all others.
        child = subprocess.Popen(command, cwd=side.tree, env=side.environment, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}:\n{said.read().decode()[-2000:]}")
    return time.perf_counter() - began, used.ru_maxrss * 1024 / 1e6


def summarise(rounds: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Return median and quartiles of everything that all rounds measured."""
    found = {}
    for name in rounds[0]:
        values = [one[name] for one in rounds if name in one]
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        found[name] = {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}
    return found


@contextmanager
def sides_of(old: str | None) -> Iterator[list[Side]]:
    """Give the sides to run: the old version, if one is named, and this one. A commit is checked out for the time."""
    new = Side("new", HERE.parent)
    if old is None or Path(old).is_dir():
        yield [*([Side(old, name_plugins(Path(old).resolve()))] if old else []), new]
        return
    with tempfile.TemporaryDirectory() as folder:
        tree, git = Path(folder, "tree"), ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), old], check=True, capture_output=True)
        try:
            yield [Side(old, name_plugins(tree)), new]
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def name_plugins(tree: Path) -> Path:
    """Write the names of a version's plugins where Python looks for them before those of the installed version."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = tree / f"clocs-{project.get('version', '0')}.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: clocs\nVersion: {project.get('version', '0')}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in names.items())
        for group, names in {"console_scripts": project.get("scripts", {}), **project["entry-points"]}.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    return tree


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name()


if __name__ == "__main__":
    sys.exit(main())
