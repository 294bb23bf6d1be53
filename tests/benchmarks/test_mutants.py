"""The table of mutants stays true: every text is in its file once, and every test that it names exists.

That the tests do fail is seen by `make mutants`, which runs them; here nothing of the table is run.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from mutants import Mutant, find_stale, judge, read_table

ROOT = Path(__file__).parents[2]
MUTANTS = read_table()


@cache
def functions_of(file: str) -> frozenset[str]:
    """The test functions of a file, and those of its classes as Class::function."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(found)


def test_every_text_is_in_its_file_exactly_once():
    """A fault that can no longer be put in is not tried, and nobody would notice."""
    assert find_stale(MUTANTS, ROOT) == {}


@pytest.mark.parametrize("file", sorted({one.file for one in MUTANTS if one.file.endswith(".py")}))
def test_every_mutant_is_still_python(file):
    """One that is not would be caught by any test."""
    text = (ROOT / file).read_text(encoding="utf-8")
    for one in MUTANTS:
        if one.file == file and text.count(one.old) == 1:
            assert ast.dump(ast.parse(one.apply(text))) != ast.dump(ast.parse(text)), one.name


def test_every_test_that_is_named_exists():
    missing = [
        f"{one.name}: {test}"
        for one in MUTANTS
        for test in one.tests
        for file, _, function in (test.partition("::"),)
        if not (ROOT / file).is_file() or function not in functions_of(file)
    ]
    assert not missing, "\n".join(missing)


def test_names_are_told_apart_and_every_mutant_has_a_test():
    names = [one.name for one in MUTANTS]
    assert len(set(names)) == len(names) >= 60
    assert all(one.tests for one in MUTANTS)


ONE = Mutant("adds wrongly", "adds.py", "a + b", "a - b", ["test_adds.py::test_a", "test_adds.py::test_b"])


@pytest.mark.parametrize(
    ("status", "failed", "result"),
    [
        (1, ["test_adds.py::test_a", "test_adds.py::test_b[2]"], "killed"),
        (1, ["test_adds.py::test_a", "test_adds.py::test_bc"], "survived"),
        (0, [], "survived"),
        (2, [], "broken"),  # a test file that cannot be imported has tested nothing
        (5, [], "broken"),  # no test was found
        (-9, [], "killed"),  # it ran into the limit of time
    ],
)
def test_a_mutant_is_killed_where_each_of_its_tests_fails(status, failed, result):
    assert judge(ONE, status, failed, 0.0).result == result


def test_a_text_that_occurs_twice_or_never_is_stale(tmp_path):
    (tmp_path / "adds.py").write_text("a + b\na + b\n")
    assert find_stale([ONE], tmp_path) == {"adds wrongly": "the old text occurs 2 times in adds.py, not once"}
    (tmp_path / "adds.py").write_text("a - b\n")
    assert find_stale([ONE], tmp_path) == {"adds wrongly": "the old text occurs 0 times in adds.py, not once"}
    assert list(find_stale([ONE], tmp_path / "elsewhere")) == ["adds wrongly"]


@pytest.mark.slow
def test_the_command_tells_killed_survived_and_stale_apart(tmp_path):
    """On a tree of three files; and it tries nothing where the tests fail without a fault."""
    package, tests = tmp_path / "clocs_core", tmp_path / "tests"
    package.mkdir()
    tests.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (package / "__init__.py").touch()
    (package / "adds.py").write_text("def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n")
    text = "from clocs_core.adds import add, double\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    (tests / "test_adds.py").write_text(f"{text}def test_double():\n    assert double(2) == 4\n")
    rows = [("a + b", "a - b", "test_add"), ("2 * a", "a ** 2", "test_double"), ("a * b", "a", "test_add")]
    (tmp_path / "table.toml").write_text(
        "".join(
            f'[[mutant]]\nname = "{number}"\nfile = "clocs_core/adds.py"\nold = "{old}"\nnew = "{new}"\n'
            f'tests = ["tests/test_adds.py::{test}"]\n'
            for number, (old, new, test) in enumerate(rows)
        )
    )
    done = run_command(tmp_path, "--json", str(tmp_path / "out.json"), "--jobs", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith("3 mutants: 1 killed, 1 survived, 1 stale, 0 broken\n")
    found = {one["name"]: one["result"] for one in json.loads((tmp_path / "out.json").read_text())}
    assert found == {"0": "killed", "1": "survived", "2": "stale"}
    (tests / "test_adds.py").write_text(text.replace("== 3", "== 4"))
    done = run_command(tmp_path, "--only", "0")
    assert done.returncode == 1
    assert "The tests fail without any fault" in done.stdout


def run_command(root, *more):
    """The command as a process of its own: it must not have imported what it mutates."""
    command = [sys.executable, str(ROOT / "benchmarks" / "mutants.py"), "--root", str(root), *more]
    return subprocess.run([*command, "--table", str(root / "table.toml")], capture_output=True, text=True, check=False)
