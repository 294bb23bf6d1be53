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
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, stdev

import grid_intervals
import pytest
import run_all
import scale_model
from paper_results import Place, paper_results

from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.carry_out import make_pages
from clocs_core.grids.export import PLACE
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


def test_where_methods_stop_is_said_beside_their_scores():
    """The epochs that seeds kept; for SimCLR, those in both orders of the validation instances too."""
    order, batch, text = results("validation_order"), 256, words("docs/results.md")  # the default, as in all runs here
    simclr, epochs = order["methods"]["simclr"], order["about"]["epochs"]
    steps, best = math.ceil(order["about"]["training instances"] / batch), simclr["best epoch"]["in order"]
    assert f"In one training of {epochs} epochs of {steps} steps," in text
    assert f"validation loss was lowest at epoch {best}, and with the same" in text
    assert simclr["shuffled"][-1] == min(simclr["shuffled"])
    assert f"instances shuffled, it still fell at epoch {epochs}." in text
    *kept, last = kept_epochs("simclr")
    assert f"kept the epochs {', '.join(kept)} and {last}. The last is that of the seed at" in text
    place = Place("4", "physionet2017", "0.5")
    both = (paper_results().seeds(name, place) for name in ("simclr", "random"))
    *others, fifth = (ours - theirs for ours, theirs in zip(*both, strict=True))
    assert fifth < min(others)
    *kept, last = kept_epochs("byol")
    assert f"The default rule kept the epochs {', '.join(kept)} and {last}." in text
    assert set(kept_epochs("byol keep=loss")) == {"1"}


def kept_epochs(method: str) -> list[str]:
    """The best epoch of each seed, pre-trained on four leads with E = 128."""
    with (RESULTS / "paper" / "first" / "runs.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if (row["leads"], row["embedding_dim"]) == ("4", "128")]
    name = f"{method} resamples=20 permutations=0"
    return [row["best_epoch"] for row in rows if row["method"] == name and row["init"] != "random"]


def test_the_counts_of_instances_are_those_that_were_made():
    """Beside the paper's, cell by cell; and what is said of them is so."""
    with (RESULTS / "counts.csv").open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [(one["of_the_paper"], one["method"] or None, one["part"], one["paper"]) for one in found] == [
        (one.dataset, one.method, one.part, one.printed) for one in load_results().counts
    ]
    by_place = {(one["table"], one["of_the_paper"], one["method"], one["part"]): one for one in found}
    shown = [without_commas(row) for row in tables("results.md")]  # the paper prints thousands with and without them
    for method in ("byol", "simclr", "cmsc", "cmlc", "cmsmlc"):
        cells = [by_place["3", name, method, part] for name in SETS for part in ("train", "validation")]
        ours = [f"{int(one['instances']):,}" for one in cells[:2]]
        assert without_commas([method, *ours, *(one["paper"] for one in cells)]) in shown
    for name in (*SETS, "cardiology", "physionet2017"):
        cells = [by_place["4", name, "", part] for part in ("train", "validation", "test")]
        ours = [f"{int(one['instances']):,} ({int(one['patients']):,})" for one in cells]
        assert without_commas([name, cells[0]["dataset"], *ours, *(one["paper"] for one in cells)]) in shown
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


def without_commas(row: list[str]) -> list[str]:
    return [cell.replace(",", "") for cell in row]


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


def random_scores(options: str = "resamples=20") -> dict[str, dict[str, list[float]]]:
    """AUROC of frames on Cardiology from random initialisation, by F and split."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (RESULTS / "grid" / "scores.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            assert (row["method"], row["downstream"]) == ("random", "cardiology")
            if (row["metric"], row["level"], row["options"]) == ("auroc", "frame", options):
                found[row["label_fraction"]][row["split"]].append(float(row["score"]))
    return found


EARLIER_RUN = "cb2840e:benchmarks/results/grid/scores.csv"


def test_what_repeats_is_what_the_two_runs_have_in_common():
    """The earlier is in the history of the repository; a checkout without it cannot be asked."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    old = subprocess.run(["git", "show", EARLIER_RUN], cwd=ROOT, capture_output=True, text=True, check=False)
    if old.returncode:
        pytest.skip("the history of this checkout lacks the earlier run")
    text = words("docs/results.md")
    assert f"`git show {EARLIER_RUN}`" in text
    common: dict[str, list[tuple[str, Place, float, float]]] = defaultdict(list)
    for row in csv.DictReader(old.stdout.splitlines()):
        about = row["metric"], row["level"], row["split"], row["options"], row["commit"]
        name = {"byol": "byol keep=loss"}.get(row["method"], row["method"])  # which was its default
        place = Place(row["leads"], row["downstream"], row["label_fraction"])
        if about == ("auroc", "frame", "0", "resamples=20", "7cc7553fc5a4") and (place, name) in paper_results().lines:
            kind = name if name == "mt-ssl" else "linear" if place.downstream == "ptbxl" else "tuned"
            now = paper_results().seeds(name, place)[int(row["seed"])]
            common[kind].append((name, place, float(row["score"]), now))
    apart = {kind: [abs(before - now) for *_, before, now in found] for kind, found in common.items()}
    tuned, linear, mt_ssl = (apart[kind] for kind in ("tuned", "linear", "mt-ssl"))
    near = [one for one in tuned if one <= 2e-5]
    assert f"{len(tuned)} of fine-tuned encoders, without MT-SSL. {len(near)} of them are equal to within 0.0" in text
    others = [found[:2] for found, gap in zip(common["tuned"], tuned, strict=True) if gap > 2e-5]
    assert {(name, place.downstream) for name, place in others} == {("simclr", "cardiology")}
    assert len(others) == 2
    assert f"the larger difference is {max(tuned):.4f}." in text
    assert f"{len(linear)} of linear evaluations, without MT-SSL. The largest difference is {max(linear):.4f}" in text
    means: dict[Place, list[float]] = defaultdict(list)
    for _, place, before, now in common["mt-ssl"]:
        means[place].append(before - now)
    moved = max(abs(fmean(found)) for found in means.values())
    assert f"{len(mt_ssl)} of MT-SSL" in text
    assert f"They differ by up to {max(mt_ssl):.3f}, and their means over seeds by up to {moved:.3f}." in text


def test_every_page_of_the_grid_follows_from_the_committed_scores():
    """Intervals, gains and verdicts: no number on a page is older than the scores or the rule."""
    committed = grid_intervals.read_committed()
    for page in sorted((RESULTS / "grid").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert grid_intervals.rewrite(text, committed) == text, (
            f"run: python benchmarks/grid_intervals.py ({page.name})"
        )
        assert INTERVAL in text


def test_every_page_of_the_rules_of_byol_follows_from_the_exported_files(tmp_path: Path, no_figures: None):
    """Every mean, interval, verdict and count of cells; what is not exported has no page."""
    grid = settle_grid(read_grid_file(ROOT / "benchmarks" / "byol_keep.toml"), installed_session().catalogue)
    make_pages(grid, [RESULTS / "byol_keep"], installed_session().catalogue, tmp_path, print)
    command = "clocs grid page benchmarks/results/byol_keep --asked benchmarks/byol_keep.toml --pages"
    assert pages_in(RESULTS / "byol_keep") == pages_in(tmp_path), f"run: {command} benchmarks/results/byol_keep"


@pytest.mark.slow
def test_every_page_of_the_paper_follows_from_the_exported_files(tmp_path: Path, no_figures: None):
    """The ten sentences on its claims too, with the command that makes them all."""
    assert run_all.main(["--pages", "--out", str(tmp_path)]) == 0
    assert pages_in(ROOT / "docs" / "paper") == pages_in(tmp_path), "run: python benchmarks/run_all.py --pages"
    assert "$ python benchmarks/run_all.py --pages\n" in pages_in(tmp_path)["claims.md"]
    assert "`ptbxl` stands in for `chapman` and `physionet2020`: the paper's" in pages_in(tmp_path)["index.md"]


def pages_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def test_a_changed_score_changes_a_page():
    """Else the test above would hold whatever the scores are."""
    committed = grid_intervals.read_committed()
    place = grid_intervals.Place("4", "cardiology", "0.5", "resamples=20")
    committed.scores["random", place]["0", "4"] += 0.5
    page = (RESULTS / "grid" / "cardiology-random.md").read_text(encoding="utf-8")
    before, after = page.split("\n"), grid_intervals.rewrite(page, committed).split("\n")
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all("| 0.5 | random |" in line for line in changed)


BOTH = tuple(product(("cardiology", "physionet2017"), ("0.25", "0.5")))
VERDICTS = [
    # a, b, downstream, F, verdict: every paired difference that docs/results.md names
    *(("cmsc", "random", *place, "above") for place in BOTH),
    *(("cmsc", "simclr", "cardiology", share, "above") for share in ("0.25", "0.5")),
    ("cmsc", "simclr", "physionet2017", "0.25", "above"),
    ("cmsc", "simclr", "physionet2017", "0.5", "not told apart"),
    *(("cmsc", "supervised", *place, "not told apart") for place in BOTH),
    ("simclr", "random", "physionet2017", "0.5", "not told apart"),
    *(("byol keep=loss", "random", "physionet2017", share, "not told apart") for share in ("0.25", "0.5")),
    ("byol", "random", "cardiology", "0.5", "below"),
    ("mt-ssl", "random", "physionet2017", "0.5", "above"),
    ("mt-ssl", "random", "cardiology", "0.5", "above"),
    *(("cmsc", other, "ptbxl", "0.5", "above") for other in ("simclr", "cmsmlc", "mt-ssl")),
    ("cmsmlc", "cmlc", "ptbxl", "0.5", "above"),
    ("cmlc", "simclr", "ptbxl", "0.5", "above"),
    ("simclr", "byol keep=loss", "ptbxl", "0.5", "above"),
    ("cmsmlc", "mt-ssl", "ptbxl", "0.5", "not told apart"),
    ("byol keep=loss", "random", "ptbxl", "0.5", "not told apart"),
]
EQUAL = "steps=10000"
VERDICTS_OF_EQUAL_STEPS = [
    *(("cmsc", other, "not told apart") for other in ("cmlc", "cmsmlc", "mt-ssl")),
    ("cmsc", "simclr", "above"),
    ("byol", "random", "below"),
]


@pytest.mark.parametrize(("a", "b", "downstream", "share", "verdict"), VERDICTS)
def test_a_verdict_of_the_page_of_results_follows_from_its_interval(a, b, downstream, share, verdict):
    """And the page has the numbers that carry it."""
    found = paper_results().find(a, b, Place("4", downstream, share))
    assert reading(found) == verdict
    assert say(found) in words("docs/results.md")


@pytest.mark.parametrize(("a", "b", "verdict"), VERDICTS_OF_EQUAL_STEPS)
def test_a_verdict_of_equal_steps_follows_from_its_interval(a, b, verdict):
    found = paper_results().find(a, b, Place("4", "ptbxl", "0.5", EQUAL))
    assert reading(found) == verdict
    assert say(found) in words("docs/results.md")


def reading(found: tuple[float, float, float]) -> str:
    _, low, high = found
    return "above" if low > 0 else "below" if high < 0 else "not told apart"


def test_with_equal_steps_no_two_of_the_four_are_told_apart():
    place = Place("4", "ptbxl", "0.5", EQUAL)
    for a, b in combinations(("cmsc", "cmlc", "cmsmlc", "mt-ssl"), 2):
        assert reading(paper_results().find(a, b, place)) == "not told apart"


def test_what_is_not_told_apart_anywhere_is_so_in_every_place():
    """SimCLR and BYOL beside random initialisation where they are fine-tuned; the collapsed seed is the one named."""
    for name, place in product(("simclr", "byol keep=loss"), BOTH):
        assert reading(paper_results().find(name, "random", Place("4", *place))) == "not told apart"
    told = [place for place in BOTH if reading(paper_results().find("byol", "random", Place("4", *place))) == "below"]
    assert told == [("cardiology", "0.5")]
    place = Place("4", "physionet2017", "0.5")
    both = (paper_results().seeds(name, place) for name in ("simclr", "random"))
    one, *others = sorted(ours - theirs for ours, theirs in zip(*both, strict=True))
    text = words("docs/results.md")
    assert f"one seed of five lies at {one:+.3f} and the others between {others[0]:+.3f} and {others[-1]:+.3f}" in text
    assert paper_results().find("cmsc", "random", Place("4", "ptbxl", "0.5"))[1] > 0  # as the README says


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
    place = Place("4", "ptbxl", "0.5")
    ours = {name: fmean(paper_results().seeds(name.replace("byol", "byol keep=loss"), place)) for name in chapman}
    assert f"By their means at F = 0.5 the order is {order(ours)}." in text


def order(means: dict[str, float]) -> str:
    return ", ".join(name.upper() for name in sorted(means, key=lambda name: -means[name])).replace("SIMCLR", "SimCLR")


def test_the_spread_over_splits_is_compared_with_that_over_seeds_as_it_was_measured():
    scores = random_scores()
    said = []
    for share in ("0.5", "0.75", "1", "0.25"):
        by_split = scores[share]
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
    five = fmean(paper_results().seeds("cmsc", Place("4", "ptbxl", "0.5")))
    three = results("ptbxl_linear")["rows"]["cmsc"]["mean"]
    assert f"it has {five:.3f} for CMSC where these three seeds have {three:.3f}" in words("docs/methods.md")


def test_the_tables_of_real_recordings_are_the_means_of_the_committed_scores():
    """Five seeds each, sd with n - 1, with the intervals over seeds and patients."""
    rows = [row for row in tables("results.md") if len(row) == 7 and "±" in "".join(row[2:4])]
    assert len(rows) == 2 * (9 + 10) + 9 + 11
    for cells in rows:
        linear = cells[0] in ("0.25", "0.5")
        downstream, share, encoder, ours = ("ptbxl", *cells[:3]) if linear else cells[:4]
        name = encoder.replace("`", "").split(",")[0].replace(":", " ")
        place = Place("12" if "12 leads" in encoder else "4", downstream, share)
        values = paper_results().seeds(name, place)
        assert len(values) == 5
        assert ours == f"{fmean(values):.3f} ± {stdev(values):.3f}"
        assert cells[4] == ("" if name == "random" else say(paper_results().find(name, "random", place)))
        interval = paper_results().lines[place, name].interval
        assert not linear or cells[3] == f"{interval.low:.3f} – {interval.high:.3f}"


def test_the_scores_by_two_solvers_are_as_near_as_is_said():
    """All that are listed, and the largest difference of each metric."""
    with (RESULTS / "linear_differences_grid.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    text, shown = words("docs/protocols.md"), tables("protocols.md")
    runs = {row["run"] for row in rows} - {""}
    untrained = {(row["leads"], row["seed"]) for row in rows if row["method"] == "random"}
    assert len(runs) == 40
    assert len(untrained) == 10
    assert f"lists every score of {len(runs)} encoders" in text
    assert f"same features: {len(rows)} scores, F = 0.25 and 0.5." in text
    for level, (column, said) in product(("frame", "record"), BESIDE.items()):
        far = defaultdict(float)
        for row in rows:
            if row["level"] == level:
                far[row["metric"]] = max(far[row["metric"]], abs(float(row[column])))
        cells = [f"{far[metric]:.4f}" if far[metric] else "0" for metric in ("auroc", "auprc", "f1", "calibration")]
        assert [level, said, *cells] in shown
    assert max(abs(float(row["from_converged"])) for row in rows) < 1e-4


BESIDE = {"from_converged": "run to convergence", "from_default": "with its default tolerance"}


def test_the_listed_scores_are_those_of_the_tables():
    """On a CPU here, on a GPU there."""
    with (RESULTS / "linear_differences_grid.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if (row["metric"], row["level"]) == ("auroc", "frame")]
    common = 0
    for row in rows:
        place = Place(row["leads"], "ptbxl", row["label_fraction"])
        name = "byol keep=loss" if row["method"] == "byol" else row["method"]
        if (place, name) in paper_results().lines:
            common += 1
            value = paper_results().seeds(name, place)[int(row["seed"])]
            assert float(row["score"]) == pytest.approx(value, abs=1e-5)
    # With four leads, the tables have no MT-SSL and no supervised pre-training at F = 0.25. With twelve there is CMSC.
    assert common == 5 * (6 + 8 + 2 + 2)


def test_the_time_of_the_tables_is_that_of_the_calls():
    """Jobs and wall time of the calls that made each export, and its source."""
    for export in ("first", "second"):
        calls, scores = (rows_of_export(export, name) for name in ("calls.csv", "scores.csv"))
        done, seconds = sum(int(call["done"]) for call in calls), sum(float(call["seconds"]) for call in calls)
        (at_once,) = {call["at_once"] for call in calls}
        (source,) = {row["commit"] for row in scores} - {""}
        said = f"source {source}: {done:,} jobs took {seconds / 60:.0f} minutes with {at_once} at once"
        assert said in words("docs/results.md")


def test_scores_of_two_machines_are_equal_as_is_said():
    """Encoders were trained anew on each; no digit that is kept differs."""
    name = ("method", *PLACE, "split", "seed", "metric", "level")
    first, second = (
        {tuple(row[column] for column in name): row for row in rows_of_export(export, "scores.csv")}
        for export in ("first", "second")
    )
    both = first.keys() & second.keys()
    text = words("docs/results.md")
    assert f"{len(both)} scores of the paper's tables were made twice" in text
    assert f"All {len(both)} are equal in the six digits that are kept, after the same numbers of steps" in text
    for key in both:
        assert [first[key][one] for one in ("score", "steps")] == [second[key][one] for one in ("score", "steps")], key
    assert {key[0].split()[0] for key in both} == {"cmsc", "cmlc", "cmsmlc", "simclr", "random"}
    assert {row["leads"] for row in map(first.get, both)} == {"4", "12"}
    assert {row["protocol"] for row in map(first.get, both)} == {"linear", "finetune"}


def rows_of_export(export: str, name: str) -> list[dict[str, str]]:
    with (RESULTS / "paper" / export / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_two_exposures_are_those_of_the_committed_scores():
    """With the steps and the instances of each."""
    rows = [row for row in tables("results.md") if len(row) == 9 and "±" in row[1]]
    assert [row[0] for row in rows] == ["supervised", "mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc"]
    for name, *cells in rows:
        for exposure, shown in (("", cells[:4]), (EQUAL, cells[4:])):
            line = paper_results().lines[Place("4", "ptbxl", "0.5", exposure), name]
            seen = f"{line.seen.best_steps:,.0f}", f"{line.seen.best_instances:,.0f}"
            gain = say((line.gain.value, line.gain.low, line.gain.high))
            assert shown == [f"{line.spread.mean:.3f} ± {line.spread.sd_seeds:.3f}", gain, *seen]


def test_random_initialisation_is_reported_by_seed_and_by_split():
    """The sd of each source apart, and the paper's cell within the distribution, as the page says."""
    scores = random_scores()
    rows = [row for row in tables("results.md") if len(row) == 6 and " ± 0" in row[1]]
    assert [row[0] for row in rows] == ["0.25", "0.5", "0.75", "1"]
    for share, ours, over_splits, extremes, means, paper in rows:
        by_split = scores[share]
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
    by_split = random_scores("normalise=min-max resamples=20")["0.5"]
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
    rows = [row for row in tables("../README.md") if len(row) == 4 and "±" in row[1]]
    assert len(rows) == 8
    for method, *cells in rows:
        for downstream, cell in zip(("ptbxl", "cardiology", "physionet2017"), cells, strict=True):
            values = paper_results().seeds(method.split("`")[0], Place("4", downstream, "0.5"))
            assert len(values) == 5
            assert cell == f"{fmean(values):.3f} ± {stdev(values):.3f}"


def test_the_picture_of_the_readme_shows_the_gains_of_the_page_of_results():
    drawn = runpy.run_path(str(PICTURE))
    gains = drawn["read_gains"]()
    for panel in drawn["PANELS"]:
        shown = {method: say((gain.mean, gain.low, gain.high)) for method, gain in gains[panel.dataset].items()}
        place = Place("4", panel.dataset, "0.5")
        assert shown == {method: say(paper_results().find(method, "random", place)) for method in drawn["METHODS"]}


def test_the_picture_of_the_readme_shows_each_seed_of_a_gain():
    """Their mean is the gain."""
    drawn = runpy.run_path(str(PICTURE))
    for gains in drawn["read_gains"]().values():
        for gain in gains.values():
            assert len(gain.seeds) == 5
            assert fmean(gain.seeds) == pytest.approx(gain.mean, abs=1e-9)


def test_every_page_of_the_grid_has_the_command_that_the_documentation_shows():
    """With the machine and the time that it took, so that it can be made again."""
    shown = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    pages = sorted((RESULTS / "grid").glob("*.md"))
    assert len(pages) == 2
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
