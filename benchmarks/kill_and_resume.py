"""kill -9 at random moments, resume, compare: does a killed run end exactly as an uninterrupted one does?

    python benchmarks/kill_and_resume.py --kills 50

Each trial starts a short run in a folder and a data root of its own, kills it at a random moment, checks that what
it left can be read, goes on with `clocs run --resume` (or starts again where there is no run folder yet), kills that
too, and so on; in the end the weights, the scores and the prepared frames must equal, byte for byte, those of a run
that nobody killed. Runs are forked from a process that has imported everything and computed nothing, so that a trial
spends its time in the run and not in imports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import attrs

TRAINING = ("--epochs", "60", "-o", "patience=100", "-o", "patients=24")  # most of the time is training and evaluation
PREPARING = ("--epochs", "1", "-o", "patients=400")  # most of the time is preparation
COMMON = ("--plugin", "cmsc", "--dataset", "demo", "--batch-size", "32", "-o", "resamples=20", "--workers", "1")


@attrs.frozen
class Outcome:
    """What a finished run leaves that must not depend on its history."""

    weights: str
    frames: str
    split: str
    scores: str
    epochs: tuple[int, ...]


@attrs.frozen
class Tally:
    """How many kills fell into each stage of a run."""

    kills: int
    during_preparation: int
    during_training: int
    during_evaluation: int
    after_the_end: int


def main() -> int:
    """Run trials and print how many kills fell where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tally = kill_and_resume(Path(scratch), given.kills, given.seed, print)
    print(json.dumps(attrs.asdict(tally)))
    return 0


def kill_and_resume(scratch: Path, kills: int, seed: int, say: object = lambda text: None) -> Tally:
    """Run trials until `kills` processes were killed. Raises AssertionError at the first difference."""
    assert callable(say)
    import_everything()
    rng = random.Random(seed)
    seen = {"preparation": 0, "training": 0, "evaluation": 0, "the end": 0}
    references = {}
    for name, extra in (("training", TRAINING), ("preparing", PREPARING)):
        began = time.monotonic()
        finish(start(scratch / f"{name}-reference", extra))
        references[name] = (outcome(scratch / f"{name}-reference"), time.monotonic() - began)
        say(f"{name}: {references[name][1]:.1f} s uninterrupted")
    trial = 0
    while sum(seen.values()) < kills:
        trial += 1
        name, extra = ("training", TRAINING) if trial % 2 else ("preparing", PREPARING)
        expected, seconds = references[name]
        folder = scratch / f"{name}-{trial}"
        stages = one_trial(folder, extra, seconds, rng, at_most=kills - sum(seen.values()))
        for stage in stages:
            seen[stage] += 1
        found = outcome(folder)
        assert found == expected, f"trial {trial} ({name}), killed in {stages}: {found} differs from {expected}"
        say(f"trial {trial} ({name}): killed in {', '.join(stages) or 'nothing'}; equal")
    return Tally(sum(seen.values()), seen["preparation"], seen["training"], seen["evaluation"], seen["the end"])


def one_trial(folder: Path, extra: tuple[str, ...], seconds: float, rng: random.Random, at_most: int) -> list[str]:
    """Kill up to three times, then let it finish. Returns the stages in which it was killed."""
    stages: list[str] = []
    for _ in range(min(3, at_most)):
        child = start(folder, extra)
        # A run that goes on is nearer to its end, so later kills come sooner: all stages get their share.
        time.sleep(rng.uniform(0, seconds * 0.6 ** len(stages)))
        if os.waitpid(child, os.WNOHANG)[0]:  # it was quicker
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        stages.append(stage_of(folder))
        refuse_broken(folder)
    finish(start(folder, extra))
    return stages


def start(folder: Path, extra: tuple[str, ...]) -> int:
    """Fork a process that starts or resumes the run in this folder."""
    run = folder / "run"
    resume = (run / "settings.toml").exists()
    new = (*COMMON, *extra, "--out", str(run), "--data-root", str(folder / "data"))
    arguments = ["run", "--resume", str(run), "--workers", "1"] if resume else ["run", *new]
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        folder.mkdir(exist_ok=True)
        with open(folder / "log", "a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        from clocs_core.cli import main as clocs

        code = clocs(arguments)
    finally:
        os._exit(code)


def finish(child: int) -> None:
    """Wait for a run. Raises AssertionError where it failed."""
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "a run that nobody killed failed"


def stage_of(folder: Path) -> str:
    """Say in which stage a run was killed, by the files that it left."""
    run = folder / "run"
    if (run / "report.json").exists():
        return "the end"
    if (run / "encoder.safetensors").exists():
        return "evaluation"
    return "training" if (run / "settings.toml").exists() else "preparation"


def refuse_broken(folder: Path) -> None:
    """Check that every file with its final name can be read after a kill."""
    from clocs_core.artifacts.run_folder import open_run_folder
    from clocs_core.artifacts.tensors import read_tensors

    run = folder / "run"
    if (run / "settings.toml").exists():  # before, the folder holds nothing but a lock
        open_run_folder(run)
    for name in ("checkpoint.safetensors", "encoder.safetensors"):
        if (run / name).exists():
            read_tensors(run / name)
    for name in ("split.json", "report.json"):
        if (run / name).exists():
            json.loads((run / name).read_text())
    for manifest in folder.glob("data/prepared/demo/*/manifest.json"):
        if not manifest.parent.name.endswith(".partial"):
            check_frames(manifest.parent)


def check_frames(prepared: Path) -> None:
    """Check the hashes of prepared frames."""
    from clocs_core.data.prepared import open_prepared, verify

    verify(open_prepared(prepared.parent, prepared.name))


def outcome(folder: Path) -> Outcome:
    """Read what a finished run left."""
    run = folder / "run"
    (frames,) = folder.glob("data/prepared/demo/*/frames.bin")
    from safetensors.numpy import load_file

    weights = hashlib.sha256()
    for name, tensor in sorted(load_file(run / "encoder.safetensors").items()):
        weights.update(name.encode() + tensor.tobytes())
    report = json.loads((run / "report.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return Outcome(
        weights=weights.hexdigest(),
        frames=hashlib.sha256(frames.read_bytes()).hexdigest(),
        split=(run / "split.json").read_text(),
        scores=json.dumps([report["scores"], report["comparisons"], report["best_epoch"], report["epochs_run"]]),
        epochs=tuple(line["epoch"] for line in lines),
    )


def import_everything() -> None:
    """Import what a run imports, and compute nothing: a fork must not inherit the threads of a computation."""
    import scipy.signal  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    import tensorboard.compat.proto.summary_pb2  # noqa: F401

    import clocs_core.cli
    import clocs_core.workflows.pretrain  # noqa: F401


if __name__ == "__main__":
    sys.exit(main())
