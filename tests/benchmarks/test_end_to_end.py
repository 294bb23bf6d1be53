"""The benchmark of whole commands: which version it runs, and what it makes of the times."""

import json
import resource
import sys
from importlib.metadata import Distribution

import end_to_end
import pytest
from end_to_end import Side, name_plugins, run, sides_of, summarise


def test_medians_and_quartiles_of_every_stage():
    rounds = [{"wall": float(wall), "report": 1.0} for wall in (5, 1, 2, 4, 3)]
    assert summarise(rounds) == {
        "wall": {"median": 3.0, "low": 2.0, "high": 4.0},
        "report": {"median": 1.0, "low": 1.0, "high": 1.0},
    }
    assert summarise(rounds[:1])["wall"] == {"median": 5.0, "low": 5.0, "high": 5.0}


def test_the_demo_of_a_version_is_that_of_its_makefile():
    assert end_to_end.demo_command(end_to_end.HERE.parent)[:5] == ["run", "--plugin", "cmsc", "--dataset", "demo"]


def old_sources(folder):
    """The sources of a version that says its name."""
    (folder / "clocs_core").mkdir(parents=True)
    (folder / "clocs_core" / "__init__.py").write_text("")
    (folder / "clocs_core" / "__main__.py").write_text("import sys\nprint('old')\nsys.exit(len(sys.argv) - 1)\n")
    names = '[project.scripts]\nclocs = "old:main"\n[project.entry-points.clocs]\ncnn = "old.cnn"\n'
    (folder / "pyproject.toml").write_text(f'[project]\nname = "clocs"\nversion = "0.1"\n{names}')
    return folder


def test_plugins_of_an_old_version_are_its_own(tmp_path):
    """The names of the installed version would bring plugins that the old one does not have."""
    tree = name_plugins(old_sources(tmp_path))
    (about,) = Distribution.discover(name="clocs", path=[str(tree)])
    assert {(one.group, one.name, one.value) for one in about.entry_points} == {
        ("console_scripts", "clocs", "old:main"),
        ("clocs", "cnn", "old.cnn"),
    }


def test_a_side_runs_its_own_sources_wherever_the_benchmark_is_started(tmp_path):
    side = Side("old", old_sources(tmp_path / "old"))
    seconds, megabytes = run([sys.executable, "-m", "clocs_core"], side)
    assert seconds > 0
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # Linux counts it until the command begins
    assert 1 < megabytes < max(1000, 1.01 * own)
    with pytest.raises(SystemExit, match=r"ended with 1:\nold"):
        run([sys.executable, "-m", "clocs_core", "fail"], side)


def test_an_old_version_comes_first_and_may_be_a_folder(tmp_path):
    folder = old_sources(tmp_path / "old")
    with sides_of(str(folder)) as sides:
        assert [side.tree for side in sides] == [folder, end_to_end.HERE.parent]
    with sides_of(None) as sides:
        assert [side.name for side in sides] == ["new"]


@pytest.mark.slow
def test_a_row_is_measured_and_written(tmp_path, monkeypatch):
    out = tmp_path / "rows.json"
    monkeypatch.setattr(sys, "argv", ["end_to_end.py", "--smoke", "--only", "run", "--json", str(out)])
    assert end_to_end.main() == 0
    found = json.loads(out.read_text())
    assert {"wall", "prepare", "pretrain", "evaluate", "report", "resident_megabytes"} <= set(
        found["rows"]["run"]["new"]
    )
