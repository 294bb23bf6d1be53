"""docs/python.md works as it is shown, from top to bottom, and docs/python.ipynb is the same page as a notebook."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys

import numpy as np
import pytest
from doc_commands import FENCE, ROOT

PAGE, README = ROOT / "docs" / "python.md", ROOT / "README.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
BLOCKS = [(block["kind"], block["body"]) for block in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
CODE = [body for kind, body in BLOCKS if kind == "python"]

pytest.importorskip("nbformat", reason="the notebook needs `pip install 'clocs[test]'`")


def made_from_the_page():
    """The notebook that docs/make_notebook.py makes now."""
    spec = importlib.util.spec_from_file_location("make_notebook", ROOT / "docs" / "make_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.notebook_of(PAGE.read_text(encoding="utf-8"))


def committed():
    import nbformat

    return nbformat.read(NOTEBOOK, as_version=4)


def test_an_array_becomes_a_report_in_less_than_25_lines_of_code():
    lines = [line for line in "".join(CODE[:2]).splitlines() if line.strip()]
    assert "run.report" in lines
    assert lines.index("run.report") < 25


def test_the_notebook_is_the_page():
    """Whoever changes the page runs `python docs/make_notebook.py`."""
    assert committed() == made_from_the_page()


def test_the_notebook_has_every_block_of_code_in_order_and_no_output():
    cells = [cell for cell in committed().cells if cell.cell_type == "code"]
    assert [f"{cell.source}\n" for cell in cells] == CODE
    assert not any(cell.outputs or cell.execution_count for cell in cells)


def test_the_notebook_has_all_the_text_of_the_page():
    """Compared word by word: only blocks of output are left out. Shares no code with the script."""
    words = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE).split()
    assert " ".join(cell.source for cell in committed().cells if cell.cell_type == "markdown").split() == words


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_lines_of_the_readme_run(elsewhere):
    """On noise, with one epoch: that the names and arguments are right."""
    (block,) = [
        found["body"] for found in FENCE.finditer(README.read_text(encoding="utf-8")) if found["kind"] == "python"
    ]
    ids, rng = np.repeat(np.arange(12), 2), np.random.default_rng(0)
    names = {"ids": ids, "y": ids % 2, "x": rng.normal(size=(24, 1, 1000)), "signal": rng.normal(size=1000)}
    assert block.count("temperature=0.05") == 1
    small = "temperature=0.05, epochs=1, batch_size=16, resamples=10, frame_samples=500, progress=False"
    exec(block.replace("temperature=0.05", small), names)
    assert names["run"].record.settings["loss"]["temperature"] == 0.05


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own, with its own data and without the settings of this machine's notebooks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def run_as_a_cell(source, names):
    """Execute a block; print the value of its last expression, as a notebook does."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, PAGE.name, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
        if value is not None:
            sys.stdout.write(f"{value!r}\n")


@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom_and_says_what_it_shows(elsewhere, capsys):
    """What the page shows of an output is printed by the block above it, whatever its numbers."""
    names = {"__name__": "__main__"}
    for kind, body in BLOCKS:
        if kind == "python":
            capsys.readouterr()
            run_as_a_cell(body, names)
            said = anonymous(capsys.readouterr().out)
        for part in anonymous(body).split("…") if kind == "text" else ():
            assert part.strip() in said, f"the block above does not say: {part}"
    assert (elsewhere / "runs" / "first" / "report.html").exists()
    assert names["run"].report.comparisons["difference"][0] > 0  # of the first metric: something was learnt


def anonymous(text):
    """Text without numbers, verdicts, and the places where a line is broken: another machine has others."""
    verdict = r"(is above|is below|and .{1,20} differ) .*?(excludes|contains) 0(, so this test cannot tell them apart)?"
    return re.sub(r"-?\d+(\.\d+)?", "#", re.sub(verdict, "", " ".join(text.split())))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kernels start otherwise there")
def test_the_notebook_runs_from_top_to_bottom(elsewhere):
    """In a kernel of its own, with the display of a notebook: `execute` raises where a cell does."""
    from nbclient import NotebookClient

    done = committed()
    NotebookClient(done, timeout=240, resources={"metadata": {"path": str(elsewhere)}}).execute()
    shown = [output for cell in done.cells for output in cell.get("outputs", [])]
    assert not [one for one in shown if one.output_type == "error"]
    assert any("<table>" in one.get("data", {}).get("text/html", "") for one in shown)
