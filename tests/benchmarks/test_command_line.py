"""The command in a file of results is one that can be typed elsewhere."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from command_line import command_line

ROOT = Path(__file__).parents[2]


def test_it_is_the_script_and_what_it_was_given(monkeypatch):
    """A command that stands in the code as a text says nothing about how a result was made."""
    monkeypatch.setattr(sys, "argv", ["anything", "--budget", "100", "--also", "a=b c"])
    found = command_line(str(ROOT / "benchmarks" / "step.py"))
    assert found == "python benchmarks/step.py --budget 100 --also 'a=b c'"
    assert shlex.split(found)[-1] == "a=b c"


def test_places_of_this_machine_are_left_out(tmp_path):
    """Inside the repository a path is relative to it; elsewhere its name is all that means something."""
    script, inside = str(ROOT / "benchmarks" / "step.py"), ROOT / "benchmarks" / "results" / "step.json"
    given = ["--json", str(inside), f"--kernels={inside}", str(tmp_path / "other.json"), "kept/as/it.is"]
    expected = "--json benchmarks/results/step.json --kernels=benchmarks/results/step.json other.json kept/as/it.is"
    assert command_line(script, given) == f"python benchmarks/step.py {expected}"
