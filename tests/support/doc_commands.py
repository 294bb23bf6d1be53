"""List the commands in README.md and docs/, make them small enough to run, and say which test runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>\w*)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
SHELLS = ("bash", "console", "sh", "shell")

_SHELL = "tests/test_doc_installation.py::test_a_reader_installs_clocs_and_makes_and_installs_plugins"

_EXAMPLES = "tests/test_examples.py::test_"

_OWN = "clocs run --method cmsc --dataset arrays --root "
_FILES = "tests/test_own_data.py::test_a_folder_of_files_becomes_a_report_by_the_command_of_the_page"

_GRIDS = "tests/test_doc_grids.py::test_the_commands_of_the_page_fill_its_grid"

_PAPER = "clocs grid run benchmarks/paper.toml"
_GPU = "--out runs/paper --device cuda --jobs 4 --runs-per-job 5 --threads 2"

# Commands that other tests run than those that run the rest: where. Each must stand on a page still, and so must the
# test in its file; a stage of .ci/run is a target of the Makefile, which has the command.
RUN_ELSEWHERE = {
    "make demo": ".ci/run::demo",
    "make test": ".ci/run::test",
    "python benchmarks/run_all.py --smoke": ".ci/run::smoke",
    "python -m venv .venv": _SHELL,
    ". .venv/bin/activate": _SHELL,
    "pip install .": _SHELL,
    "pip install ./wander": _SHELL,
    "pip install '.[test]'": _SHELL,
    "cd clocs-plugin-eeg": _SHELL,
    "clocs run --method eeg --dataset eeg": _SHELL,
    "python make_ward_data.py": _SHELL,
    _OWN + "recordings --patients table.csv --labels table.csv": _FILES,
    _OWN + "recordings --labels table.csv": _FILES,
    _OWN + "x.npz": "tests/plugins/arrays/test_arrays_run.py"
    "::test_ten_seconds_at_any_rate_are_trained_on_by_one_command",
    "clocs plugins test docs/examples/sleep": _EXAMPLES + "every_check_passes",
    "clocs run --plugin cmsc --dataset sleep": _EXAMPLES + "sleep_is_scored_by_epoch_and_by_age",
    "clocs run --plugin forecast --dataset demo": _EXAMPLES + "a_strangers_method_resumes_bit_for_bit",
    "clocs run --plugin recall --dataset demo": _EXAMPLES + "a_strangers_method_resumes_bit_for_bit",
    "clocs run --plugin cmsc --dataset demo -o diary.file=diary.jsonl": _EXAMPLES
    + "a_strangers_protocol_has_controls_and_intervals_and_a_strangers_tracker_its_options",
    "clocs run --plugin ecg-and-pulse --dataset bedside": _EXAMPLES
    + "two_modalities_have_an_encoder_each_and_both_are_scored_and_used",
    "clocs run --plugin cmsc --dataset demo --processes 2 --device cpu": "tests/faults/test_several_processes.py"
    "::test_one_two_and_four_processes_train_alike",
    "clocs grid run mine.toml --dry-run": _GRIDS,
    "clocs grid run mine.toml --jobs 2": _GRIDS,
    "clocs grid run linear-main --axis dataset=chapman=demo,physionet2020=demo --axis method=cmsc": _GRIDS,
    "clocs grid run mine.toml --engine ray --address auto --jobs 30 -e gpus=0.25": _GRIDS,
    "clocs data prepare ptbxl --engine ray --address auto --workers 64": "tests/plugins/ray_cluster/test_ray_cluster.py"
    "::test_a_preparation_survives_the_loss_of_a_node",
    "clocs grid status runs/grids/mine": _GRIDS,
    "clocs grid page runs/grids/mine": _GRIDS,
    "clocs grid export runs/grids/mine --csv scores.csv": _GRIDS,
    **dict.fromkeys(
        (
            "clocs grid run mine.toml --axis exposure=own,steps=2000",
            "clocs grid export runs/grids/mine --folder scores",
            "clocs grid page scores --asked mine.toml --pages pages",
        ),
        _GRIDS,
    ),
    **dict.fromkeys(
        (
            "clocs grid list benchmarks/paper.toml --out runs/paper",
            f"{_PAPER} --only linear-main,transfer-main {_GPU}",
            f"{_PAPER} --only linear-4-leads --axis embedding_dim=32 {_GPU}",
            "clocs grid export runs/paper --asked benchmarks/paper.toml --folder benchmarks/results/paper/first "
            "--jobs 8",
        ),
        "tests/core/cli/test_cli_grid.py::test_pages_are_made_from_what_was_exported_without_the_runs",
    ),
    "python benchmarks/run_all.py --pages": (
        "tests/test_results.py::test_every_page_of_the_paper_follows_from_the_exported_files"
    ),
    "python benchmarks/linear_differences_grid.py runs/paper/pretrained/{supervised,mt-ssl,simclr,cmlc,cmsmlc,cmsc}"
    "-ptbxl-L4-E128-resamples=*/ runs/paper/pretrained/byol-ptbxl-L4-E128-keep=loss-*/ "
    "runs/paper/pretrained/cmsc-ptbxl-L12-E128-resamples=*/ --root $CLOCS_DATA/ptbxl --jobs 2 "
    "--out benchmarks/results/linear_differences_grid.csv": "tests/benchmarks/test_linear_differences_grid.py"
    "::test_every_score_of_a_run_and_of_the_untrained_encoder_is_listed_by_both_solvers",
    "python benchmarks/counts.py --data-root $CLOCS_DATA --out benchmarks/results/counts.csv": "tests/benchmarks"
    "/test_counts.py::test_instances_are_counted_by_part",
    "python benchmarks/validation_order.py --root $CLOCS_DATA/ptbxl --out benchmarks/results/validation_order.json": (
        "tests/benchmarks/test_validation_order.py::test_each_epoch_is_validated_in_both_orders"
    ),
    **{
        # With the names of many rows; tests/benchmarks/test_ptbxl_page.py compares them with the rows of the file.
        json.loads((ROOT / f"benchmarks/results/ptbxl/{name}.json").read_text(encoding="utf-8"))["command"]: "tests"
        "/benchmarks/test_ptbxl.py"
        "::test_a_row_is_chosen_on_fold_9_and_scored_on_fold_10_without_another_training"
        for name in ("ablation", "best", "cpc", "encoders", "encoders_more", "longer", "mae", "methods")
    },
    **{
        json.loads((ROOT / f"benchmarks/results/ptbxl/{name}.json").read_text(encoding="utf-8"))["command"]: "tests"
        "/benchmarks/test_ptbxl.py::test_another_fold_is_scored_with_encoders_that_have_not_seen_it"
        for name in ("fold8", "fold8_printed")
    },
    "python benchmarks/ptbxl_page.py benchmarks/results/ptbxl": "tests/benchmarks/test_ptbxl_page.py"
    "::test_the_committed_page_is_the_one_that_the_committed_results_make",
    "clocs run --plugin supervised --encoder xresnet1d --dataset ptbxl --task superclass --split published": (
        "tests/benchmarks/test_ptbxl.py::test_the_supervised_network_of_the_page_is_one_command"
    ),
    "clocs data download physionet2017": "tests/plugins/physionet2017/test_physionet2017_download.py"
    "::test_what_is_downloaded_can_be_read",
    "clocs data download physionet2020": "tests/plugins/physionet2020/test_physionet2020_recordings.py"
    "::test_what_is_downloaded_can_be_read",
    "python benchmarks/campaign.py --seconds 60 --jobs 2": "tests/benchmarks/test_faults.py"
    "::test_half_a_minute_of_the_campaign_breaks_no_promise",
    "python benchmarks/campaign.py --jobs 3 --log trials --json benchmarks/results/campaign.json": "tests/benchmarks"
    "/test_faults.py::test_a_campaign_goes_on_after_the_trials_that_stand_in_its_log",
    "python benchmarks/campaign.py --again benchmarks/results/campaign.json": "tests/benchmarks/test_campaign_page.py"
    "::test_a_trial_is_made_again_by_its_name",
    "python benchmarks/campaign.py --table benchmarks/results/campaign.json": "tests/benchmarks/test_campaign_page.py"
    "::test_the_page_has_the_table_and_the_facts_of_the_committed_campaign",
    "python benchmarks/patient_nce.py --sweep --out sweep.json": "tests/plugins/contrastive_losses"
    "/test_patient_nce_benchmark.py::test_the_sweep_ranks_the_tiles_of_both_kernels",
}

# How a command that is shown becomes one that is run: simulated recordings for those that must be downloaded.
STAND_INS = (
    (r"--dataset (cardiology|chapman|physionet2017|ptbxl)\b", "--dataset demo -o patients=12"),
    (r"data (prepare|verify|show) (chapman|ptbxl)\b", r"data \1 demo -o patients=12"),
    (r"(--protocol patient-identification)\b", r"\1 -o patients=60"),  # of 12, too few test patients come twice
    (r" --root (~|\$CLOCS_DATA)/\S+", ""),
    (r"--record 00001\b", "--record patient-00001-visit-1"),
)
SMALLER = (
    (r"--check gradient\b", "--check shape"),  # the plugin that the pages write has no network
    (r"^(tensorboard .*)$", r"\1 --inspect"),  # prints what it would serve
    # Twelve patients, one epoch, little of everything.
    (r"^(clocs run (?!.*(--resume|--config|--help|arrays|ward)).*)$", r"\1 -o patients=12"),
    (r"^(clocs run (?!.*(--resume|--help)).*)$", r"\1 --epochs 1 -o resamples=10 --device cpu --workers 1"),
    (r"^(clocs run (?!.*(--resume|--help|--config|--batch-size)).*)$", r"\1 --batch-size 16"),
    (r"^(clocs run .*)--seeds 5\b", r"\1--seeds 2"),
    (r"^(clocs evaluate .*)$", r"\1 -o resamples=10 --device cpu --workers 1"),
    (r"^(clocs evaluate .*finetune.*)$", r"\1 --epochs 1"),
)

# Of what stands in sentences: names of commands, and parts of one that the sentence is about.
_COMMANDS = (
    "grid|list|page|status|compare|doctor|embed|evaluate|export|new|prepare|predict|run|show|similar|tensorboard|verify"
)
_NAMES = rf"clocs( (data|grid|plugins))?( ({_COMMANDS}))?"
_PARTS = (
    "clocs evaluate --protocol finetune",
    "clocs evaluate --random",
    "clocs grid page runs/paper",  # of the grid that the page has listed before
    "clocs grid run FILE_OR_NAME",
    "clocs grid run equal-exposure",  # needs PTB-XL; test_grid_gates.py runs every table in miniature
    "clocs run --dry-run",
    "clocs run --gpus 8",
    "clocs run --profile",
    "clocs run --seeds 5",
)

_STAND_INS = "chapman=demo,physionet2020=demo,cardiology=demo,physionet2017=demo"
_GRID = r"^(python benchmarks/run_all\.py (?!--(list|check))"
_FEW = " ".join(
    f"--{step}-option {one}" for step in ("pretrain", "evaluate") for one in ("patients=12", "resamples=10")
)

# The same for benchmarks: a CPU for a GPU, the first of several values, the first and the last of several methods.
SMALLER_BENCHMARKS = (
    (r"--device cuda\b", "--device cpu"),
    (r"--(seeds|jobs) \d+", r"--\1 1"),
    (r"--splits \d+", "--splits 2"),
    (r"--embedding-dims \S+", "--embedding-dims 32"),
    (r"--label-fractions (\S+?),\S+", r"--label-fractions \1"),
    (r"--methods ([^\s,]+),(?:\S*,)?([^\s,]+)", r"--methods \1,\2"),
    (r"--datasets (\w+)=ptbxl,(\w+)=ptbxl", r"--datasets \1=demo,\2=demo"),
    (r"--datasets ptbxl --downstream \S+", "--datasets demo --downstream demo --protocols finetune"),
    (r"--downstream cardiology\S*", "--downstream demo"),
    (_GRID + r"(?!.*--datasets|.*random).*)$", rf"\1 --datasets {_STAND_INS}"),
    (_GRID + r"(?!.*--methods).*)$", r"\1 --methods cmsc"),
    (_GRID + r"(?!.*--seeds).*)$", r"\1 --seeds 1"),
    (
        _GRID + r".*)$",
        rf"\1 {_FEW} --pretrain-option epochs=1 --pretrain-option batch_size=16 --finetune-option epochs=1",
    ),
    (_GRID + r".*)$", r"\1 --resamples 20 --device cpu"),
    (r"--datasets ptbxl --root \S+", "--datasets demo"),
    (r"--datasets ptbxl --leads", "--datasets demo --leads"),
    (r"^(.*/shared_machine\.py) .*(--json .*)$", r"\1 --rounds 1 --epochs 1 --busy 0 \2"),
    (r"^(.*/end_to_end\.py) --old \w+ (.*)$", r"\1 \2 --only run --smoke"),  # a checkout may lack the old commit
    (r"^(.*/end_to_end\.py --only (?:prepare|table) .*)$", r"\1 --smoke"),
    (r"^(.*/scale_model\.py) (?:.*)(--json .*)$", r"\1 --encoder cnn --batch 8 --rounds 2 \2"),
    (r"^(.*/ranks_step\.py .*)$", r"\1 --batch 4 --steps 1 --rounds 2"),
    (r"^(.*/own_rows\.py .*)$", r"\1 --device cpu --impl chunked --batches 32 --processes 2"),
    (r"^(.*/throughput\.py .*)$", r"\1 --methods supervised --encoders vit1d --steps 1 --repeats 2 --batch 4"),
    (r"^(.*/bootstrap\.py) --before \S+ (.*)$", r"\1 \2 --rounds 2 --draws 20"),  # a checkout may lack the old commit
    (r"^(.*/memory\.py .*)$", r"\1 --patients 40"),
    (r"^(.*/verification\.py .*)$", r"\1 --recordings 20 --megabytes 1"),
    (r"^(.*/step\.py .*)$", r"\1 --repeats 2 --steps 1 --epoch 256"),
    (r"^(.*/patient_nce\.py .*)$", r"\1 --device cpu --impl chunked --sizes 64,16,2 --batches 32"),
)


def shown() -> dict[str, set[str]]:
    """Return every command in a block of a page, with the names of the pages. Omits the output below a command."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        for block in FENCE.finditer(page.read_text(encoding="utf-8")):
            for line in block["body"].splitlines():
                command = _command(block["kind"], line)
                if command:
                    found.setdefault(command, set()).add(page.name)
    return found


def mentioned() -> dict[str, set[str]]:
    """Return every `clocs …` in the text of a page, with the names of the pages."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        for command in re.findall(r"(?<!`)`(clocs\s[^`]+)`(?!`)", prose):
            found.setdefault(" ".join(command.split()), set()).add(page.name)
    return found


def in_order(page: Path) -> list[str]:
    """Return the commands in the blocks of a page, in their order."""
    blocks = FENCE.finditer(page.read_text(encoding="utf-8"))
    lines = (_command(block["kind"], line) for block in blocks for line in block["body"].splitlines())
    return [line for line in lines if line]


def block_with(page: Path, command: str) -> list[str]:
    """Return the commands of the first block of a page that contains this command."""
    blocks = (
        [_command(one["kind"], line) for line in one["body"].splitlines()]
        for one in FENCE.finditer(page.read_text(encoding="utf-8"))
    )
    return next([line for line in block if line] for block in blocks if command in block)


def told() -> list[str]:
    """Return complete commands of `mentioned`: with arguments, without placeholders, and not in a block too."""
    found = set(mentioned()) - set(shown()) - set(_PARTS)
    return sorted(one for one in found if not re.search(r"\b[A-Z]{3,}\b", one) and not re.fullmatch(_NAMES, one))


def smaller(command: str, stand_ins: bool = True) -> str:
    """Return the smaller command that is run instead. stand_ins: on simulated recordings."""
    usual = (*(STAND_INS if stand_ins else ()), *SMALLER)
    for pattern, replacement in SMALLER_BENCHMARKS if command.startswith("python benchmarks/") else usual:
        command = re.sub(pattern, replacement, command)
    return command


def write_files(page: Path, folder: Path) -> set[str]:
    """Write the blocks that name a file; return the names."""
    blocks = FENCE.finditer(page.read_text(encoding="utf-8"))
    found = {block["file"]: block["body"] for block in blocks if block["file"]}
    for name, body in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body, encoding="utf-8")
    return set(found)


def _command(kind: str, line: str) -> str:
    if kind == "console":
        return line.removeprefix("$ ").strip() if line.startswith("$ ") else ""
    if kind in SHELLS:
        return line.partition("  #")[0].strip()
    return line if not kind and re.match(r"(clocs|python|pip|make|tensorboard) ", line) else ""
