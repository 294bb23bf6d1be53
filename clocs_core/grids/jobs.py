"""Turn cells into jobs: the command lines of `clocs`, and the folders that they fill."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from clocs_core.contracts.jobs import Job
from clocs_core.grids.cells import VERSION, GridCell, Pretraining, digest


@attrs.frozen(kw_only=True)
class Place:
    """The folders and the devices of this machine. None of them changes a score.

    out: the folder of the grid. roots: a data set's own folder, by its name. presets: the leads that a data set knows
    by a short name, by data set; one that does not know those of a cell is read with its own. runs_per_job:
    pre-trainings, or evaluations, of a data set that one process makes. pictures: whether the pages of runs and
    evaluations have them.
    """

    out: Path
    device: str = "auto"
    workers: int = 1
    data_root: str | None = None
    roots: Mapping[str, str] = attrs.field(factory=dict)
    presets: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    runs_per_job: int = 1
    pictures: bool = False

    def flags(self, dataset: str) -> tuple[str, ...]:
        """Give the flags that every command has."""
        root = ("--root", self.roots[dataset]) if dataset in self.roots else ()
        above = ("--data-root", self.data_root) if self.data_root else ()
        drawn = ("--pictures", str(self.pictures).lower())
        return (*root, *above, "--device", self.device, "--workers", str(self.workers), *drawn)

    def leads(self, dataset: str, leads: str) -> tuple[str, ...]:
        """Give the flag for the leads, if the data set has such leads: one with a single lead has no preset of four."""
        is_preset = leads.isdecimal()
        known = not is_preset or leads in self.presets.get(dataset, frozenset())
        return ("--leads", leads) if leads and known else ()


def pretraining_folder(run: Pretraining, out: Path) -> Path:
    """Return the folder of a pre-training."""
    return out / "pretrained" / run.name


def evaluation_folder(cell: GridCell, shares: str, out: Path) -> Path:
    """Return the folder of the evaluation that scores a cell at these F, given as "0.5+1"."""
    fractions = shares.replace("+", ",")
    mark = hashlib.sha256(f"{digest(cell.evaluation)} {fractions}".encode()).hexdigest()[:8]
    words = f"{cell.downstream}-{cell.protocol}-{cell.part}-F{shares}"
    return out / "evaluated" / cell.pretraining.name / f"{words}-{mark}"


def pretraining_job(run: Pretraining, place: Place) -> Job:
    """Make the job of a pre-training. The run itself scores validation patients only; cells score the test patients."""
    folder = pretraining_folder(run, place.out)
    fresh = (
        *("run", "--plugin", run.method, "--dataset", run.dataset, *place.leads(run.dataset, run.leads)),
        *("--embedding-dim", str(run.embedding_dim), "--seed", str(run.seed), "--split-seed", str(run.split_seed)),
        *("-o", "part=validation", *_assigned(run.options), *place.flags(run.dataset), "--out", str(folder)),
    )
    resume = ("run", "--resume", str(folder), "--workers", str(place.workers))
    return Job(name=run.name, folder=folder, fresh=fresh, resume=resume, group=run.dataset)


def evaluation_job(cells: Sequence[GridCell], place: Place) -> Job:
    """Make the job that scores one encoder on one downstream task at some F. Its command also resumes it.

    Untrained encoders are fine-tuned once for all pre-trainings, in a folder that the evaluations share.
    """
    first, run = cells[0], cells[0].pretraining
    fractions = ",".join(f"{cell.label_fraction:g}" for cell in cells)
    folder = evaluation_folder(first, fractions.replace(",", "+"), place.out)
    command = (
        *("evaluate", *_encoder(run, place), "--dataset", first.downstream),
        *("--protocol", first.protocol, "--label-fraction", fractions, "--part", first.part),
        *place.leads(first.downstream, run.leads),
        *("--seed", str(run.seed), "--split-seed", str(run.split_seed), *_assigned(first.options)),
        *("--controls", str(place.out / "controls" / str(VERSION))),
        *(*place.flags(first.downstream), "--out", str(folder)),
    )
    name = f"{run.name} on {folder.name.rpartition('-')[0]}"
    return Job(name=name, folder=folder, fresh=command, resume=command, group=first.downstream)


def _encoder(run: Pretraining, place: Place) -> tuple[str, ...]:
    """Give the words that name the encoder."""
    if run.trains:
        return (str(pretraining_folder(run, place.out)),)
    return ("--random", "--encoder", run.untrained, "--embedding-dim", str(run.embedding_dim))


def _assigned(options: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for option in options for word in ("-o", option))
