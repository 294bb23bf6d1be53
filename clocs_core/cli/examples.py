"""The examples below the help of every command. Words in capitals stand for names that `clocs plugins` lists."""

from __future__ import annotations

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "completion": ("clocs completion bash > ~/.clocs-complete.bash", "clocs completion zsh", "clocs completion fish"),
    "doctor": ("clocs doctor", "clocs doctor --json"),
    "run": (
        "clocs run --method METHOD --dataset DATASET --out runs/first",
        "clocs run --method METHOD --dataset DATASET --root FILE --sampling-rate 125 --patients ids.csv",
        "clocs run --method METHOD --dataset DATASET --epochs 50 --batch-size 64 --seed 1",
        "clocs run --method METHOD --dataset DATASET --seeds 5 --out runs/five",
        "clocs run --method METHOD --dataset DATASET --dry-run",
        "clocs run --resume runs/first",
    ),
    "evaluate": (
        "clocs evaluate runs/first --protocol linear",
        "clocs evaluate runs/first --dataset DATASET --protocol finetune --label-fraction 0.25,1",
    ),
    "predict": (
        "clocs predict runs/first --out p.csv",
        "clocs predict runs/first --input my_ecg.csv --sampling-rate 400 --channels II",
    ),
    "compare": ("clocs compare runs/first runs/second", "clocs compare runs/first runs/second --html page.html"),
    "grid list": ("clocs grid list",),
    "grid run": (
        "clocs grid run mine.toml --jobs 4",
        "clocs grid run mine.toml --axis seed=0,1,2 --dry-run",
        "clocs grid run NAME --axis dataset=THEIRS=MINE --engine ENGINE --address ADDRESS",
    ),
    "grid status": ("clocs grid status runs/grids/mine",),
    "grid page": ("clocs grid page runs/grids/mine",),
    "grid export": ("clocs grid export runs/grids/mine --csv scores.csv",),
    "data list": ("clocs data list",),
    "data download": ("clocs data download DATASET",),
    "data prepare": (
        "clocs data prepare DATASET --root FOLDER",
        "clocs data prepare DATASET --root FILE --sampling-rate 125 --patients ids.csv",
    ),
    "data verify": ("clocs data verify DATASET --root FOLDER",),
    "data show": ("clocs data show DATASET --out ecg.png", "clocs data show DATASET --record ID --seconds 5"),
    "plugins": ("clocs plugins", "clocs plugins --json"),
    "plugins new": ("clocs plugins new eeg",),
    "plugins test": ("clocs plugins test clocs-plugin-eeg",),
    "verify": ("clocs verify --plugin METHOD",),
    "embed": (
        "clocs embed runs/first --out z.npz",
        "clocs embed runs/first --input my_ecg.csv --sampling-rate 400 --channels II --unit mV --out z.csv",
    ),
    "similar": ("clocs similar runs/first --record ID --neighbours 8 --out page.html",),
    "export": ("clocs export runs/first --sampling-rate 400 --out encoder.onnx",),
}


def add_examples(cli: click.Group) -> None:
    """Set the text below the help of each command that has examples."""
    for path, lines in EXAMPLES.items():
        command: click.Command = cli
        for word in path.split():
            assert isinstance(command, click.Group)
            command = command.commands[word]
        command.epilog = "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])  # \b keeps the lines
