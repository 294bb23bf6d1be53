"""The command line of a grid: every flag, and the records that they become."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

import attrs

from clocs_core.errors import SettingsError
from clocs_core.grids.axes import Repeats
from clocs_core.grids.choose import Axes
from clocs_core.grids.executor import OWN_COMMAND
from clocs_core.grids.machine import runs_per_job
from clocs_core.grids.measure import Measure

Mode = Literal["tables", "list", "pages", "smoke", "check", "record-reference"]
Extent = Literal["run", "dry-run", "report-only"]

T = TypeVar("T")

_MODES: dict[Mode, str] = {
    "list": "every table and figure of the paper, the data each needs, and what is on this machine",
    "pages": "pages of all tables from the committed scores, and ten sentences on the paper's claims; runs nothing",
    "smoke": "the whole grid in miniature on simulated ECGs, in minutes",
    "check": "fail where a built-in method's score leaves the interval of the recorded reference run",
    "record-reference": "run what --check runs, and keep the scores as the reference",
}

_EXTENTS: dict[Extent, str] = {
    "dry-run": "list the cells and say how long they will take",
    "report-only": "run nothing; tables and page from the folders as they stand",
}

_AXES = {
    "--methods": "methods, such as cmsc,simclr; byol:loss=cosine has an option",
    "--datasets": "data sets to pre-train on; chapman=ptbxl lets one stand in for one of the paper's",
    "--downstream": "data sets to fine-tune on; the pre-training set itself is evaluated linearly",
    "--protocols": "linear, finetune or both, whatever the downstream set",
    "--leads": "presets of the data set, such as 4,12, or names, such as II+V2",
    "--embedding-dims": "dimensions E of a representation",
    "--label-fractions": "shares F of the labels of the downstream set",
    "--exposure": "how much methods see: own (default), or the same for all, steps=10000 or instances=2500000",
}

_OPTIONS = {
    "--pretrain-option": "every `clocs run`",
    "--evaluate-option": "every `clocs evaluate`",
    "--finetune-option": "those that fine-tune",
}


@attrs.frozen(kw_only=True)
class Request:
    """The request of a user. seeds_given: whether the number of seeds was given."""

    mode: Mode
    extent: Extent
    tables: tuple[str, ...]
    axes: Axes
    repeats: Repeats
    seeds_given: bool
    measure: Measure
    out: Path
    jobs: int
    runs_per_job: int
    threads: int
    device: str
    workers: int
    data_root: str | None
    roots: dict[str, str]
    command: tuple[str, ...]


def build_parser(description: str) -> argparse.ArgumentParser:
    """Build the parser of every flag, with its help."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help="tables or figures of the paper, by name: see --list"
    )
    _add_choice(parser.add_argument_group("instead of tables"), "mode", _MODES, "tables")
    _add_choice(parser.add_argument_group("instead of running what is missing"), "extent", _EXTENTS, "run")
    _add_axes(parser.add_argument_group("the grid; with tables, each flag replaces that axis of them"))
    _add_measure(parser.add_argument_group("what is shown"))
    _add_place(parser.add_argument_group("where and how"))
    return parser


def _add_choice(group: argparse._ArgumentGroup, name: str, choices: Mapping[T, str], otherwise: str) -> None:
    one_of = group.add_mutually_exclusive_group()
    for choice, text in choices.items():
        one_of.add_argument(f"--{choice}", dest=name, action="store_const", const=choice, default=otherwise, help=text)


def _add_axes(group: argparse._ArgumentGroup) -> None:
    for flag, text in _AXES.items():
        group.add_argument(flag, metavar="A,B", default="", help=text)
    group.add_argument(
        "--seeds", type=_count, metavar="N", help="seeds 0 to N-1 of every cell (default 5, the paper's)"
    )
    group.add_argument("--splits", type=_count, default=1, metavar="N", help="splits 0 to N-1 of patients (default 1)")
    group.add_argument(
        "--part", choices=("validation", "test"), help="part of the patients that is scored; choose on validation"
    )
    for flag, step in _OPTIONS.items():
        text = f"an option of {step}; may be repeated"
        group.add_argument(flag, action="append", default=[], metavar="NAME=VALUE", help=text)


def _add_measure(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--metric", default="auroc", help="a metric of `clocs plugins` (default auroc, the paper's)")
    group.add_argument("--level", choices=("frame", "record"), default="frame", help="scores of frames or recordings")
    text = "bootstrap samples of patients (default 1000), of which intervals and differences are made"
    group.add_argument("--resamples", type=_count, default=1000, metavar="N", help=text)


def _add_place(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--out",
        metavar="FOLDER",
        help="holds runs, evaluations, tables and page (default runs/grid; --pages: docs/paper)",
    )
    text = "jobs at once; small models share a GPU (default 1; --smoke, --check: one per core)"
    group.add_argument("--jobs", type=_count, metavar="N", help=text)
    text = (
        "pre-trainings of a data set that a job makes together, on one copy of the frames (default 5 on a GPU, else 1)"
    )
    group.add_argument("--runs-per-job", type=_count, metavar="N", help=text)
    group.add_argument("--threads", type=_count, metavar="N", help="threads of a job (default: cores divided by jobs)")
    group.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="device of the jobs")
    group.add_argument("--workers", type=_count, default=1, metavar="N", help="processes of a job that read recordings")
    group.add_argument("--data-root", metavar="FOLDER", help="holds one folder per data set (default: CLOCS_DATA)")
    text = "a data set's own folder; may be repeated"
    group.add_argument("--root", action="append", default=[], metavar="NAME=PATH", help=text)
    text = "what runs clocs, in one word or quoted (default: this Python with -m clocs_core)"
    group.add_argument("--command", metavar="WORDS", help=text)


def read_request(given: argparse.Namespace, now: datetime) -> Request:
    """Turn the flags into a request. Raises SettingsError for a value that makes no sense."""
    seeds, cores = 5 if given.seeds is None else given.seeds, os.cpu_count() or 1
    jobs = given.jobs or (1 if given.mode == "tables" else cores)
    return Request(
        mode=given.mode,
        extent=given.extent,
        tables=tuple(given.tables),
        axes=Axes(
            methods=_listed(given.methods, str, "--methods"),
            datasets=_listed(given.datasets, str, "--datasets"),
            downstream=_listed(given.downstream, str, "--downstream"),
            protocols=_listed(given.protocols, str, "--protocols"),
            leads=_listed(given.leads, str, "--leads"),
            embedding_dims=_listed(given.embedding_dims, int, "--embedding-dims"),
            label_fractions=_listed(given.label_fractions, float, "--label-fractions"),
            part=given.part,
            exposures=_listed(given.exposure, str, "--exposure"),
        ),
        repeats=Repeats(
            seeds=tuple(range(seeds)),
            splits=tuple(range(given.splits)),
            pretrain_options=_assignments(given.pretrain_option, "--pretrain-option"),
            evaluate_options=_assignments(given.evaluate_option, "--evaluate-option"),
            finetune_options=_assignments(given.finetune_option, "--finetune-option"),
        ),
        seeds_given=given.seeds is not None,
        measure=Measure(given.metric, given.level, given.resamples),
        out=Path(given.out or _folder(given.mode, now)).absolute(),
        jobs=jobs,
        runs_per_job=given.runs_per_job or runs_per_job(given.device),
        threads=given.threads or max(1, cores // jobs),
        device=given.device,
        workers=given.workers,
        data_root=str(Path(given.data_root).absolute()) if given.data_root else None,
        roots=_roots(given.root),
        command=_words(given.command) if given.command else OWN_COMMAND,
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _folder(mode: Mode, now: datetime) -> str:
    """Choose the folder of a grid. The gates test the code as it is now, so each of their calls has a new folder."""
    if mode == "tables":
        return "runs/grid"
    if mode == "pages":
        return str(Path(__file__).parents[2] / "docs" / "paper")
    return f"runs/grid-{'smoke' if mode == 'smoke' else 'check'}-{now:%Y%m%d-%H%M%S}"


def _listed(text: str, kind: Callable[[str], T], flag: str) -> tuple[T, ...]:
    try:
        return tuple(dict.fromkeys(kind(word.strip()) for word in text.split(",") if word.strip()))
    except ValueError:
        raise SettingsError(f"{flag} takes numbers with commas between them, got {text!r}.") from None


def _assignments(given: Sequence[str], flag: str) -> tuple[str, ...]:
    for text in given:
        name, equals, _ = text.partition("=")
        if not (name and equals):
            raise SettingsError(f"{flag} takes NAME=VALUE, such as epochs=10, got {text!r}.")
    return tuple(given)


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as problem:
        raise SettingsError(f"--command takes words as a shell does, got {command!r}: {problem}.") from None


def _roots(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, equals, path in pairs:
        if not (name and equals and path):
            raise SettingsError(f"--root takes NAME=PATH, such as ptbxl=/data/ptbxl, got {name + equals + path!r}.")
    return {name: str(Path(path).expanduser().absolute()) for name, _, path in pairs}
