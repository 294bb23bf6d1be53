"""The table on PTB-XL: every row is a run that clocs accepts, and evaluations that fit it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ptbxl
import ptbxl_page
import ptbxl_rows
import pytest
from made_ptbxl import row, write_set

import clocs_core as clocs
from clocs_core.api.arguments import PRETRAIN, assignments_of
from clocs_core.cli import main
from clocs_core.contracts.result_offers import OWN_PROTOCOLS
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import installed_session

ROWS = ptbxl_rows.read_rows(Path(ptbxl_rows.HERE, "ptbxl.toml"))


def plan_of(row: ptbxl_rows.Row) -> Plan:
    settings = {**ptbxl.COMMON, **ptbxl.FRAMES[row.frames], **row.options, "method": row.method, "encoder": row.encoder}
    data = clocs.dataset("ptbxl", task=row.task, split="published")
    return resolve(installed_session().catalogue, {}, assignments_of(PRETRAIN, data, settings))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_a_run_of_all_leads_on_the_published_folds(row: ptbxl_rows.Row) -> None:
    plan = plan_of(row)
    assert plan.data.split == "published"
    assert plan.encoder.offer.name == row.encoder
    assert plan.evaluate_framing.frame_samples * plan.evaluate_framing.frames_per_record == 1000
    assert plan.needs.encoder_channels == "all"


def test_names_are_unique_and_so_are_their_folders(tmp_path: Path) -> None:
    place = ptbxl_rows.Place(tmp_path, tmp_path, "test", "cpu")
    assert len({place.folder(row, 0) for row in ROWS}) == len(ROWS)


def test_fold_9_is_scored_with_a_fixed_penalty_and_fold_10_with_one_chosen_on_fold_9(tmp_path: Path) -> None:
    for part, penalty in (("validation", 0.01), ("test", "auto")):
        place = ptbxl_rows.Place(tmp_path, tmp_path, part, "cpu")
        linear = list(ptbxl_rows.evaluations(ptbxl_rows.Row("a", "cpc", "s4d"), place))
        assert [one["task"] for one in linear] == list(ptbxl_rows.TASKS)
        assert {one["C"] for one in linear} == {penalty}


def test_protocols_of_other_evaluations_exist() -> None:
    offered = {item.offer.name for item in installed_session().catalogue.protocols}
    assert {one["protocol"] for row in ROWS for one in row.evaluations} <= offered | set(OWN_PROTOCOLS)


# ------------------------------------------------------------------------------------------------------- in miniature

TINY = """
[[rows]]
name = "cpc, s4d"
method = "cpc"
encoder = "s4d"
options = { epochs = 1, layers = 1, state = 2, embedding_dim = 16, batch_size = 16, autocast = "none" }
evaluations = [{ protocol = "knn", task = "superclass" }]

[[rows]]
name = "cpc of 4 positions, s4d"
method = "cpc"
encoder = "s4d"
seeds = 2
options = { epochs = 1, layers = 1, state = 2, embedding_dim = 16, batch_size = 16, autocast = "none", ahead = 4 }
"""


def test_a_run_is_finished_with_the_last_of_its_evaluations(tmp_path: Path) -> None:
    place, row = ptbxl_rows.Place(tmp_path, tmp_path, "test", "cpu", ("superclass",)), ptbxl_rows.Row("a", "cpc", "s4d")
    folder = place.folder(row, 0)
    for report in (folder / "report.json", folder / "table" / "0-linear-record-superclass-test" / "report.json"):
        assert not ptbxl_rows.is_finished(row, 0, place)
        report.parent.mkdir(parents=True, exist_ok=True)
        report.touch()
    assert ptbxl_rows.is_finished(row, 0, place)
    assert not ptbxl_rows.is_finished(row, 1, place)


@pytest.fixture
def folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PTB-XL with three patients in each fold and two recordings of each, one of each of two superclasses."""
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    rows = [
        row(
            n,
            codes=f"{{'{'NORM' if n % 20 < 10 else 'IMI'}': 100.0, 'SR': 0.0}}",
            fold=str(n % 10 + 1),
            patient=str(n % 30),
        )
        for n in range(60)
    ]
    return write_set(tmp_path / "data" / "ptbxl", rows)


def score_by_command(folds: Path, folder: Path, part: str, *more: str) -> dict[str, object]:
    """Make the table of one part by the command of the page; return what it writes."""
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    script, made = Path(ptbxl.__file__), folder / f"{part}.json"
    words = ["--root", folds, "--out", folder / "runs", "--rows", folder / "tiny.toml", "--tasks", "superclass"]
    words += ["--part", part, "--device", "cpu", "--json", made, *more]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(made.read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_a_row_is_chosen_on_fold_9_and_scored_on_fold_10_without_another_training(folds: Path, tmp_path: Path) -> None:
    only = ("--only", "cpc, s4d")
    tried = score_by_command(folds, tmp_path, "validation", *only)
    encoders = {one: one.stat().st_mtime_ns for one in tmp_path.glob("runs/*/seed*/encoder.safetensors")}
    assert len(encoders) == 1
    assert not [*tmp_path.glob("runs/*/seed*/table/*-test")]
    found = score_by_command(folds, tmp_path, "test", *only)
    assert {one: one.stat().st_mtime_ns for one in encoders} == encoders
    for table in (tried, found):
        (made,) = table["rows"]  # type: ignore[misc]
        assert [(one["protocol"], one["task"]) for one in made["scores"]] == [
            ("linear-record", "superclass"),
            ("knn", "superclass"),
        ]
        assert made["scores"][0]["settings"] == {"C": 0.01 if table is tried else "auto"}
        for number, one in enumerate(made["scores"]):
            reports = sorted(tmp_path.glob(f"runs/*/seed*/table/{number}-*-{table['part']}/report.json"))
            assert one["seeds"] == [pytest.approx(record_auroc(report), abs=1e-5) for report in reports]
    again = score_by_command(folds, tmp_path, "test", "--until", "0", *only)  # what is finished is not missing
    assert (again["rows"], again["failed"]) == (found["rows"], {})
    without = score_by_command(folds, tmp_path, "test", "--without", "cpc, s4d", "cpc of 4 positions, s4d")
    assert without["rows"] == []
    page = ptbxl_page.page(ptbxl_page.Found((found,), (tried,)), ptbxl_page.published(), [])
    assert page.count("| cpc, s4d |") == 5  # linear and neighbours, of either fold; and above or below its control


@pytest.mark.slow
def test_another_fold_is_scored_with_encoders_that_have_not_seen_it(folds: Path, tmp_path: Path) -> None:
    """Its page says how many recordings had which part; p and recall stand beside the scores."""
    also = ("--only", "cpc, s4d", "--also", "patient-identification")
    found = score_by_command(folds, tmp_path, "test", "--test-fold", "8", *also)
    assert found["test_fold"] == 8
    (made,) = found["rows"]  # type: ignore[misc]
    assert made["records"] == {"train": 48, "validation": 6, "test": 6}
    (split,) = tmp_path.glob("runs/test-fold-8/cpc-s4d/seed0/split.json")
    tested = json.loads(split.read_text(encoding="utf-8"))["patients"]["test"]
    assert tested == ["17", "27", "7"]  # of n % 10 + 1 == 8
    linear, neighbours, identified = made["scores"]
    assert [one["protocol"] for one in made["scores"]] == ["linear-record", "knn", "patient-identification"]
    assert 0 <= identified["recall_at_1"][0] <= 1
    assert all(0 < p <= 1 for one in (linear, neighbours, identified) for p in one["p"])
    page = ptbxl_page.page(ptbxl_page.Found((), other_folds=(found,)), ptbxl_page.published(), [])
    assert "## Fold 8, which guided no choice" in page
    (device,) = made["pretrained_on"]
    assert f"other folds (48 recordings; {device}), C was chosen on fold 9 (6), and fold 8 (6) was scored" in page
    assert page.count("| cpc, s4d |") == 3


@pytest.mark.slow
def test_a_row_is_above_another_by_the_difference_of_their_means(folds: Path, tmp_path: Path) -> None:
    found = score_by_command(folds, tmp_path, "test", "--against", "cpc of 4 positions, s4d")
    means = {}
    for made in found["rows"]:  # type: ignore[attr-defined]
        (linear,) = (one for one in made["scores"] if one["protocol"] == "linear-record")
        means[made["name"]] = sum(linear["seeds"]) / len(linear["seeds"])
    assert found["against"] == "cpc of 4 positions, s4d"
    ((name, above),) = found["above"].items()  # type: ignore[attr-defined]
    (value, low, high) = above["superclass"]
    assert name == "cpc, s4d"
    assert value == pytest.approx(means["cpc of 4 positions, s4d"] - means["cpc, s4d"], abs=2e-5)
    assert low <= value <= high


def test_rows_have_as_many_seeds_as_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever their file says: five, or one."""
    made: list[tuple[str, int]] = []
    monkeypatch.setattr(ptbxl, "_make_all", lambda rows, *_: made.extend((row.name, row.seeds) for row in rows) or {})
    words = ["ptbxl.py", "--root", "x", "--out", str(tmp_path), "--only", "cpc, s4d", "moco, s4d"]
    for more, expected in (([], [5, 1]), (["--seeds", "3"], [3, 3])):
        made.clear()
        monkeypatch.setattr(sys, "argv", [*words, *more])
        assert ptbxl.main() == 0
        assert made == list(zip(("cpc, s4d", "moco, s4d"), expected, strict=True))


def test_a_row_to_compare_with_must_be_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ptbxl.py", "--root", "x", "--out", "y", "--only", "cpc, s4d", "--against", "z"])
    with pytest.raises(SystemExit):
        ptbxl.main()
    assert "--against 'z': there is no such row. There are: cpc, s4d." in capsys.readouterr().err


def record_auroc(report: Path) -> float:
    """Read the AUROC of recordings of the trained encoder from a report."""
    scores = json.loads(report.read_text(encoding="utf-8"))["scores"]
    of_records = [one for one in scores if (one["metric"], one["level"]) == ("auroc", "record")]
    (value,) = (one["value"] for one in of_records if one["init"] != "random" and one["protocol"] != "prior")
    return float(value)


@pytest.mark.slow
@pytest.mark.usefixtures("folds", "no_pictures")
def test_the_supervised_network_of_the_page_is_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervised = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl").supervised
    assert supervised is not None
    monkeypatch.chdir(tmp_path)
    few = ["--epochs", "1", "--batch-size", "16", "-o", "resamples=10", "--device", "cpu", "--workers", "1"]
    assert main([*supervised["command"].split()[1:], *few, "--out", "made"]) == 0
    report = json.loads(Path("made/report.json").read_text(encoding="utf-8"))
    assert report["split"]["records"] == {"train": 48, "validation": 6, "test": 6}
    assert {one["level"] for one in report["scores"]} == {"frame", "record"}
