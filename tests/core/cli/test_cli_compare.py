"""`clocs compare`: tables for people, JSON for programs, one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from fake_plugins import points
from fake_runs import QUICK, make_run

from clocs_core.cli import main
from clocs_core.cli.compare import compare_command
from clocs_core.report.compared import Compared, ComparedScore, Compares

pytestmark = pytest.mark.slow  # seconds for the runs that are compared; test_comparison.py has the rest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs side by side, and an evaluation in the first."""
    top = tmp_path_factory.mktemp("runs")
    always = ("--data-root", str(top / "data"), "--out")
    for name, more in {"a": [], "b": ["--seed", "1"], "warm": ["-o", "temperature=0.9"]}.items():
        make_run(top, *always, str(top / name), *more)
    assert main(["evaluate", str(top / "a"), "--out", str(top / "e"), *QUICK], points()) == 0
    return top


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def compare(*arguments: object) -> int:
    return main(["compare", *map(str, arguments)], points())


def test_settings_scores_and_differences_are_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(place.rglob("*"))
    assert compare("warm", "a", "b") == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == ["drawing patients …"]
    tables = [part.splitlines() for part in out.split("\n\n")]
    legend, settings, scores, rest = ([line.split() for line in part if line.strip()] for part in tables[:4])
    assert legend[1:] == [
        ["A", "together", "linear", "tiny", "parity", "test", "0", "warm"],
        ["B", "together", "linear", "tiny", "parity", "test", "0,", "1", "a"],
        ["b"],
    ]
    assert settings == [
        ["setting", "A", "B"],
        ["run.seed", "0", "0", "|", "1"],
        ["loss.temperature", "0.9", "0.1"],
    ]
    assert scores[0] == ["labels", "F", "metric", "level", "weights", "A", "B"]
    assert [row[2:4] for row in scores[1:]] == [
        [level, weights] for level in ("frame", "record") for weights in ("own", "random", "class")
    ]
    assert "±" in scores[1]
    sentences = " ".join(word for line in rest for word in line)
    assert "A (together) and B (together) differ by" in sentences or "(together) is" in sentences
    assert "A: Only 2 test patients are scored" in sentences
    assert sorted(place.rglob("*")) == before  # it only reads


def test_a_program_reads_the_same_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("a", "warm", "--json", "--level", "record", "--metric", "hits", "--label-fraction", "1") == 0
    held = json.loads(capsys.readouterr().out)
    assert list(held) == [field.name for field in attrs.fields(Compared)]
    assert list(held["compared"][0]) == [field.name for field in attrs.fields(Compares)]
    assert {tuple(score) for score in held["scores"]} == {tuple(field.name for field in attrs.fields(ComparedScore))}
    assert {(score["level"], score["metric"]) for score in held["scores"]} == {("record", "hits")}
    (one,) = held["differences"]
    assert (one["a"], one["b"], one["level"], one["label_fraction"]) == ("A (together)", "B (together)", "record", 1.0)
    assert held["settings"] == [{"name": "loss.temperature", "values": [[0.1], [0.9]]}]


def test_many_runs_are_one_page(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("warm", "a", "e", "--html", tmp_path / "page.html") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Page: {tmp_path / 'page.html'}"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Comparison of A (together), B (together), C (together)" in page
    assert "<h2>Differences on the same patients</h2>" in page
    assert compare("warm", "a", "--html", "page.pdf") == 2
    assert "the page is HTML; give a name that ends in .html" in capsys.readouterr().err


def test_what_is_not_paired_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The linear evaluation of the first run on its own data is the run's own: paired, and no different."""
    assert compare("a", "e") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "A (together) and B (together) differ by 0.000 [0.000, 0.000] (linear, hits, record level, F = 1.0," in out
    (place / "e" / "predictions.npz").rename(place / "kept")
    try:
        assert compare("a", "e") == 0
    finally:
        (place / "kept").rename(place / "e" / "predictions.npz")
    out = " ".join(capsys.readouterr().out.split())
    assert "A (together) and B (together) are not paired: e has no predictions." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "A comparison needs two folders or more, got one: a."),
        (["a", "a"], "a is given twice; give each run once."),
        (["a", "c"], "c is not there. Give folders that `clocs run` or `clocs evaluate` made."),
        (["a", "data"], "data is no run and no evaluation: it has no report.json."),
        (["a", "b", "--metric", "hist"], "None of the reports has the metric 'hist'. Did you mean 'hits'?"),
        (["a", "b", "--label-fraction", "x"], "--label-fraction: expected numbers, comma separated, got 'x'."),
        (["a", "b", "--label-fraction", "0.5"], "None of the reports has scores at F = 0.5; there is 1."),
    ],
)
def test_a_mistake_is_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert compare(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"Error: {message}"]


def test_every_flag_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    for parameter in compare_command.params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name
    assert main(["compare", "--help"], points()) == 0
    assert "RUN…" in capsys.readouterr().out
