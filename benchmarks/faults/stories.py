"""The commands that are disturbed: runs, a preparation, an evaluation and a grid, each of the smallest useful size.

A story starts from a template that is made once. After it was disturbed, the same command is given again, as a user
would; then its results must equal those of an undisturbed process.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import dropwhile, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs

from clocs_core.contracts.jobs import Job, Outcome
from clocs_core.grids.together import SeveralRuns
from faults.processes import PATIENCE, Work, clocs, run
from faults.ranks import over_two

_DEMO = ("--dataset", "demo", "-o", "patients=12")
_TINY = ("--epochs", "2", "--batch-size", "16", "--resamples", "5", "--embedding-dim", "8", "--device", "cpu")
EVALUATION = "evaluation"
_VARYING = ("command", "date", "seconds", "digest", "root", "data_root")  # differ between two undisturbed runs
Results = dict[str, str]
"""The results of a story by name: digests or texts that no disturbance may change."""


@attrs.frozen
class Story:
    """A command in a folder, begun or resumed by `work`; `results` are read when it has ended well.

    before: work that fills the template.
    """

    name: str
    work: Callable[[Path], Work]
    results: Callable[[Path], Results]
    before: Callable[[Path], Work] | None = None

    def fill(self, folder: Path) -> None:
        """Make the template in a folder."""
        folder.mkdir(parents=True)
        if self.before is not None:
            ended = run(self.before(folder), folder.with_suffix(".before"), seconds=PATIENCE)
            if ended.code:
                raise RuntimeError(f"the template of {self.name} failed: {ended.text}")


def copy_template(template: Path, folder: Path) -> None:
    """Start a trial from a template."""
    shutil.copytree(template, folder)


def run_work(folder: Path) -> Work:
    """Begin or resume a run."""
    run_folder, data = folder / "run", folder / "data"
    if (run_folder / "settings.toml").exists():
        return clocs("run", "--resume", str(run_folder), "--workers", "1")
    new = ("run", "--plugin", "cmsc", *_DEMO, *_TINY, "--workers", "1")
    return clocs(*new, "--out", str(run_folder), "--data-root", str(data))


def run_results(folder: Path) -> Results:
    """Read the results of a run: weights, scores, epochs, curves, frames, and the absence of remains."""
    return {
        **_files(folder / "run", ("split.json", "predictions.npz")),
        "weights": _tensors(folder / "run/encoder.safetensors"),
        "report": _without(folder / "run/report.json", *_VARYING),
        "epochs": json.dumps(
            [_drop(json.loads(line), *_VARYING) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
        ),
        "tensorboard": json.dumps(_scalars(folder / "run")),
        "page": str((folder / "run/report.html").exists()),
        "remains": _remains(folder),
        **_frames(folder),
    }


def _prepare(folder: Path) -> Work:
    return clocs(
        *("data", "prepare", "demo", "-o", "patients=200", "--workers", "1", "--data-root", str(folder / "data"))
    )


def evaluate_work(folder: Path) -> Work:
    """Begin or resume an evaluation of the run."""
    out = folder / EVALUATION
    given = ("evaluate", str(folder / "run"), "--out", str(out), "--workers", "1")
    tiny = ("--protocol", "finetune", "--epochs", "2", "--label-fraction", "0.5,1", "--resamples", "20")
    return clocs(*given, *tiny, "--data-root", str(folder / "data"))


def evaluate_results(folder: Path) -> Results:
    """Read the results of an evaluation: scores, predictions and classifiers."""
    out = folder / EVALUATION
    classifiers = {
        str(path.relative_to(out)): _tensors(path)
        for path in sorted(out.rglob("*.safetensors"))
        if "checkpoint" not in path.name
    }
    return {
        **_files(out, ("predictions.npz",)),
        "report": _without(out / "report.json", *_VARYING),
        "classifiers": json.dumps(classifiers),
        "remains": _remains(folder),
    }


def _grid(folder: Path) -> Work:
    """Begin or resume a grid. Its jobs are copied from the template, since they have stories of their own."""
    return _run_grid(folder, lambda job: _copy_job(job, folder))


def _grid_before(folder: Path) -> Work:
    def work() -> int:
        from clocs_core.cli import main

        code = _run_grid(folder, lambda job: main(job.command() or ()))()
        (folder / "grid").rename(folder / "done")
        return code

    return work


def _run_grid(folder: Path, do: Callable[[Job], int]) -> Work:
    def work() -> int:
        import run_all

        axes = ("--methods", "cmsc,simclr", "--datasets", "demo", "--seeds", "1", "--leads", "4")
        small = ("--embedding-dims", "8", "--resamples", "5")
        options = ("patients=12", "epochs=2", "batch_size=16", "resamples=5")
        given = [word for option in options for word in ("--pretrain-option", option)]
        evaluation = ("--evaluate-option", "patients=12", "--evaluate-option", "resamples=5")
        place = ("--out", str(folder / "grid"), "--data-root", str(folder / "data"), "--device", "cpu")
        return run_all.main([*axes, *small, *given, *evaluation, *place], lambda request, say: InProcess(do))

    return work


def _copy_job(job: Job, folder: Path) -> int:
    for part in job.parts if isinstance(job, SeveralRuns) else (job,):
        if part.command() is not None:
            aside = part.folder.with_name("copying")
            shutil.rmtree(aside, ignore_errors=True)
            shutil.copytree(folder / "done" / part.folder.relative_to(folder / "grid"), aside)
            aside.rename(part.folder)
    return 0


class InProcess:
    """Runs the jobs of a grid in this process, one after the other, so that its file operations can be chosen."""

    at_once = 1

    def __init__(self, do: Callable[[Job], int]) -> None:
        self._do = do

    def submit(self, job: Job) -> Future[Outcome]:
        """Do a job now, unless it is done."""
        future: Future[Outcome] = Future()
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        code = 0 if job.command() is None else self._do(job)
        future.set_result(Outcome(error="" if code == 0 else f"exit code {code}"))
        return future

    def __enter__(self) -> InProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def _grid_results(folder: Path) -> Results:
    reports = {
        str(path.relative_to(folder)): json.dumps(_drop(json.loads(path.read_text()), *_VARYING)["scores"])
        for path in sorted((folder / "grid").rglob("report.json"))
    }
    lines = (folder / "grid/grid.md").read_text().splitlines()
    table = takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), lines))
    return {"reports": json.dumps(reports), "table": "\n".join(table), "remains": _remains(folder)}


STORIES = (
    Story("run", run_work, run_results),
    Story("prepare", _prepare, lambda folder: {**_frames(folder), "remains": _remains(folder)}),
    Story("evaluate", evaluate_work, evaluate_results, before=run_work),
    Story("run over two, the first", over_two(run_work, rank=0), run_results),
    Story("run over two, the second", over_two(run_work, rank=1), run_results),
    Story("grid", _grid, _grid_results, before=_grid_before),
)


# ------------------------------------------------------------------------------------------------------------- results


def _files(folder: Path, names: Iterable[str]) -> Results:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def _frames(folder: Path) -> Results:
    files = sorted(path for path in (folder / "data").rglob("*.bin") if ".partial" not in path.parent.name)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _tensors(path: Path) -> str:
    from safetensors.numpy import load_file

    digest = hashlib.sha256()
    for name, tensor in sorted(load_file(path).items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode() + tensor.tobytes())
    return digest.hexdigest()


def _without(path: Path, *keys: str) -> str:
    return json.dumps(_drop(json.loads(path.read_text()), *keys), sort_keys=True)


def _drop(found: Any, *keys: str) -> Any:
    """Leave out durations, at any depth: they differ between two undisturbed runs as well."""
    if isinstance(found, dict):
        return {key: _drop(value, *keys) for key, value in found.items() if key not in keys}
    return [_drop(value, *keys) for value in found] if isinstance(found, list) else found


def _scalars(run_folder: Path) -> list[list[Any]]:
    """Read the curves of TensorBoard: each epoch once, and the scores of the end."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run_folder), size_guidance={"scalars": 0})
    found.Reload()
    return [
        [tag, [[one.step, one.value] for one in found.Scalars(tag)]]
        for tag in sorted(found.Tags()["scalars"])
        if "second" not in tag
    ]


def _remains(folder: Path) -> str:
    """List files that a killed process left and nobody removed."""
    left = [path for path in folder.rglob("*") if path.suffix in (".tmp", ".partial")]
    return json.dumps(sorted(str(path.relative_to(folder)) for path in left))
