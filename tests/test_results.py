"""Tables in the documentation say what the committed results say."""

from __future__ import annotations

import csv
import json
import math
import re
import runpy
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import pytest
import scale_model
from grid_intervals import Place, read_committed, rewrite

from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.carry_out import make_pages
from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.grids.rows import INTERVAL
from clocs_core.grids.summary import tabulate
from clocs_core.plugins.session import installed_session
from clocs_plugins.paper_tables.printed import load_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def results(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def tables(page: str) -> list[list[str]]:
    """Every row of every table, as cells."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def spread(row: dict) -> str:
    return f"{row['mean']:.3f} ± {row['sd_over_seeds']:.3f}"


def grid_command(command: str) -> str:
    """The command that repeats a table of the script that first made it, whose own command the results keep."""
    flags, _, rows = command.partition(" --rows ")
    words = flags.split()[2:]
    given = dict(zip(words[::2], words[1::2], strict=True))
    methods = by_the_papers_rule(",".join(row.replace(",", ":") for row in rows.split()))
    dataset, part = given["--dataset"], given["--part"]
    separation = f" --pretrain-option part={part}" if part == "test" else ""  # of the same patients as the scores
    leads, fraction, seeds = given["--leads"].replace(",", "+"), given["--fraction"], given["--seeds"]
    return (
        f"python benchmarks/run_all.py --methods {methods} --datasets {dataset} --root {dataset}={given['--root']} "
        f"--leads {leads} --label-fractions {fraction} --seeds {seeds} --part {part}{separation} "
        f"--device {given['--device']} --jobs {given['--jobs']} --threads 1"
    )


def by_the_papers_rule(methods: str) -> str:
    """The methods of a command that was typed when `keep=loss` was the default of `byol`, as they are named now."""
    return re.sub(r"\bbyol\b", "byol:keep=loss", methods)


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("ptbxl_linear", "methods.md"),
        ("ptbxl_linear_choices", "methods.md"),
        ("ptbxl_linear_others", "methods.md"),
        ("ptbxl_linear_released", "released.md"),
    ],
)
def test_a_page_has_the_command_that_repeats_its_table(name: str, page: str):
    """With every method, option, lead, share of labels, seed and part of the committed results."""
    assert f"$ {grid_command(results(name)['command'])}\n" in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_the_table_of_methods_is_the_one_that_was_measured():
    found = results("ptbxl_linear")
    rows = {cells[0]: cells for cells in tables("methods.md") if len(cells) == 6 and re.match(r"[0-9.]+ ±", cells[1])}
    assert set(rows) == set(found["rows"])
    for name, row in found["rows"].items():
        low, high = interval_from_spreads(row["by_seed"], over_patients(row["interval"]))
        gain = say(paired(found, name, "random")) if "over_random" in row else ""
        epochs = ", ".join(map(str, row.get("epochs", [])))
        assert rows[name][1:] == [spread(row), f"{low:.3f} – {high:.3f}", gain, epochs, f"{row['separation']:.3f}"]


def over_patients(ends: Sequence[float]) -> float:
    """The standard deviation of a normal variable with this 95 % interval."""
    return (ends[1] - ends[0]) / (2 * 1.959964)


def paired(found: dict, a: str, b: str) -> tuple[float, float, float]:
    """A paired difference with its interval over seeds and patients, from committed seeds and patients' intervals."""
    values = [x - y for x, y in zip(*(found["rows"][name]["by_seed"] for name in (a, b)), strict=True)]
    value, *ends = found["rows"][a]["over_random"] if b == "random" else found["differences"][f"{a} - {b}"]
    return (value, *interval_from_spreads(values, over_patients(ends)))


def say(found: tuple[float, float, float]) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*found)


def words(page: str) -> str:
    """A page as one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("name", "a", "b", "verdict"),
    [
        ("ptbxl_linear", "cmsc", "simclr", "above"),
        ("ptbxl_linear", "cmsmlc", "simclr", "above"),
        ("ptbxl_linear", "simclr", "byol", "not told apart"),
        ("ptbxl_linear", "cmsc", "mt-ssl", "not told apart"),
        ("ptbxl_linear", "cmsc", "vicreg", "not told apart"),
        ("ptbxl_linear_choices", "mt-ssl", "mt-ssl:layer4_relu=false", "above"),
        ("ptbxl_linear_choices", "simclr", "simclr:layer4_relu=false", "above"),
        ("ptbxl_linear_choices", "cmsc", "cmsc:layer4_relu=false", "not told apart"),
        ("ptbxl_linear_choices", "cmsmlc", "cmsmlc:layer4_relu=false", "not told apart"),
        ("ptbxl_linear_choices", "cmlc", "cmlc:layer4_relu=false", "not told apart"),
        ("ptbxl_linear_choices", "byol", "byol:layer4_relu=false", "not told apart"),
        ("ptbxl_linear_choices", "byol", "byol:loss=cosine", "not told apart"),
        ("ptbxl_linear_released", "cmlc:variant=released", "cmsmlc:variant=released", "not told apart"),
    ],
)
def test_a_verdict_of_three_seeds_follows_from_its_interval(name: str, a: str, b: str, verdict: str):
    """And the page has the numbers that carry it."""
    value, low, high = paired(results(name), a, b)
    assert ("above" if low > 0 else "below" if high < 0 else "not told apart") == verdict
    assert say((value, low, high)) in words("docs/released.md" if name.endswith("released") else "docs/methods.md")


def test_the_rules_of_byol_have_the_scores_that_were_exported():
    """Their means, gains and best epochs, from the files of the grid alone; and none is told apart from another."""
    grid = settle_grid(read_grid_file(ROOT / "benchmarks" / "byol_keep.toml"), installed_session().catalogue)
    kept = read_kept([RESULTS / "byol_keep"], grid.measure)
    (preset,) = grid.presets
    found = tabulate(preset.conditions, KeptLines(kept, grid.repeats, lambda one: None))
    rows = {cells[0].split("`")[0]: cells for cells in tables("methods.md") if cells[0].startswith("-o keep=")}
    means = {}
    for line in found.lines[1:]:
        spread_, gain = line.spread, line.gain
        runs = [kept.trained(run) for run in grid.repeats.runs(line.condition)]
        means[line.condition.row] = [value for (value,) in zip(*spread_.values, strict=True)]
        assert rows[f"-o {line.condition.options[0]}"][1:] == [
            f"{spread_.mean:.3f} ± {spread_.sd_seeds:.3f}",
            say((line.gain_value, gain.low, gain.high)),
            ", ".join(str(one.best_epoch) for one in runs),
        ]
    assert all(one.interval.low < 0 < one.interval.high for one in found.differences)
    assert all(line.gain.low < 0 < line.gain.high for line in found.lines[1:])
    assert max(means, key=lambda name: fmean(means[name])) == "byol keep=separation"
    assert all(a >= b for a, b in zip(means["byol keep=separation"], means["byol keep=loss"], strict=True))


def test_the_rules_of_byol_on_simulated_ecgs_have_the_scores_of_the_commands_that_are_shown():
    with (RESULTS / "byol_keep" / "demo.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if (row["metric"], row["level"]) == ("auroc", "frame")]
    commands = list(dict.fromkeys(row["command"] for row in rows))
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert "".join(f"$ {command}\n" for command in commands) in page
    assert {row["threads"] for row in rows} == {"1"}
    loss, separation, last = [float(row["score"]) for row in rows if row["init"] == "byol"]
    (untrained,) = {row["score"] for row in rows if row["init"] == "random"}
    text = words("docs/methods.md")
    said = f"`loss` has an AUROC of frames of {loss:.3f}, `separation` {separation:.3f}, `last` {last:.3f}, and the unt"
    assert f"{said}rained encoder {float(untrained):.3f}" in text
    assert separation == min(loss, separation, last)
    assert "Here the default has the lowest score of the three." in text


def test_the_areas_of_logits_are_as_much_lower_as_is_said():
    with (RESULTS / "byol_keep" / "logits.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["protocol"] == "linear"]
    lower = [float(row["probabilities"]) - float(row["logits"]) for row in rows]
    text = words("docs/protocols.md")
    different = {(row["init"], row["probabilities"], row["logits"]) for row in rows}  # rules may keep the same epoch
    untrained = sum(init == "random" for init, *_ in different)
    trained = len(different) - untrained
    assert f"have {len(different)} different classifiers, of {trained} trained and {untrained} untrained enc" in text
    assert f"The area of logits is {min(lower):.3f} to {max(lower):.3f} lower in all of them" in text
    first = next(row for row in rows if row["init"] == "random" and "-s0-" in row["run"])
    assert f"it is {float(first['logits']):.3f} instead of {float(first['probabilities']):.3f}" in text


def test_the_order_of_validation_instances_does_what_is_said_of_it():
    """To the lowest loss, and to the epoch that it chooses."""
    found = results("validation_order")["methods"]
    shown = [cells for cells in tables("training.md") if len(cells) == 5 and re.fullmatch(r"[0-9.]+", cells[1])]
    assert [cells[0] for cells in shown] == list(found)
    for name, *cells in shown:
        best = [found[name]["best epoch"][order] for order in ("in order", "shuffled")]
        losses = [found[name][order][best[0] - 1] for order in ("in order", "shuffled")]
        assert cells == [*(f"{loss:.3f}" for loss in losses), *map(str, best)]
    moved = [name for name, one in found.items() if len(set(one["best epoch"].values())) > 1]
    assert moved == ["simclr"]
    assert found["simclr"]["best epoch"]["shuffled"] == results("validation_order")["about"]["epochs"]


def test_where_simclr_stops_is_said_beside_its_scores():
    """Its epochs in both orders, their steps, and the epochs that the full runs kept."""
    order, batch = results("validation_order"), 256  # the default, as in all runs here
    simclr, epochs = order["methods"]["simclr"], order["about"]["epochs"]
    full = results("ptbxl_linear")
    first, second, third = full["rows"]["simclr"]["best_epochs"]
    instances = order["about"]["training instances"], full["split"]["frames"]["train"]
    few, many = (math.ceil(count / batch) for count in instances)
    text = words("docs/results.md")
    best = simclr["best epoch"]["in order"]
    assert f"of {epochs} epochs of {few} steps, its validation loss was lowest at epoch {best}." in text
    assert simclr["shuffled"][-1] == min(simclr["shuffled"])
    assert f"With the same instances shuffled, it still fell at epoch {epochs}." in text
    assert f"kept the epochs {first}, {second} and {third}, of {many} steps." in text


def test_the_counts_of_instances_are_those_that_were_made():
    """Beside the paper's, cell by cell; and what is said of them is so."""
    with (RESULTS / "counts.csv").open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [(one["of_the_paper"], one["method"] or None, one["part"], one["paper"]) for one in found] == [
        (one.dataset, one.method, one.part, one.printed) for one in load_results().counts
    ]
    by_place = {(one["table"], one["of_the_paper"], one["method"], one["part"]): one for one in found}
    shown = tables("results.md")
    for method in ("byol", "simclr", "cmsc", "cmlc", "cmsmlc"):
        cells = [by_place["3", name, method, part] for name in SETS for part in ("train", "validation")]
        ours = [f"{int(one['instances']):,}" for one in cells[:2]]
        assert [method, *ours, *(one["paper"] for one in cells)] in shown
    for name in (*SETS, "cardiology", "physionet2017"):
        cells = [by_place["4", name, "", part] for part in ("train", "validation", "test")]
        ours = [f"{int(one['instances']):,} ({int(one['patients']):,})" for one in cells]
        assert [name, cells[0]["dataset"], *ours, *(one["paper"] for one in cells)] in shown
    here, paper = (
        [int(one[where].split()[0].replace(",", "")) for one in by_cardiology(found)]
        for where in ("instances", "paper")
    )
    assert sum(here) == sum(paper)
    assert f"has the paper's {sum(here):,} frames of 313 patients" in words("docs/results.md")
    assert max(abs(a - b) for a, b in zip(here, paper, strict=True)) == 25
    few, many = (int(by_place["3", "chapman", name, "train"]["instances"]) for name in ("cmlc", "cmsc"))
    assert 4 * few == many


SETS = ("chapman", "physionet2020")


def by_cardiology(found: list[dict[str, str]]) -> list[dict[str, str]]:
    return [one for one in found if one["of_the_paper"] == "cardiology"]


def test_the_separation_of_patients_is_told_as_it_was_measured():
    """In numbers alone: none has an interval."""
    found = results("ptbxl_linear")
    assert found["part"] == "test"
    simclr, cmsc, cmlc, cmsmlc = (
        f"{found['rows'][name]['separation']:.3f}" for name in ("simclr", "cmsc", "cmlc", "cmsmlc")
    )
    expected = f"It is {simclr} for SimCLR, {cmsc} for CMSC, and {cmlc} and {cmsmlc} for CMLC and CMSMLC,"
    assert expected in words("docs/methods.md")


def test_the_untrained_encoder_is_told_with_and_without_the_relu():
    """On the same patients, in two runs whose leads stand in another order, as the page says."""
    chosen, released = results("ptbxl_linear_choices"), results("ptbxl_linear_released")
    assert chosen["split"]["hash"] == released["split"]["hash"]
    assert {chosen["part"], released["part"]} == {"validation"}
    leads = [re.search(r"--leads (\S+)", one["command"])[1] for one in (chosen, released)]
    assert leads == ["4", "II,aVR,aVL,V2"]
    on, off = (one["rows"]["random"]["mean"] for one in (chosen, released))
    assert f"The untrained encoder has {on:.3f} with the ReLU and {off:.3f} without it" in words("docs/methods.md")


def test_the_choices_are_those_of_the_validation_patients():
    chosen, others = results("ptbxl_linear_choices"), results("ptbxl_linear_others")
    assert {chosen["part"], others["part"]} == {"validation"}
    measured = {**others["rows"], **chosen["rows"]}
    relu = [cells for cells in tables("methods.md") if len(cells) == 3 and "±" in cells[1]]
    assert [cells[0] for cells in relu] == ["mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc"]
    for name, on, off in relu:
        assert (on, off) == (spread(measured[name]), spread(measured[f"{name}:layer4_relu=false"]))
    instead = [cells for cells in tables("methods.md") if len(cells) == 4 and "±" in cells[2]]
    assert len(instead) == 4
    for name, option, default, other in instead:
        row = f"{name}:{re.sub('^-o (objective[.])?', '', option)}"
        assert (default, other) == (spread(measured[name]), spread(measured[row]))


def test_the_scores_of_the_released_variant_are_those_that_were_measured():
    chosen, released = results("ptbxl_linear_choices")["rows"], results("ptbxl_linear_released")["rows"]
    rows = [cells for cells in tables("released.md") if len(cells) == 3 and "±" in cells[1]]
    assert [cells[0] for cells in rows] == ["cmsc", "cmlc", "cmsmlc", "simclr"]
    for name, paper, theirs in rows:
        assert (paper, theirs) == (spread(chosen[name]), spread(released[f"{name}:variant=released"]))


def test_the_times_of_a_step_are_those_that_were_measured():
    """And the targets that the page says are met are met."""
    found = results("step")
    cells = {row[0]: row for row in tables("speed.md") if len(row) == 4 and row[0].startswith(("step of", "epoch of"))}
    assert len(cells) == 3
    for words, key, figures in (
        ("CMSC, 256", "step, cmsc, V = 2, default", "captured ms"),
        ("CMSMLC", "step, cmsmlc, V = 8, default", "captured ms"),
        ("epoch", "epoch of 25,543 x 2, default", "seconds"),
    ):
        (row,) = [row for name, row in cells.items() if words in name]
        low, middle, high = found[key][figures]
        assert row[2].startswith(f"{middle:.3f} [{low:.3f}, {high:.3f}]")
        assert middle <= float(row[3].split()[0])
        assert found[key].get("captured ms, epochs of 50", [0, 0])[1] <= float(row[3].split()[0])
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    rows = results("cpu_step")["freed memory kept"]["step"]["rows / plain"]["median"]
    assert f"takes {rows:.2f} of the time" in page
    assert rows <= 0.40


def test_the_recordings_per_second_are_those_that_were_measured():
    """Methods by encoders, each step captured or refused with a reason."""
    found, page = results("throughput"), (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert f"$ {found['command']}\n" in page
    cells = {}
    for one in found["rows"]:
        assert one.get("steps") == "captured" or "predicts what follows" in one["refused"]
        low, middle, high = one.get("recordings_per_second", (0, 0, 0))
        said = f"{middle:,} [{low:,}, {high:,}]; {1000 * found['batch'] / max(middle, 1):.1f} ms"
        cells.setdefault(one["method"], []).append(said if middle else "-")
    shown = tables("speed.md")
    for method, row in cells.items():
        assert [method, *row] in shown


def test_the_times_on_a_machine_with_other_work_are_those_that_were_measured():
    """And the way of `clocs` is the quickest of the three there."""
    found = results("shared_machine")
    assert f"$ {found['command']}\n" in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for name, words in (("default", "in a loop"), ("clocs", "in a short loop"), ("passive", "asleep at once")):
        (row,) = [row for row in tables("speed.md") if row[0].startswith(words)]
        for cell, others in zip(row[1:], ("0 others", "2 others"), strict=True):
            one = found["training_seconds"][others][name]
            assert cell == f"{one['median']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"
    beside = found["training_seconds"]["2 others"]
    assert min(beside, key=lambda name: beside[name]["median"]) == "clocs"


def test_the_time_of_the_demo_is_the_one_that_was_measured():
    found = results("end_to_end_demo")
    rows = {row[0]: row[1] for row in tables("speed.md") if "make demo" in row[0]}
    for said, side in (("older commit", "cbcbe04"), ("480 patients", "new")):
        (cell,) = [cell for name, cell in rows.items() if said in name]
        assert cell == quartiles(found["rows"]["demo"][side]["wall"])
    assert f"took [{found['rows']['demo']['new']['wall']['median']:.0f} s]" in (ROOT / "README.md").read_text("utf-8")
    fewer, text = results("end_to_end_demo_360"), words("docs/speed.md")
    assert f"$ {found['command']} $ {fewer['command']} " in text
    old, new = (fewer["rows"]["demo"][side]["wall"] for side in ("cbcbe04", "new"))
    share = new["median"] / old["median"]
    assert f"it is {share:.2f} of the time: {quartiles(new)} s beside {quartiles(old)} s" in text
    assert share <= 0.6
    twice = found["rows"]["demo"]["new"]["wall"]["median"] / found["rows"]["demo"]["cbcbe04"]["wall"]["median"]
    assert f"That is {twice:.2f} of the time with twice the patients." in text


def test_the_bootstrap_is_as_much_quicker_as_is_said():
    found, text = results("bootstrap"), words("docs/speed.md")
    assert f"$ {found['command']} " in text
    for size, rest in (
        ("8,000 rows, 4 classes", "8,000 rows of 4 classes"),
        ("2,000 rows, 71 classes", "2,000 rows of 71"),
    ):
        of_size = [one for name, one in found["results"].items() if size in name and name.startswith("au")]
        quicker = [one["times quicker"]["median"] for one in of_size]
        assert (
            f"{min(quicker):.1f} to {max(quicker):.1f} times{' as quick' if '4 classes' in rest else ''} with {rest}"
            in text
        )
        assert all(one["largest difference"] <= 1e-9 for one in of_size)


def test_the_memory_of_runs_is_the_one_that_was_measured():
    """And none holds more than its frames and 1.5 GB."""
    found = results("memory")
    assert f"$ {found['command']}\n" in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    parts = (
        "peak_megabytes",
        "megabytes_beside_the_frames",
        *(f"peak_megabytes_of_{name}" for name in ("frames", "libraries", "other_memory")),
    )
    shown = [row for row in tables("speed.md") if len(row) == 6 and row[1].endswith(" MB")]
    assert shown == [[f"{run['patients']:,}", *(f"{run[part]:,.0f} MB" for part in parts)] for run in found["runs"]]
    assert all(run["megabytes_beside_the_frames"] <= 1500 for run in found["runs"])
    assert max(run["patients"] for run in found["runs"]) == 8000


def test_the_time_of_small_jobs_is_the_one_that_was_measured():
    found, page = results("end_to_end_jobs"), (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert f"$ {found['command']}\n" in page
    rows = {row[0]: row[1] for row in tables("speed.md") if row[0].startswith("twelve jobs")}
    shown = [quartiles(found["rows"]["jobs"][side]["wall"]) for side in ("d2eb41d", "new")]
    assert list(rows.values()) == shown
    assert found["rows"]["jobs"]["new"]["wall"]["high"] < 0.6 * found["rows"]["jobs"]["d2eb41d"]["wall"]["low"]


def test_the_times_of_whole_commands_on_a_gpu_are_those_that_were_measured():
    """And no row takes longer than was aimed at."""
    found, from_nothing = results("end_to_end"), results("end_to_end_prepare")
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert f"$ {found['command']}\n$ {from_nothing['command']}\n" in page
    rows = {cells[0]: cells[1:] for cells in tables("speed.md") if len(cells) == 3}
    run = found["rows"]["run"]
    for words, stage in (
        ("a run of CMSC", "wall"),
        ("its start", "start"),
        ("its preparation", "prepare"),
        ("its pre-training", "pretrain"),
        ("its evaluation", "evaluate"),
        ("its report", "report"),
    ):
        (cells,) = [cells for name, cells in rows.items() if name.startswith(words)]
        assert cells == [quartiles(run[side][stage]) if stage in run[side] else "" for side in ("cbcbe04", "new")]
    assert run["new"]["wall"]["median"] <= 14.0
    assert run["new"]["pretrain"]["median"] <= 3.5
    assert run["new"]["evaluate"]["median"] <= 2.5
    (cells,) = [cells for name, cells in rows.items() if name.startswith("preparation from nothing")]
    prepare = from_nothing["rows"]["prepare"]["new"]["prepare"]
    assert cells == ["", quartiles(prepare)]
    assert prepare["median"] <= 6.0
    both = found["rows"]["classes"]["new"]["both"]
    (cells,) = [cells for name, cells in rows.items() if name.startswith("evaluation of 71")]
    assert cells[1] == f"{both['median']:.2f} [{both['lower quartile']:.2f}, {both['upper quartile']:.2f}]"
    assert both["median"] <= 3.0
    held = [run[side]["resident_megabytes"]["median"] / 1000 for side in ("new", "cbcbe04")]
    assert held[0] <= 3.0
    assert f"The run holds {held[0]:.1f} GB at most, that of the older commit {held[1]:.1f} GB." in page


def test_the_time_of_the_linear_table_of_the_paper_is_the_one_that_was_measured():
    """And it takes no longer than was aimed at."""
    found, page = results("end_to_end_table"), (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert f"$ {found['command']}\n" in page
    wall = found["rows"]["table"]["new"]["wall"]
    (cells,) = [cells for cells in tables("speed.md") if cells[0].startswith("the paper's linear table")]
    assert cells[1:] == ["", quartiles(wall)]
    assert wall["high"] <= 90.0


def quartiles(one: dict[str, float]) -> str:
    return f"{one['median']:.1f} [{one['low']:.1f}, {one['high']:.1f}]"


def test_the_cost_of_the_code_for_several_processes_is_the_one_that_was_measured():
    """A step of a group of one takes at most 5 % longer."""
    found, rows = results("ranks_step"), tables("scale.md")
    assert f"$ {found['command']}\n" in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for name, one in found.items():
        if name in ("command", "date", "machine"):
            continue
        encoder, how = name.split(", ")
        low, middle, high = one["ratio"]
        assert middle <= 1.05
        steps = [f"{one[way]:.3f} ms" for way in ("alone ms", "group of one ms")]
        assert [f"{encoder}`, {how}", *steps, f"{middle:.3f} [{low:.3f}, {high:.3f}]"] in rows


def test_the_times_of_own_rows_are_those_that_were_measured():
    """And more processes take less time each, with the gradient of one process."""
    found, shown = results("own_rows"), tables("scale.md")
    assert f"$ {found['command']}\n" in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = defaultdict(list)
    for one in found["rows"]:
        rows[one["batch"]].append(one)
    for batch, several in rows.items():
        times = [
            "{:.3f} [{:.3f}, {:.3f}]".format(one["median_ms"], *one["quartiles_ms"]) + f", {one['memory_mb']:.0f} MB"
            for one in several
        ]
        assert [f"{batch:,}", *times] in shown
        medians = [one["median_ms"] for one in several]
        assert medians == sorted(medians, reverse=True)
        assert all(one["gradient_error"] < 2e-5 for one in several if one["processes"] > 1)


SCALED = ("scale_model", "scale_model_cnn")


def test_the_model_of_several_processes_is_the_one_that_was_measured():
    """Constants, the comparison with 2 and 4 processes, and the predictions for GPUs."""
    rows, page = tables("scale.md"), (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for found in map(results, SCALED):
        assert f"$ {found['command']}\n" in page
        one = found["compute"]
        figures = [f"{1e3 * one[name]:.3g}" for name in ("fixed", "views", "own")]
        assert [found["encoder"], str(found["batch"]), *figures, f"{1e9 * one['pairs']:.3g}"] in rows
        for count, held in found["processes"].items():
            modelled, measured = held["modelled, s"], held["measured, s"]
            assert held["error"] == pytest.approx(modelled / measured - 1, abs=0.01)
            crowd, latency = f"{held['crowd']:.2f}", f"{1e3 * held['latency, s']:.2f} ms"
            wire = [latency, f"{held['speed, bytes/s'] / 1e6:.0f} MB/s", f"{1e3 * held['messages, s']:.1f} ms"]
            steps = [f"{1e3 * one:.1f} ms" for one in (modelled, measured)]
            assert [found["encoder"], count, crowd, *wire, *steps, f"{100 * held['error']:+.1f} %"] in rows


def test_the_predictions_for_gpus_follow_from_the_model():
    """And both files have those of the script as it is."""
    rows = tables("scale.md")
    for found in map(results, SCALED):
        assert found["predictions"] == json.loads(json.dumps(scale_model.predict()))
    for name, one in scale_model.predict().items():
        parts = [f"{one[part]:.3f} ms" for part in ("views, ms", "loss, ms", "messages, ms")]
        whole = [f"{one['step, ms']:.2f} ms", f"{one['one GPU, ms']:.1f} ms", f"{100 * one['efficiency']:.0f} %"]
        assert [name, f"{one['batch']:,}", *parts, *whole] in rows
    kernels = results("step_kernels")["steps"]["cmsc, V = 2"]["kernels"]
    views = kernels[2]["us"] + sum(one["us"] for one in kernels if one["kernel"] == "min_max_kernel")
    assert pytest.approx(views * 1e-6 / 256) == scale_model.GPU_VIEWS


def test_the_times_of_the_losses_are_those_that_were_measured():
    """And every size takes no longer than was aimed at."""
    found = results("patient_nce")
    rows = [row for row in tables("fused-loss.md") if len(row) == 9 and "[" in row[3]]
    assert len(rows) == len(found["sizes"])
    for cells, size in zip(rows, found["sizes"], strict=True):
        fused = size["times"]["fused fp16"]
        assert [int(cell.replace(",", "")) for cell in cells[:3]] == [size["batch"], size["dim"], size["views"]]
        assert float(cells[3].split()[0]) == pytest.approx(fused["median_ms"], rel=0.02)
        assert fused["loss_error"] < 1e-4
        assert fused["gradient_error"] < 2e-3
        assert size["times"]["fused near-fp32"]["gradient_error"] < 2e-5
        assert fused["median_ms"] <= float(cells[4])
        assert size["batch"] == 256 or fused["memory_mb"] * 1e6 < 2 * size["batch"] ** 2  # no matrix of float16
    peers = [row for row in tables("fused-loss.md") if len(row) == 6 and row[0] in ("256", "1,024", "4,096")]
    for cells, size in zip(peers, found["two_views"], strict=True):
        said = {name: f"{row['median_ms']:.3g}" for name, row in size["times"].items() if isinstance(row, dict)}
        assert cells[1] == f"{said['patient-nce fused']}; {said['patient-nce fused, not captured']}"
        assert cells[2] == f"{said['nt-xent fused']}; {said['nt-xent fused, not captured']}"
        theirs = ("lightly NTXentLoss", "pytorch-metric-learning NTXentLoss", "pytorch-metric-learning SupConLoss")
        assert cells[3:] == [said.get(name, "out of memory") for name in theirs]
        assert all(row["waits_for_host"] for name, row in size["times"].items() if name in theirs and name in said)


def grid_scores(options: str = "resamples=20") -> dict[tuple[str, ...], dict[str, list[float]]]:
    """AUROC of frames by (method, leads, downstream, F) and split, from the committed scores."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (RESULTS / "grid" / "scores.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if (row["metric"], row["level"], row["options"]) == ("auroc", "frame", options):
                key = row["method"], row["leads"], row["downstream"], row["label_fraction"]
                found[key][row["split"]].append(float(row["score"]))
    return found


def printed_rows(page: str) -> set[tuple[str, ...]]:
    """The rows of a page that the grid made, without the columns of the paper."""
    lines = (RESULTS / "grid" / page).read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| ptbxl")]
    return {row[1:7] for row in rows if "±" in row[4]}


FIRST_RUN = "8454194:benchmarks/results/grid/scores.csv"


def test_what_repeats_is_what_the_two_runs_have_in_common():
    """The first is in the history of the repository; a checkout without it cannot be asked."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    old = subprocess.run(["git", "show", FIRST_RUN], cwd=ROOT, capture_output=True, text=True, check=False)
    if old.returncode:
        pytest.skip("the history of this checkout lacks the first run")
    text = words("docs/results.md")
    assert f"`git show {FIRST_RUN}`" in text
    first = scores_by_place(old.stdout)
    second = scores_by_place((RESULTS / "grid" / "scores.csv").read_text(encoding="utf-8"))
    common = {key: (first[key], second[key]) for key in second if key in first and key[1] != "physionet2017"}
    kept = [pair for (method, *_), pair in common.items() if method in ("random", "supervised", "mt-ssl", "byol")]
    assert all(a == b for a, b in kept)
    assert f"The two runs have {len(kept)} scores of these in common" in text
    seeds = defaultdict(list)
    for (method, downstream, _, *place), pair in common.items():
        if method in ("simclr", "cmlc", "cmsmlc", "cmsc"):
            seeds[method, downstream, *place].append(tuple(map(float, pair)))
    moved = {}
    for place, pairs in seeds.items():
        old_ones, new = zip(*pairs, strict=True)
        moved[place] = abs(fmean(old_ones) - fmean(new)) >= stdev(new)
    assert f"have {len(moved)} means over seeds" in text
    assert f"{len(moved) - sum(moved.values())} of them moved by less than the sd over seeds of the second run" in text
    assert not any(far for (*_, metric), far in moved.items() if metric in ("auroc", "auprc"))


def scores_by_place(text: str) -> dict[tuple[str, ...], str]:
    """The scores of a file of the grid, by method, downstream set, seed and all else, the metric last."""
    names = ("method", "downstream", "seed", "leads", "label_fraction", "options", "split", "level", "metric")
    return {tuple(row[name] for name in names): row["score"] for row in csv.DictReader(text.splitlines())}


def test_an_overlap_that_is_taken_as_0_widens_the_interval_of_five_seeds():
    """As the page of results says of its intervals."""
    values = (0.1, 0.4, 0.2, 0.3, 0.9)
    spreads = [0.01 * 2**power for power in range(8)]
    for patients, share in product(spreads, (0.01, 0.1, 0.5, 0.9, 1.0)):
        plain = interval_from_spreads(values, patients)
        known = interval_from_spreads(values, patients, share * patients**2)
        assert plain[1] - plain[0] >= known[1] - known[0]
    assert "With five seeds this makes an interval wider, never narrower." in words("docs/results.md")


def test_every_page_of_the_grid_follows_from_the_committed_scores():
    """Intervals, gains and verdicts: no number on a page is older than the scores or the rule."""
    committed = read_committed()
    for page in sorted((RESULTS / "grid").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert rewrite(text, committed) == text, f"run: python benchmarks/grid_intervals.py ({page.name})"
        assert INTERVAL in text


@pytest.mark.parametrize(
    ("asked", "exports", "pages"),
    [
        ("byol_keep.toml", "byol_keep", RESULTS / "byol_keep"),
        ("paper.toml", "paper/*", ROOT / "docs" / "paper"),
    ],
)
def test_every_page_of_exported_files_follows_from_them(
    asked: str, exports: str, pages: Path, tmp_path: Path, no_figures: None
):
    """Every mean, interval, verdict and count of cells; what is not exported has no page."""
    folders = sorted(path for path in RESULTS.glob(exports) if (path / "patients.csv").exists())
    grid = settle_grid(read_grid_file(ROOT / "benchmarks" / asked), installed_session().catalogue)
    if folders:
        make_pages(grid, folders, installed_session().catalogue, tmp_path)
    command = f"clocs grid page benchmarks/results/{exports} --asked benchmarks/{asked} --pages {pages}"
    kept, made = ({path.name: path.read_text(encoding="utf-8") for path in at.glob("*.md")} for at in (pages, tmp_path))
    assert kept == made, f"run: {command}"


def test_a_changed_score_changes_a_page():
    """Else the test above would hold whatever the scores are."""
    committed = read_committed()
    place = Place("4", "physionet2017", "0.5", "resamples=20")
    committed.scores["simclr", place]["0", "4"] += 0.1  # the seed that collapsed
    page = (RESULTS / "grid" / "ptbxl-transfer.md").read_text(encoding="utf-8")
    before, after = page.split("\n"), rewrite(page, committed).split("\n")
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all("simclr" in line for line in changed)
    assert any("| a is above |" in line or "| a is below |" in line for line in changed)


VERDICTS = [
    # a, b, downstream, F, verdict: every paired difference that docs/results.md names
    *(("cmsc", "random", *place, "above") for place in product(("cardiology", "physionet2017"), ("0.25", "0.5"))),
    *(("cmsc", "simclr", "cardiology", share, "above") for share in ("0.25", "0.5")),
    ("cmsc", "simclr", "physionet2017", "0.25", "above"),
    ("cmsc", "simclr", "physionet2017", "0.5", "not told apart"),
    *(
        ("cmsc", "supervised", *place, "not told apart")
        for place in product(("cardiology", "physionet2017"), ("0.25", "0.5"))
    ),
    ("simclr", "random", "physionet2017", "0.5", "not told apart"),
    ("byol", "random", "physionet2017", "0.25", "not told apart"),
    ("byol", "random", "physionet2017", "0.5", "not told apart"),
    ("mt-ssl", "random", "physionet2017", "0.25", "above"),
    ("mt-ssl", "random", "physionet2017", "0.5", "above"),
    ("mt-ssl", "random", "cardiology", "0.25", "not told apart"),
    ("mt-ssl", "random", "cardiology", "0.5", "not told apart"),
    *(("cmsc", other, "ptbxl", "0.5", "above") for other in ("simclr", "cmsmlc", "mt-ssl")),
    ("cmsmlc", "cmlc", "ptbxl", "0.5", "above"),
    ("cmlc", "simclr", "ptbxl", "0.5", "above"),
    ("simclr", "byol", "ptbxl", "0.5", "above"),
    ("cmsmlc", "mt-ssl", "ptbxl", "0.5", "not told apart"),
    ("byol", "random", "ptbxl", "0.5", "not told apart"),
]


@pytest.mark.parametrize(("a", "b", "downstream", "share", "verdict"), VERDICTS)
def test_a_verdict_of_the_page_of_results_follows_from_its_interval(a, b, downstream, share, verdict):
    """And the page has the numbers that carry it."""
    found = read_committed().find(a, b, Place("4", downstream, share, "resamples=20"))
    assert ("above" if found.low > 0 else "below" if found.high < 0 else "not told apart") == verdict
    assert say((found.value, found.low, found.high)) in words("docs/results.md")


def test_what_is_not_told_apart_anywhere_is_so_in_every_place():
    """SimCLR and BYOL beside random initialisation where they are fine-tuned; the collapsed seed is the one named."""
    committed = read_committed()
    for name, *place in product(("simclr", "byol"), ("cardiology", "physionet2017"), ("0.25", "0.5")):
        found = committed.find(name, "random", Place("4", *place, "resamples=20"))
        assert found.low < 0 < found.high
    found = committed.find("simclr", "random", Place("4", "physionet2017", "0.5", "resamples=20"))
    one, *others = sorted(found.values)
    text = words("docs/results.md")
    assert f"one seed of five lies at {one:+.3f} and the others between {others[0]:+.3f} and {others[-1]:+.3f}" in text
    assert committed.find("cmsc", "random", Place("4", "ptbxl", "0.5", "resamples=20")).low > 0  # as the README says


def test_what_is_said_of_the_papers_cells_is_what_it_printed():
    """CMSC beside random initialisation; the order of the linear evaluation on Chapman."""
    cells: dict[tuple, dict[str, float]] = defaultdict(dict)
    for cell in load_results().cells:
        place = cell.pretraining, cell.downstream, cell.leads, cell.embedding_dim, cell.label_fraction, cell.tau_d
        cells[cell.table, place][cell.method] = cell.mean
    text = words("docs/results.md")
    counts = {}
    for table in ("transfer-main", "transfer-4-leads", "transfer-12-leads"):
        both = [found for (name, _), found in cells.items() if name == table and {"cmsc", "random"} <= found.keys()]
        counts[table] = (sum(found["cmsc"] > found["random"] for found in both), len(both))
    (above, total), four, twelve = counts.values()
    assert f"in {above} of the {total} cells of table 2 (0.760 against 0.763 in the other)" in text
    assert f"in {four[0] + twelve[0]} of the {four[1] + twelve[1]} cells of tables 15 to 22" in text
    chapman = cells["linear-main", ("chapman", "chapman", 4, 128, 0.5, None)]
    assert f"That of the paper's Chapman is {order(chapman)}:" in text
    scores = grid_scores()
    ours = {name: fmean(scores[name, "4", "ptbxl", "0.5"]["0"]) for name in chapman}
    assert f"By their means at F = 0.5 the order is {order(ours)}." in text


def order(means: dict[str, float]) -> str:
    return ", ".join(name.upper() for name in sorted(means, key=lambda name: -means[name])).replace("SIMCLR", "SimCLR")


def test_the_spread_over_splits_is_compared_with_that_over_seeds_as_it_was_measured():
    scores = grid_scores()
    said = []
    for share in ("0.5", "0.75", "1", "0.25"):
        by_split = scores["random", "4", "cardiology", share]
        pooled = fmean(stdev(values) ** 2 for values in by_split.values()) ** 0.5
        said.append((f"{stdev(fmean(values) for values in by_split.values()):.3f}", f"{pooled:.3f}"))
    *larger, (over_splits, over_seeds) = said
    assert all(a > b for a, b in larger)
    assert over_splits == over_seeds
    (a, b, c), (x, y, z) = zip(*larger, strict=True)
    expected = f"({a}, {b} and {c} against {x}, {y} and {z}), and the same at F = 0.25 ({over_splits})"
    assert expected in words("docs/results.md")


def test_the_three_seeds_and_the_five_of_cmsc_are_told_apart():
    """A page that quotes one of them says which."""
    five = fmean(grid_scores()["cmsc", "4", "ptbxl", "0.5"]["0"])
    three = results("ptbxl_linear")["rows"]["cmsc"]["mean"]
    assert f"it has {five:.3f} for CMSC where these three seeds have {three:.3f}" in words("docs/methods.md")


def test_the_tables_of_real_recordings_are_the_means_of_the_committed_scores():
    """Five seeds each, sd with n - 1, and the paired gains that the grid printed."""
    scores, rows = grid_scores(), [row for row in tables("results.md") if len(row) == 7 and "±" in "".join(row[2:4])]
    assert len(rows) == 4 * 9 + 2 * 9
    for cells in rows:
        linear = cells[0] in ("0.25", "0.5")
        downstream, share, encoder, ours = ("ptbxl", *cells[:3]) if linear else cells[:4]
        leads = "12" if "12 leads" in encoder else "4"
        method = encoder.replace("`", "").split(",")[0]
        values = scores[method, leads, downstream, share]["0"]  # the paper's way: one split
        assert len(values) == 5
        assert ours == f"{fmean(values):.3f} ± {stdev(values):.3f}"
        page = f"ptbxl-{'linear' if linear else 'transfer'}{'-12-leads' if leads == '12' else ''}.md"
        gain = cells[4]
        assert any(row[1:4] == (share, method, ours) and row[5] == gain for row in printed_rows(page)), cells


def test_random_initialisation_is_reported_by_seed_and_by_split():
    """The sd of each source apart, and the paper's cell within the distribution, as the page says."""
    scores = grid_scores()
    rows = [row for row in tables("results.md") if len(row) == 6 and " ± 0" in row[1]]
    assert [row[0] for row in rows] == ["0.25", "0.5", "0.75", "1"]
    for share, ours, over_splits, extremes, means, paper in rows:
        by_split = scores["random", "4", "cardiology", share]
        assert [len(values) for values in by_split.values()] == [5] * 5
        every = [value for values in by_split.values() for value in values]
        pooled = fmean(stdev(values) ** 2 for values in by_split.values()) ** 0.5
        assert ours == f"{fmean(every):.3f} ± {pooled:.3f}"
        assert over_splits == f"{stdev(fmean(values) for values in by_split.values()):.3f}"
        assert extremes == f"{min(every):.3f} – {max(every):.3f}"
        assert means == ", ".join(f"{fmean(values):.3f}" for values in by_split.values())
        assert min(every) <= float(paper.split()[0]) <= max(every)
        assert abs(float(paper.split()[0]) - fmean(every)) <= float(over_splits)


def test_the_sentence_about_min_max_is_what_was_measured():
    by_split = grid_scores("normalise=min-max resamples=20")["random", "4", "cardiology", "0.5"]
    assert [len(values) for values in by_split.values()] == [5] * 5
    every = [value for values in by_split.values() for value in values]
    pooled = fmean(stdev(values) ** 2 for values in by_split.values()) ** 0.5
    over_splits = stdev(fmean(values) for values in by_split.values())
    means = ", ".join(f"{fmean(values):.3f}" for values in by_split.values())
    page = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    assert f"{fmean(every):.3f} ± {pooled:.3f} over seeds, sd {over_splits:.3f} over splits" in page
    assert f"{min(every):.3f} – {max(every):.3f}, and the splits {means}" in page


PICTURE = ROOT / "docs" / "pictures" / "make_results.py"


def test_the_table_of_the_readme_is_the_mean_of_the_committed_scores():
    """Whoever reads no further must not read old ones."""
    scores = grid_scores()
    rows = [row for row in tables("../README.md") if len(row) == 4 and "±" in row[1]]
    assert {row[0].split("`")[0] for row in rows} == {method for method, *_ in scores}
    for method, *cells in rows:
        for downstream, cell in zip(("ptbxl", "cardiology", "physionet2017"), cells, strict=True):
            values = scores[method.split("`")[0], "4", downstream, "0.5"]["0"]
            assert len(values) == 5
            assert cell == f"{fmean(values):.3f} ± {stdev(values):.3f}"


def test_the_picture_of_the_readme_shows_the_gains_of_the_page_of_results():
    drawn = runpy.run_path(str(PICTURE))
    for panel in drawn["PANELS"]:
        shown = {
            method: f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
            for method, gain in drawn["read_gains"](panel).items()
        }
        rows = tables("results.md")
        linear = {row[1]: row[4] for row in rows if row[0] == "0.5" and len(row) == 7}
        tuned = {row[2]: row[4] for row in rows if row[:2] == [panel.dataset, "0.5"] and len(row) == 7}
        told = linear if panel.dataset == "ptbxl" else tuned
        assert shown == {method: told[method] for method in drawn["METHODS"]}


def test_the_picture_of_the_readme_shows_each_seed_of_a_gain():
    """Their mean is the gain: two roundings to three digits apart at most."""
    drawn = runpy.run_path(str(PICTURE))
    for panel in drawn["PANELS"]:
        for gain in drawn["read_gains"](panel).values():
            assert len(gain.seeds) == 5
            assert fmean(gain.seeds) == pytest.approx(gain.mean, abs=0.001)


def test_every_page_of_the_grid_has_the_command_that_the_documentation_shows():
    """With the machine and the time that it took, so that it can be made again."""
    shown = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    pages = sorted((RESULTS / "grid").glob("*.md"))
    assert len(pages) == 6
    for page in pages:
        text = page.read_text(encoding="utf-8")
        (command,) = re.search(r"^Command 1:\n\n```sh\n(.+)\n```$", text, re.MULTILINE).groups()
        assert f"$ {by_the_papers_rule(command)}\n" in shown
        assert re.search(r"\d+ at once, in .+ of wall time", text)
        assert "device NVIDIA H200" in text


@pytest.mark.parametrize(
    "path", sorted([*RESULTS.glob("*.json"), *RESULTS.rglob("*.csv")]), ids=lambda path: "/".join(path.parts[-2:])
)
def test_results_name_no_place_of_the_machine_that_made_them(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w$])/(tmp|home|root|work|Users)/", text)
