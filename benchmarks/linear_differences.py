"""List how far the scores of linear evaluation are from those by scikit-learn's solver, on the same features.

    python benchmarks/linear_differences.py --data DATA --out benchmarks/results/linear_differences.json

DATA has the folders `cardiology` and `ptbxl`. Each experiment pre-trains an encoder for a few epochs; every
classifier of its linear evaluation is then fitted by our solver, by scikit-learn's with its default tolerance (which
was used before) and by two solvers of scikit-learn that run to convergence.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import torch
from command_line import command_line
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from clocs_core.artifacts.predictions import Predictions
from clocs_core.cli import main as clocs
from clocs_core.contracts.records import Task
from clocs_core.evaluation import classifiers
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import by_record, linear
from clocs_core.grids.machine import describe_machine
from clocs_plugins.classification.decisions import calibration, macro_f1
from clocs_plugins.classification.metrics import macro_auprc, macro_auroc

Floats = NDArray[np.float64]

EXPERIMENTS = {
    "demo": "run --plugin cmsc --dataset demo -o patients=240 --epochs 3 --label-fraction 0.25,1",
    "cardiology": "run --plugin simclr --dataset cardiology --root {data}/cardiology --epochs 1 --label-fraction 0.5,1",
    "ptbxl rhythm": "run --plugin cmsmlc --dataset ptbxl --root {data}/ptbxl --epochs 1 --label-fraction 0.25,0.5 "
    "-o instances=512 --leads II,V2",
    "ptbxl superclass (any-of)": "run --plugin cmsc --dataset ptbxl --root {data}/ptbxl --task superclass --epochs 1 "
    "--label-fraction 0.25,0.5 -o instances=512 --leads II",
}
METRICS = {"auroc": macro_auroc, "auprc": macro_auprc, "f1": macro_f1, "calibration": calibration}
SOLVERS: dict[str, dict[str, Any]] = {
    "default": {"max_iter": 1000},
    "converged": {"tol": 1e-12, "max_iter": 100_000},
    "converged, by Newton's method": {"solver": "newton-cholesky", "tol": 1e-14, "max_iter": 1000},
}


@attrs.frozen(eq=False)
class Problem:
    """The features of one classifier."""

    train: Features
    test: Features
    task: Task


def main() -> int:
    """Run the experiments, compare the solvers, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the folders of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="the .json file to write")
    parser.add_argument("--only", choices=list(EXPERIMENTS), help="one of the experiments")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name, words in EXPERIMENTS.items():
        if given.only in (None, name):
            for number, problem in enumerate(record(words.format(data=given.data).split())):
                rows.append({"experiment": name, "classifier": number, **compare(problem)})
                print(json.dumps(rows[-1], indent=1), flush=True)
    found = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "versions": {name: version(name) for name in ("clocs", "torch", "scikit-learn")},
        "experiments": EXPERIMENTS,
        "largest": summarise(rows),
        "classifiers": rows,
    }
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["largest"], indent=1))
    return 0


def record(command: list[str]) -> list[Problem]:
    """Run a command of clocs and return the features of every linear classifier that it fits."""
    problems: list[Problem] = []
    with remembering(problems), tempfile.TemporaryDirectory() as folder:
        places = ["--data-root", f"{folder}/data", "--out", f"{folder}/run", "--device", "cpu", "-o", "resamples=2"]
        if clocs([*command, *places]) != 0:
            raise SystemExit(f"clocs {' '.join(command)} failed")
    if not problems:
        raise SystemExit(f"clocs {' '.join(command)} fitted no linear classifier")
    return problems


@contextmanager
def remembering(problems: list[Problem]) -> Iterator[None]:
    """Keep the arguments of every linear classifier that is fitted inside."""

    def keep(train: Features, test: Features, task: Task, *more: Any, **named: Any) -> Predictions:
        problems.append(Problem(train, test, task))
        return linear(train, test, task, *more, **named)

    keeping = {kind: (keep, best) for kind, (fit, best) in classifiers.MODELS.items() if fit is linear}
    with patch.dict(classifiers.MODELS, keeping):
        yield


def compare(problem: Problem, solvers: dict[str, dict[str, Any]] = SOLVERS) -> dict[str, Any]:
    """Fit one classifier by our solver and by others; return scores, and distances of ours from each of the others."""
    began = time.perf_counter()
    ours = linear(problem.train, problem.test, problem.task)
    seconds = {"ours": time.perf_counter() - began}
    theirs = {}
    for name, how in solvers.items():
        began = time.perf_counter()
        theirs[name] = attrs.evolve(ours, probability=by_scikit_learn(problem, how))
        seconds[name] = time.perf_counter() - began
    scores = {name: score(rows, problem.task) for name, rows in {"ours": ours, **theirs}.items()}
    return {
        "rows": len(problem.train),
        "features": problem.train.embedding.shape[1],
        "classes": len(problem.task.classes),
        "kind": problem.task.kind,
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "scores": scores,
        "difference": {
            name: {key: scores["ours"][key] - value for key, value in scores[name].items()} for name in theirs
        },
        "largest difference of a probability": {
            name: float(np.abs(ours.probability - rows.probability).max()) for name, rows in theirs.items()
        },
    }


def by_scikit_learn(problem: Problem, how: dict[str, Any]) -> Floats:
    """Predict the test rows as `linear` does, by scikit-learn."""
    train, label = problem.train, problem.train.label
    mean, sd = train.embedding.mean(0, dtype=np.float64), train.embedding.std(0, dtype=np.float64)
    sd[sd == 0] = 1.0
    x, x_test = (train.embedding - mean) / sd, (problem.test.embedding - mean) / sd
    probability = np.zeros((len(x_test), len(problem.task.classes)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it cannot get below its own rounding
        if label.ndim == 1:
            model = LogisticRegression(**how).fit(x, label)
            probability[:, model.classes_] = model.predict_proba(x_test)
            return probability
        for column in range(label.shape[1]):
            if label[:, column].min() == label[:, column].max():
                probability[:, column] = label[0, column]
                continue
            probability[:, column] = LogisticRegression(**how).fit(x, label[:, column]).predict_proba(x_test)[:, 1]
    return probability


def score(rows: Predictions, task: Task) -> dict[str, float]:
    """Score frames, and recordings where they have a label."""
    levels = {"frame": rows} | ({"record": by_record(rows)} if task.per == "record" else {})
    return {
        f"{metric} of {level}s": function(one.probability, one.label, np.ones(len(one.label)))
        for metric, function in METRICS.items()
        for level, one in levels.items()
    }


def summarise(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Find the largest differences over all classifiers, by solver and score."""
    return {
        name: {
            "a probability": max(row["largest difference of a probability"][name] for row in rows),
            **{
                key: max(abs(row["difference"][name].get(key, 0.0)) for row in rows)
                for key in sorted({key for row in rows for key in row["difference"][name]})
            },
        }
        for name in SOLVERS
    }


if __name__ == "__main__":
    raise SystemExit(main())
