"""Put faults into the source, one at a time, and see whether the tests notice them.

The table is benchmarks/mutants.toml. A row names a file, a text in it, a text to put in its place, and the tests that
must fail then. Each row is tried in a copy of the tree, in a process forked from this one, which has imported torch and
pytest already: most rows take a second. A row whose text is not in its file exactly once is stale, which is an error.
Needs Linux or macOS.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from py_compile import PycInvalidationMode

import attrs

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks" / "mutants.toml"
_COPIED = ("clocs_core", "plugins", "tests", "benchmarks", "pyproject.toml")
_LEFT_OUT = ("__pycache__", ".*", "results")
_WARM = (  # all that most tests import and no mutant is in; torch imports _dynamo with the first optimiser
    *("pytest", "torch", "torch._dynamo", "pandas", "sklearn.linear_model", "safetensors.torch", "cattrs", "jinja2"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "PIL.Image", "filelock", "rich.progress"),
)
_LONGEST = 120.0  # seconds; a test that a fault makes wait forever counts as failed
_NOTHING_RAN = 99  # exit status of a child that could not run pytest to its end


@attrs.frozen
class Mutant:
    """A fault: `new` in place of `old`, which must occur once in `file`; each of `tests` must fail then."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = attrs.field(converter=tuple)

    def apply(self, text: str) -> str:
        """Return the text of the file with the fault. Raises ValueError where `old` does not occur exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"the old text occurs {count} times in {self.file}, not once")
        return text.replace(self.old, self.new)


@attrs.frozen
class Outcome:
    """The result for one mutant: `killed`, `survived`, `stale` or `broken`; why, and the tests that failed."""

    name: str
    result: str
    why: str = ""
    failed: tuple[str, ...] = ()
    seconds: float = 0.0


def read_table(path: Path = TABLE) -> list[Mutant]:
    """Read the table of mutants, in its order."""
    return [Mutant(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]]


def judge(mutant: Mutant, status: int, failed: Sequence[str], seconds: float) -> Outcome:
    """Judge a mutant by the exit status of pytest, 0 or 1 where all tests ran, and by the tests that failed."""
    if status == -signal.SIGKILL:
        return Outcome(mutant.name, "killed", f"stopped after {_LONGEST:g} s", tuple(failed), seconds)
    if status not in (0, 1):
        return Outcome(mutant.name, "broken", f"pytest ended with status {status}", tuple(failed), seconds)
    silent = [test for test in mutant.tests if not any(_is_of(one, test) for one in failed)]
    if silent:
        return Outcome(mutant.name, "survived", f"passed: {', '.join(silent)}", tuple(failed), seconds)
    return Outcome(mutant.name, "killed", "", tuple(failed), seconds)


def _is_of(node: str, test: str) -> bool:
    """Return whether a failed item belongs to a named test: the test itself or one of its parameter sets."""
    return node == test or node.startswith((f"{test}[", f"{test}::"))


# -------------------------------------------------------------------------------------------------- trees and processes


def copy_tree(root: Path, target: Path) -> Path:
    """Copy what the tests need, and compile it once. Python checks compiled files by a hash of their source."""
    target.mkdir(parents=True)
    for name in _COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        elif source.exists():
            shutil.copy2(source, target / name)
    compileall.compile_dir(target, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return target


@attrs.define
class Trial:
    """A child process that runs tests in a tree."""

    pid: int
    report: Path
    began: float

    def poll(self) -> int | None:
        """Return the exit status, or None while the tests run. Kills the child after `_LONGEST` seconds."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - self.began > _LONGEST:
            os.killpg(self.pid, signal.SIGKILL)
        return None

    def failed(self) -> list[str]:
        """Return the tests that failed, as far as they were reported."""
        return self.report.read_text(encoding="utf-8").splitlines() if self.report.exists() else []


def begin(tree: Path, tests: Sequence[str]) -> Trial:
    """Fork a child that runs the tests of a tree; its output goes to a file beside the tree."""
    report = tree.with_suffix(".failed")
    report.unlink(missing_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = _NOTHING_RAN
        try:
            status = _run_tests(tree, tests, report)
        except BaseException:  # a child must never return to the caller's code
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return Trial(pid, report, time.monotonic())


def _run_tests(tree: Path, tests: Sequence[str], report: Path) -> int:
    """Run pytest in a child process, on the modules of the tree; write the ids of failed tests to `report`."""
    import pytest

    os.setsid()
    with open(tree.with_suffix(".log"), "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir(tree)
    own = [str(tree), str(tree / "plugins")]
    sys.path[:1] = own
    os.environ["PYTHONPATH"] = os.pathsep.join(own)

    class Failures:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                seen.write(f"{report.nodeid}\n")
                seen.flush()

    options = ["-q", "--rootdir", str(tree), "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    options += ["-x"] * (len(tests) == 1)  # one failure is enough
    with open(report, "w", encoding="utf-8") as seen:
        return int(pytest.main([*options, *tests], plugins=[Failures()]))


def try_all(mutants: Iterable[Mutant], trees: Sequence[Path], tell: Callable[[Outcome, Path], None]) -> list[Outcome]:
    """Try every mutant, one per tree at a time."""
    waiting, free = list(mutants), list(trees)
    running: list[tuple[Mutant, Path, str, Trial]] = []
    outcomes = []
    while waiting or running:
        while waiting and free:
            mutant, tree = waiting.pop(0), free.pop()
            text = (tree / mutant.file).read_text(encoding="utf-8")
            (tree / mutant.file).write_text(mutant.apply(text), encoding="utf-8")
            running.append((mutant, tree, text, begin(tree, mutant.tests)))
        for one in list(running):
            mutant, tree, text, trial = one
            if (status := trial.poll()) is not None:
                outcomes.append(judge(mutant, status, trial.failed(), time.monotonic() - trial.began))
                tell(outcomes[-1], tree)
                (tree / mutant.file).write_text(text, encoding="utf-8")
                running.remove(one)
                free.append(tree)
        time.sleep(0.01)
    return outcomes


def find_stale(mutants: Iterable[Mutant], root: Path) -> dict[str, str]:
    """Return the names of mutants whose text is not in the tree exactly once, each with the reason."""
    stale = {}
    for mutant in mutants:
        try:
            mutant.apply((root / mutant.file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            stale[mutant.name] = str(problem)
    return stale


def failing_already(tree: Path, mutants: Sequence[Mutant]) -> str:
    """Run all named tests without any fault. Return what is wrong with them, or an empty text."""
    trial = begin(tree, list(dict.fromkeys(test for mutant in mutants for test in mutant.tests)))
    _, status = os.waitpid(trial.pid, 0)
    if status == 0:
        return ""
    log = tree.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    return f"The tests fail without any fault:\n{log[-4000:]}"


# -------------------------------------------------------------------------------------------------------------- command


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants that the arguments name. Returns 1 where one survives, is stale or breaks the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="only mutants whose name or file has this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="mutants at a time")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the outcomes to this file")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to copy (default: this one)")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table (default: benchmarks/mutants.toml)")
    given = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: threads do not survive a fork
    chosen = [one for one in read_table(given.table) if given.only in one.name or given.only in one.file]
    stale = find_stale(chosen, given.root)
    outcomes = [Outcome(name, "stale", why) for name, why in stale.items()]
    for outcome in outcomes:
        _tell(outcome, None)
    for name in _WARM:
        import_module(name)
    current = [one for one in chosen if one.name not in stale]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [copy_tree(given.root, Path(folder) / "tree1")]
        for number in range(2, given.jobs + 1):
            trees.append(shutil.copytree(trees[0], Path(folder) / f"tree{number}"))
        if current and (problem := failing_already(trees[0], current)):
            print(problem)
            return 1
        outcomes += try_all(current, trees, _tell)
    counts = {word: sum(one.result == word for one in outcomes) for word in ("killed", "survived", "stale", "broken")}
    print(f"{len(outcomes)} mutants: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    if given.json:
        given.json.write_text(json.dumps([attrs.asdict(one) for one in outcomes], indent=1) + "\n", encoding="utf-8")
    return 0 if outcomes and counts["killed"] == len(outcomes) else 1


def _tell(outcome: Outcome, tree: Path | None) -> None:
    why = f" ({outcome.why})" if outcome.why else ""
    print(f"{outcome.result:8} {outcome.seconds:6.1f} s  {outcome.name}{why}", flush=True)
    if outcome.result == "broken" and tree is not None:
        print(tree.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-3000:])


if __name__ == "__main__":
    raise SystemExit(main())
