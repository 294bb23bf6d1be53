"""The commands that README.md and docs/ show, how they are made small enough to run, and those that no test runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>\w*)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
SHELLS = ("bash", "console", "sh", "shell")

# Why a command is parsed, where it can be, but not run by test_doc_commands.py. Each must stand on a page still.
_GRID = "minutes on a GPU with its data; `make smoke` runs every table small"

NOT_RUN = {
    "make demo": "a stage of .ci/run",
    "make test": "a stage of .ci/run",
    "pip install .": "installs; tests/test_packaging.py runs what the wheel installs",
    "python -m venv .venv": "installs",
    "pip install '.[test]'": "installs",
    ". .venv/bin/activate": "only changes the shell",
    "cd clocs-plugin-eeg": "only changes the shell",
    "clocs run --plugin eeg --dataset eeg": "tests/test_scaffold.py runs a plugin of another name",
    "python make_ward_data.py": "tests/test_docs.py runs its page from top to bottom",
    "clocs data download physionet2017": "downloads 1.4 GB; tests of the download use a server of their own",
    "python benchmarks/run_all.py linear-main transfer-main --jobs 8": "hours; `make smoke` runs every table small",
    "python benchmarks/run_all.py linear-main --datasets chapman=ptbxl,physionet2020=ptbxl --seeds 3": "hours",
    "python benchmarks/run_all.py --methods cmsc,simclr --datasets ptbxl --downstream cardiology,physionet2017"
    " --seeds 5 --embedding-dims 32,64,128,256 --label-fractions 0.25,0.5,0.75,1": "days",
    "python benchmarks/run_all.py transfer-4-leads --methods random --downstream cardiology"
    " --embedding-dims 128 --label-fractions 0.25,0.5,0.75,1 --seeds 5 --splits 5 --device cuda --jobs 8"
    " --threads 1 --evaluate-option resamples=20": _GRID,
    "python benchmarks/run_all.py transfer-4-leads --datasets chapman=ptbxl,physionet2020=ptbxl"
    " --downstream cardiology,physionet2017 --methods supervised,mt-ssl,byol,simclr,cmlc,cmsmlc,cmsc"
    " --embedding-dims 128 --label-fractions 0.25,0.5 --seeds 5 --device cuda --jobs 18 --threads 1"
    " --evaluate-option resamples=20": _GRID,
    "python benchmarks/run_all.py transfer-12-leads --datasets chapman=ptbxl,physionet2020=ptbxl"
    " --downstream cardiology,physionet2017 --methods cmsc --embedding-dims 128 --label-fractions 0.25,0.5"
    " --seeds 5 --device cuda --jobs 18 --threads 1 --evaluate-option resamples=20": _GRID,
    "python benchmarks/run_all.py linear-4-leads --datasets chapman=ptbxl,physionet2020=ptbxl --methods"
    " supervised,mt-ssl,byol,simclr,cmlc,cmsmlc,cmsc --embedding-dims 128 --label-fractions 0.25,0.5"
    " --seeds 5 --device cuda --jobs 18 --threads 1 --evaluate-option resamples=20": _GRID,
    "python benchmarks/run_all.py linear-12-leads --datasets chapman=ptbxl,physionet2020=ptbxl --methods"
    " cmsc --embedding-dims 128 --label-fractions 0.25,0.5 --seeds 5 --device cuda --jobs 18 --threads 1"
    " --evaluate-option resamples=20": _GRID,
    "python benchmarks/run_all.py --smoke": "minutes; a stage of .ci/run",
    "python benchmarks/run_all.py --check": "an hour; compares with scores of a full grid",
    "python benchmarks/patient_nce.py --budget 100 --out benchmarks/results/patient_nce.json": "needs a GPU",
    "python benchmarks/patient_nce.py --sweep --out sweep.json": "needs a GPU",
    "python benchmarks/step.py --device cuda --repeats 5 --json benchmarks/results/step.json": "needs a GPU",
    "python benchmarks/kill_and_resume.py --kills 50": "minutes; tests/faults kill and resume a few times",
    "python benchmarks/linear_table.py --dataset ptbxl --root $CLOCS_DATA/ptbxl --leads 4 --fraction 0.5 --seeds 3"
    " --part test --device cuda --jobs 20 --rows mt-ssl byol simclr cmlc cmsmlc cmsc supervised vicreg": "needs a GPU",
    "python benchmarks/linear_table.py --dataset ptbxl --root $CLOCS_DATA/ptbxl --leads II,aVR,aVL,V2 --fraction 0.5"
    " --seeds 3 --part validation --device cuda --jobs 12 --rows cmsc:variant=released cmlc:variant=released"
    " cmsmlc:variant=released simclr:variant=released": "needs a GPU",
}

# How a command that is shown becomes one that is run: simulated recordings for those that must be downloaded.
SMALLER = (
    (r"--dataset (cardiology|chapman|physionet2017|ptbxl)\b", "--dataset demo -o patients=12"),
    (r"data (prepare|verify|show) (chapman|ptbxl)\b", r"data \1 demo -o patients=12"),
    (r" --root (~|\$CLOCS_DATA)/\S+", ""),
    (r"--record 00001\b", "--record patient-00001-visit-1"),
    (r"--check gradient\b", "--check shape"),  # the plugin that the pages write has no network
    (r"^(tensorboard .*)$", r"\1 --inspect"),  # prints what it would serve
    # Twelve patients, one epoch, little of everything.
    (r"^(clocs run (?!.*(--resume|--config|--help|arrays|ward)).*)$", r"\1 -o patients=12"),
    (r"^(clocs run (?!.*(--resume|--help)).*)$", r"\1 --epochs 1 -o resamples=10 --device cpu --workers 1"),
    (r"^(clocs run (?!.*(--resume|--help|--config|--batch-size)).*)$", r"\1 --batch-size 16"),
    (r"^(clocs evaluate .*)$", r"\1 -o resamples=10 --device cpu --workers 1"),
    (r"^(clocs evaluate .*finetune.*)$", r"\1 --epochs 1"),
)


def shown() -> dict[str, set[str]]:
    """Every command in a block of a page, with the names of the pages. Output below a command is left out."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        for block in FENCE.finditer(page.read_text(encoding="utf-8")):
            for line in block["body"].splitlines():
                command = _command(block["kind"], line)
                if command:
                    found.setdefault(command, set()).add(page.name)
    return found


def mentioned() -> dict[str, set[str]]:
    """Every `clocs …` in the text of a page, with the names of the pages."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        for command in re.findall(r"(?<!`)`(clocs\s[^`]+)`(?!`)", prose):
            found.setdefault(" ".join(command.split()), set()).add(page.name)
    return found


def smaller(command: str) -> str:
    """The command that is run instead."""
    for pattern, replacement in SMALLER:
        command = re.sub(pattern, replacement, command)
    return command


def write_files(page: Path, folder: Path) -> set[str]:
    """Write the blocks that name a file; their names."""
    blocks = FENCE.finditer(page.read_text(encoding="utf-8"))
    found = {block["file"]: block["body"] for block in blocks if block["file"]}
    for name, body in found.items():
        (folder / name).write_text(body, encoding="utf-8")
    return set(found)


def _command(kind: str, line: str) -> str:
    if kind == "console":
        return line.removeprefix("$ ").strip() if line.startswith("$ ") else ""
    if kind in SHELLS:
        return line.partition("  #")[0].strip()
    return line if not kind and re.match(r"(clocs|python|pip|make|tensorboard) ", line) else ""
