"""Damage a file that clocs wrote, and give a command that reads it: the same result, or a refusal."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from faults.mutations import mutate
from faults.processes import PATIENCE, Work, clocs, run
from faults.stories import EVALUATION, Results, evaluate_results, evaluate_work, run_results, run_work
from faults.verdicts import Trial, differing, judge_end

if TYPE_CHECKING:
    from clocs_core.train.learner import Learner


@attrs.frozen
class Reading:
    """A command that reads files of clocs: `files` are patterns below the template's folder."""

    name: str
    files: tuple[str, ...]
    work: Callable[[Path], Work]
    results: Callable[[Path], Results]


def fill_template(folder: Path) -> None:
    """Make a finished run, an evaluation with classifiers, and a run that was stopped after its first epoch."""
    folder.mkdir(parents=True)
    for work in (run_work(folder), evaluate_work(folder)):
        ended = run(work, folder.with_suffix(".log"), None, PATIENCE)
        if ended.code:
            raise RuntimeError(f"the template of the damaged files failed: {ended.text}")
    stopped = folder / "stopped"
    stopped.mkdir()
    ended = run(_stop_after_first_epoch(stopped), folder.with_suffix(".log"), None, PATIENCE)
    if not (stopped / "run/checkpoint.safetensors").exists() or (stopped / "run/report.json").exists():
        raise RuntimeError(f"the stopped run of the template failed: {ended.text}")


def _stop_after_first_epoch(folder: Path) -> Work:
    def work() -> int:
        from clocs_core.train.checkpoint import save_checkpoint
        from clocs_core.workflows import saving

        def save_and_stop(learner: Learner, path: Path, log: dict[str, object] | None = None) -> None:
            save_checkpoint(learner, path, log)
            raise KeyboardInterrupt

        vars(saving)["save_checkpoint"] = save_and_stop
        return run_work(folder)()

    return work


def _load_run(folder: Path) -> Work:
    def work() -> int:
        import clocs_core as clocs_api
        from clocs_core.errors import ClocsError

        try:
            found = clocs_api.load_run(folder / "run")
        except ClocsError as problem:
            print(f"Error: {problem}")
            return 2
        assert found.predictions is not None
        digest = hashlib.sha256(repr((found.epochs, found.record)).encode())
        for name, rows in sorted(vars(found.predictions).items() if hasattr(found.predictions, "__dict__") else ()):
            digest.update(f"{name}{rows!r}".encode())
        digest.update(repr(attrs.asdict(found.predictions)).encode())
        (folder / "loaded").write_text(digest.hexdigest())
        return 0

    return work


def _loaded(folder: Path) -> Results:
    return {"loaded": (folder / "loaded").read_text()}


def _embed(folder: Path) -> Work:
    return clocs("embed", str(folder / "run"), "--out", str(folder / "z.npz"), "--data-root", str(folder / "data"))


def _predict(folder: Path) -> Work:
    (classifier,) = sorted((folder / EVALUATION / "classifiers").glob("cmsc-1*.safetensors"))[:1]
    return clocs(
        *("predict", str(classifier), "--out", str(folder / "z.npz"), "--data-root", str(folder / "data"), "--dataset"),
        *("demo", "-o", "patients=12"),
    )


def _written(folder: Path) -> Results:
    import numpy as np

    with np.load(folder / "z.npz", allow_pickle=False) as found:
        arrays = {name: hashlib.sha256(found[name].tobytes()).hexdigest() for name in sorted(found.files)}
    return {"arrays": json.dumps(arrays)}


def _compare(folder: Path) -> Work:
    return clocs("compare", str(folder / "run"), str(folder / EVALUATION), "--json")


def _resume(folder: Path) -> Work:
    return run_work(folder / "stopped")


def _evaluate_again(folder: Path) -> Work:
    """Evaluate the run once more, from frames that are prepared."""
    shutil.rmtree(folder / EVALUATION)
    return evaluate_work(folder)


READINGS = (
    Reading("load_run", ("run/report.json", "run/metrics.jsonl", "run/predictions.npz"), _load_run, _loaded),
    Reading("embed", ("run/encoder.safetensors",), _embed, _written),
    Reading("predict", (f"{EVALUATION}/classifiers/cmsc-1*.safetensors",), _predict, _written),
    Reading(
        "resume",
        tuple(
            f"stopped/run/{name}" for name in ("checkpoint.safetensors", "settings.toml", "split.json", "metrics.jsonl")
        ),
        _resume,
        lambda folder: run_results(folder / "stopped"),
    ),
    Reading("evaluate", ("data/prepared/*/*/*",), _evaluate_again, evaluate_results),
)


def read_damaged(reading: Reading, expected: Results, template: Path, folder: Path, seed: int) -> Trial:
    """Damage one file that a command reads, give the command, and compare its results."""
    rng = random.Random(seed)
    shutil.copytree(template, folder)
    file = rng.choice(sorted(path for pattern in reading.files for path in folder.glob(pattern) if path.is_file()))
    changed, way = mutate(file.read_bytes(), rng)
    file.write_bytes(changed)
    ended = run(reading.work(folder), folder.with_suffix(".log"))
    verdict, detail = judge_end(ended)
    if ended.code == 0 and verdict == "equal":
        detail = differing(reading.results(folder), expected)
        verdict = "difference" if detail else "equal"
    repeat = f"seed {seed}: {way} in {file.relative_to(folder)}"
    subject = f"{reading.name}: {file.name if 'classifiers' not in str(file) else 'classifier'}"
    return Trial("damaged file", subject, repeat, verdict, ended.seconds, ended.memory, detail)
