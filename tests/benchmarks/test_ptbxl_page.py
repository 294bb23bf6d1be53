"""The page of results on PTB-XL has every figure that was measured, and those that others published."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ptbxl_linear_parts
import ptbxl_page
import ptbxl_rows

TASKS = ("all", "superclass")


def score(
    task: str, fraction: float, base: float, protocol: str = "linear-record", chosen: bool = True
) -> dict[str, Any]:
    return {
        "protocol": protocol, "task": task, "label_fraction": fraction, "chosen": chosen, "seeds": [base, base],
        "auroc": [base, base - 0.01, base + 0.01], "random": [base - 0.1, base - 0.12, base - 0.08],
        "gain": [0.1, 0.08, 0.12],
    }  # fmt: skip


ROW = {
    "name": "cpc, s4d",
    "method": "cpc",
    "frames": "whole",
    "parameters": 3_400_000,
    "options": {"epochs": 30},
    "pretrain_seconds": [60.0, 120.0],
    "scores": [
        *(score(task, 1.0, 0.9) for task in TASKS),
        *(score("all", fraction, 0.7 + fraction / 10, chosen=False) for fraction in (1.0, 0.01, 0.1)),
        score("superclass", 1.0, 0.93, "finetune"),
    ],
}
TABLE: dict[str, Any] = {
    "part": "test",
    "date": "2026-01-01",
    "machine": "a GPU",
    "command": "python benchmarks/ptbxl.py",
    "failed": {},
    "rows": [ROW],
}


def page_of(table: dict[str, Any], choices: tuple[dict[str, Any], ...] = (), asked: Sequence[str] = ()) -> str:
    return ptbxl_page.page(ptbxl_page.Found((table,), choices), ptbxl_page.published(), asked)


def cells(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def test_the_page_has_every_score_with_its_interval_and_its_gain() -> None:
    rows = cells(page_of(TABLE))
    linear = "0.900 [0.890, 0.910]; +0.100 [+0.080, +0.120]"
    assert ["cpc, s4d", "whole", "3.4 M", "30", "2", "1.5", linear, "", "", linear, "", ""] in rows
    assert [
        "cpc, s4d",
        "fine-tuned",
        "superclass",
        "2",
        linear.replace("0.900 [0.890, 0.910]", "0.930 [0.920, 0.940]"),
    ] in rows
    fractions = [row[3] for row in rows if row[:3] == ["cpc, s4d", "all", "2"] and len(row) == 5]
    assert fractions == ["1 %", "10 %", "100 %"]


def test_every_published_row_is_on_the_page_with_its_source() -> None:
    others = ptbxl_page.published()
    page = page_of(TABLE)
    for one in others["rows"]:
        assert set(one["scores"]) <= set(ptbxl_rows.TASKS)
        assert any(
            row[0] == one["name"] and all(f"{value:.3f}" in row for value in one["scores"].values())
            for row in cells(page)
        )
        assert one["source"] in others["sources"]
    assert all(text in page for text in others["sources"].values())


def test_the_best_of_ours_and_of_the_published_rows_stand_together() -> None:
    """Without rows that had labels or reports in pre-training."""
    supervised = {**ROW, "name": "supervised, s4d", "method": "supervised", "scores": [score("all", 1.0, 0.99)]}
    rows = cells(page_of({**TABLE, "rows": [supervised, ROW]}))
    assert ["ours", "0.900, cpc, s4d", "", "", "0.900, cpc, s4d", "", ""] in rows
    (published,) = (row for row in rows if row[0] == "published" and len(row) == 7)
    assert published[1] == "0.928, ECG-JEPA"
    assert not any("ECGFounder" in cell or "MERL" in cell for cell in published)


def test_scores_of_fold_9_are_not_among_those_of_fold_10() -> None:
    tried = score("superclass", 1.0, 0.95, "finetune", chosen=False)
    tried["settings"] = {"epochs": 8, "learning_rate": 5e-4, "schedule": "cosine"}
    table = {**TABLE, "part": "validation", "rows": [{**ROW, "scores": [score("all", 1.0, 0.77), tried]}]}
    before, _, after = page_of(TABLE, choices=(table,)).partition("## Chosen on fold 9")
    assert "0.770" not in before
    assert "0.950" not in before
    assert cells(after)[2:] == [
        ["cpc, s4d", "linear", "0.770", ""],
        ["cpc, s4d", "fine-tuned, epochs 8, learning rate 0.0005", "", "0.950"],
    ]


def test_rows_that_are_not_measured_yet_are_named() -> None:
    assert "of the 2 rows of `benchmarks/ptbxl.toml`: mae, vit1d." in page_of(TABLE, asked=["cpc, s4d", "mae, vit1d"])
    assert "Not measured" not in page_of(TABLE, asked=["cpc, s4d"])


def test_a_row_is_above_or_below_its_control_where_the_interval_excludes_0() -> None:
    def score(task: str, gain: list[float], seeds: int) -> dict[str, Any]:
        auroc = [0.9, 0.89, 0.91]
        return {"protocol": "linear-record", "task": task, "label_fraction": 1.0, "chosen": True, "auroc": auroc,
                "gain": gain, "seeds": [0.9] * seeds}  # fmt: skip

    several = {**ROW, "scores": [score("all", [0.1, 0.05, 0.2], 2), score("form", [0.1, -0.1, 0.2], 2)]}
    single = {**ROW, "name": "mae, vit1d", "scores": [score("all", [-0.1, -0.2, -0.05], 1)]}
    rows = cells(page_of({**TABLE, "rows": [single, several]}))
    head = rows.index(["method, encoder", "interval", "above", "below"])
    assert rows[head + 2 : head + 4] == [
        ["cpc, s4d", "over seeds and patients", "all", ""],
        ["mae, vit1d", "one seed", "", "every task"],
    ]


def test_the_page_says_how_far_a_row_is_above_others() -> None:
    above = {"mae, vit1d": {"all": [0.05, 0.01, 0.09]}, "jepa, vit1d": {"form": [-0.01, -0.02, 0.0]}}
    page = page_of({**TABLE, "against": "cpc, s4d", "above": above})
    assert "How far `cpc, s4d` is above other rows" in page
    assert ["mae, vit1d", "+0.050 [+0.010, +0.090]", "", "", "", "", ""] in cells(page)
    assert ["jepa, vit1d", "", "", "", "", "-0.010 [-0.020, +0.000]", ""] in cells(page)
    assert "How far" not in page_of(TABLE)


def test_rows_stand_in_the_order_of_their_list() -> None:
    other = {**ROW, "name": "mae, vit1d"}
    for asked in (["cpc, s4d", "mae, vit1d"], ["mae, vit1d", "cpc, s4d"]):
        assert [row["name"] for row in ptbxl_page.ordered([other, ROW], asked)] == asked
    assert ptbxl_page.ordered([other, ROW], ["cpc, s4d"]) == [ROW, other]  # without a place in it: last


def test_rows_that_lack_a_seed_or_an_evaluation_are_named() -> None:
    unfinished = {**TABLE, "failed": {"cpc, s4d, seed 1": "not finished: time was up"}}
    assert "Incomplete rows, which a time limit (`--until`) ended early: cpc, s4d." in page_of(unfinished)
    assert "Rows that lack" not in page_of(TABLE)


def test_files_of_a_folder_are_told_apart_by_what_they_hold(tmp_path: Path) -> None:
    held = {
        "a": TABLE,
        "b": {**TABLE, "part": "validation"},
        "c": {**TABLE, "part": "earlier"},
        "supervised": {"seeds": 1},
    }
    for name, one in held.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(one), encoding="utf-8")
    found = ptbxl_page.read(tmp_path)
    assert [one["part"] for one in found.tables] == ["test"]
    assert [one["part"] for one in found.choices] == ["validation"]
    assert [one["part"] for one in found.earlier] == ["earlier"]
    assert found.supervised == {"seeds": 1}


def test_a_fold_that_chose_nothing_has_a_part_of_its_own(tmp_path: Path) -> None:
    """With the largest p of the seeds, and without the label fractions; fold 10 keeps its tables."""
    linear = {**score("all", 1.0, 0.88), "p": [0.001, 0.004]}
    found = {**score("superclass", 1.0, 0.6, "patient-identification"), "p": [None, None]}
    found["recall_at_1"] = found.pop("auroc")
    fewer = {**score("all", 0.1, 0.7, chosen=False), "p": [0.5, 0.5]}
    records = {"train": 13_000, "validation": 2_183, "test": 1_600}
    table = {**TABLE, "test_fold": 8, "rows": [{**ROW, "records": records, "scores": [linear, found, fewer]}]}
    for name, one in (("a", TABLE), ("b", table)):
        (tmp_path / f"{name}.json").write_text(json.dumps(one), encoding="utf-8")
    read = ptbxl_page.read(tmp_path)
    assert (len(read.tables), len(read.other_folds)) == (1, 1)
    before, _, after = ptbxl_page.page(read, ptbxl_page.published(), []).partition("## Fold 8, which guided no choice")
    assert "0.880" not in before
    assert "13,000 recordings" in after
    gain = "+0.100 [+0.080, +0.120]"
    assert cells(after)[2:4] == [
        ["cpc, s4d", "linear", "all", "2", f"0.880 [0.870, 0.890]; {gain}", "0.004"],
        ["cpc, s4d", "patient identification, recall at 1", "superclass", "2", f"0.600 [0.590, 0.610]; {gain}", ""],
    ]
    assert "guided no choice" not in page_of(TABLE)


def test_what_a_call_printed_stands_below_the_scores_that_were_made_again() -> None:
    """Without intervals, and with the largest difference of a seed that both have."""
    records = {"train": 13_000, "validation": 2_183, "test": 1_600}
    linear, fewer = {**score("all", 1.0, 0.88), "p": [0.001]}, {**score("all", 0.1, 0.7, chosen=False), "p": [0.5]}
    row = {**ROW, "records": records, "pretrained_on": ["a GPU"], "scores": [linear, fewer]}
    again = {**TABLE, "machine": "a CPU", "test_fold": 8, "rows": [row]}
    shown = [
        {"protocol": "linear-record", "task": "all", "label_fraction": 1.0, "seeds": [0.8812, 0.8799, 0.9]},
        {"protocol": "linear-record", "task": "all", "label_fraction": 0.01, "seeds": [0.5, 0.6]},
        {"protocol": "finetune", "task": "superclass", "label_fraction": 1.0, "seeds": [0.9, 0.92, 0.94]},
    ]
    lost = {**TABLE, "part": "printed", "test_fold": 8, "rows": [{"name": "cpc, s4d", "scores": shown}]}
    found = ptbxl_page.Found((TABLE,), other_folds=(again,), printed=(lost,))
    page = ptbxl_page.page(found, ptbxl_page.published(), [])
    assert "(13,000 recordings; a GPU)" in page
    _, _, after = page.partition("A first call had scored more rows and protocols")
    assert "The largest of the 2 differences between the two is 0.0012." in after
    assert cells(after)[2:5] == [
        ["cpc, s4d", "linear", "all", "3", "0.887 ± 0.011"],
        ["cpc, s4d", "linear", "all, 1 % of labels", "2", "0.550 ± 0.071"],
        ["cpc, s4d", "fine-tuned", "superclass", "3", "0.920 ± 0.020"],
    ]
    assert "A first call" not in page_of(TABLE)


def test_the_first_scores_of_rows_that_ran_again_stand_apart() -> None:
    first = {**TABLE, "part": "earlier", "rows": [{**ROW, "scores": [score("all", 1.0, 0.77)]}]}
    found = ptbxl_page.Found((TABLE,), earlier=(first,))
    before, _, after = ptbxl_page.page(found, ptbxl_page.published(), []).partition("## Earlier scores")
    assert "0.770" not in before
    assert cells(after)[2:] == [["cpc, s4d", "2", "0.770 [0.760, 0.780]", "", "", "", "", ""]]
    assert "## Earlier" not in page_of(TABLE)


def test_committed_commands_name_the_rows_of_their_files() -> None:
    folder = ptbxl_rows.HERE / "results" / "ptbxl"
    for path in sorted(folder.glob("*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        if table.get("part") == "test":
            words = shlex.split(table["command"])
            start = words.index("--only") + 1
            names = words[start : next(place for place in range(start, len(words)) if words[place].startswith("--"))]
            assert names == [row["name"] for row in table["rows"]]
            assert words[-1] == f"benchmarks/results/ptbxl/{path.name}"
            assert ("--against" in words) == ("above" in table)


def test_the_page_of_methods_has_the_figures_of_the_ablation() -> None:
    """What leaving out a part costs, over seeds and patients."""
    found = json.loads((ptbxl_rows.HERE / "results" / "ptbxl" / "ablation.json").read_text(encoding="utf-8"))
    page = " ".join((ptbxl_page.DOCS / "methods.md").read_text(encoding="utf-8").split())
    for part in ("rhythm", "patient", "projector"):
        for task, change in found["above"][f"rhythm-and-patient without the {part}, s4d"].items():
            mean, high, low = (-value for value in change)
            told = low * high > 0  # the interval excludes 0
            assert (f"`{task}` {mean:+.3f} [{low:+.3f}, {high:+.3f}]" in page) == told


def test_the_committed_page_is_the_one_that_the_committed_results_make() -> None:
    asked = [row.name for row in ptbxl_rows.read_rows(ptbxl_rows.HERE / "ptbxl.toml")]
    found = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl")
    committed = (ptbxl_page.DOCS / "results-ptbxl.md").read_text(encoding="utf-8")
    assert committed == ptbxl_page.page(found, ptbxl_page.published(), asked)


def test_committed_rows_have_the_settings_of_the_list_of_rows() -> None:
    """All of their seeds and evaluations too, or the page names them as unfinished."""
    listed = {row.name: row for row in ptbxl_rows.read_rows(ptbxl_rows.HERE / "ptbxl.toml")}
    place = ptbxl_rows.Place(Path(), Path(), "test", "cpu")
    found = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl")
    named = ptbxl_linear_parts.unfinished_part(found.tables).partition(": ")[2]
    for row in found.rows:
        asked = listed[row["name"]]
        assert (row["method"], row["encoder"], row["frames"]) == (asked.method, asked.encoder, asked.frames)
        assert row["options"] == asked.options
        wanted = [(how["protocol"], how["task"], asked.seeds) for how in ptbxl_rows.evaluations(asked, place)]
        scores = {(one["protocol"], one["task"], len(one["seeds"])) for one in row["scores"]}
        lacking = scores != set(wanted) or len(row["pretrain_seconds"]) != asked.seeds
        assert (row["name"] in named.strip().rstrip(".").split("; ")) == lacking


def test_the_floors_hold_on_fold_10_and_above_the_untrained_encoder() -> None:
    """The best row is at least so good, each above its control with an interval that excludes 0."""
    found = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl")
    for task, floor in (("all", 0.88), ("superclass", 0.87), ("rhythm", 0.92)):
        rows = [row for row in found.rows if row["method"] != "supervised"]
        scores = [one for row in rows for one in row["scores"] if one["task"] == task and one["chosen"]]
        best = max(scores, key=lambda one: one["auroc"][0])
        assert best["auroc"][0] >= floor
        assert best["gain"][1] > 0


def test_the_floors_hold_on_a_fold_that_guided_no_choice() -> None:
    """The README shows these scores, and what the first call printed is the same to its digits."""
    found = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl")
    (table,), (lost,) = found.other_folds, found.printed
    (row,) = table["rows"]
    scores = {one["task"]: one for one in row["scores"]}
    shown = []
    for task, floor in (("all", 0.88), ("superclass", 0.87), ("rhythm", 0.92)):
        assert scores[task]["auroc"][1] >= floor
        assert scores[task]["gain"][1] > 0
        shown.append("{:.3f} [{:.3f}, {:.3f}]".format(*scores[task]["auroc"]))
    readme = " ".join((ptbxl_page.DOCS / "../README.md").read_text("utf-8").split())
    assert f"the first row has {shown[0]}, {shown[1]} and {shown[2]}." in readme
    printed = next(one for one in lost["rows"] if one["name"] == row["name"])["scores"]
    for one in (one for one in printed if one["protocol"] == "linear-record" and one["label_fraction"] == 1):
        if again := scores.get(one["task"]):
            pairs = zip(one["seeds"], again["seeds"], strict=False)  # it printed a seed more
            assert all(abs(ours - theirs) <= 5.1e-5 for ours, theirs in pairs)


def test_fine_tuning_and_a_supervised_network_reach_their_floors() -> None:
    found = ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl")
    tuned = [one for row in found.rows for one in row["scores"] if one["protocol"] == "finetune"]
    assert max(one["auroc"][0] for one in tuned if one["task"] == "superclass") >= 0.915
    assert found.supervised is not None
    assert found.supervised["auroc"][0] >= 0.915


def test_the_readme_has_scores_of_the_page() -> None:
    """Of our best rows, of the untrained encoder, and published ones; and what fine-tuning does not show."""
    rows = {row["name"]: row for row in ptbxl_page.read(ptbxl_rows.HERE / "results" / "ptbxl").rows}
    readme, page = ((ptbxl_page.DOCS / name).read_text("utf-8") for name in ("../README.md", "results-ptbxl.md"))
    shown = {row[0].replace("`", ""): row[1:] for row in cells(readme)}
    tasks, ours = ("all", "superclass", "rhythm"), "rhythm-and-patient, 100 epochs, s4d"
    for name, row, which in (
        (ours, ours, "auroc"),
        ("cpc, s4d", "cpc, s4d", "auroc"),
        ("s4d, untrained: control of the first row", ours, "random"),
    ):
        scores = {one["task"]: one for one in rows[row]["scores"] if one["chosen"]}
        figures = ["{:.3f} [{:.3f}, {:.3f}]".format(*scores[task][which]) for task in tasks]
        data, parameters, *given = shown[name]
        assert (data == "none") == (which == "random")
        assert which == "random" or f"folds 1-8 have {data} of" in page
        assert (parameters, given) == (f"{rows[row]['parameters'] / 1e6:.1f} M", figures)
    published = {one["name"]: one for one in ptbxl_page.published()["rows"] if one["protocol"] == "linear"}
    for name in ("ECG-JEPA", "ST-MEM", "ECG-CPC"):
        data, parameters, *given = shown[f"{name}, published"]
        assert published[name]["data"].startswith(data)
        assert parameters == published[name]["parameters"]
        assert given == [f"{published[name]['scores'][task]:.3f}" for task in tasks]
    counted = {11: "Eleven", 12: "Twelve", 13: "Thirteen"}[len({row["method"] for row in rows.values()})]
    assert f"[{counted} methods](docs/results-ptbxl.md)" in readme
    best = max((row for row in rows.values() if row["method"] != "supervised"), key=lambda row: _main(row, "all"))
    assert best["name"] == ours
    (tuned,) = (one for one in rows[ours]["scores"] if one["protocol"] == "finetune")
    words = "cannot be told from the same encoder without pre-training: {:+.3f} [{:+.3f}, {:+.3f}]"
    expected = "{:.3f} [{:.3f}, {:.3f}], and ".format(*tuned["auroc"]) + words.format(*tuned["gain"])
    assert expected in " ".join(readme.split())


def _main(row: dict[str, Any], task: str) -> float:
    """The AUROC of a row on a task in the first table."""
    return next(one["auroc"][0] for one in row["scores"] if one["task"] == task and one["chosen"])
