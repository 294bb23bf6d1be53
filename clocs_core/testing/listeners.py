"""Rules for listeners and sections of reports, tried on a made-up run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch

from clocs_core.contracts.events import (
    EmbeddingMap,
    EpochDone,
    EvaluationDone,
    Health,
    Listener,
    RunDone,
    RunStarted,
    RunStopped,
)
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import (
    ReportSection,
    Tracker,
)
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.contracts.sections import Findings
from clocs_core.report.sections import make_section
from clocs_core.testing.checks import Check, expect, label_of, make_checks

_ROWS = 12


@attrs.frozen
class _Case:
    offer: Any
    options: Any


def checks_of_tracker(offer: Tracker, options: Any) -> list[Check]:
    """Return the checks of a listener."""
    return make_checks(label_of(offer), (_listens, _hears), _Case(offer, options))


def checks_of_section(offer: ReportSection, options: Any) -> list[Check]:
    """Return the checks of a section of a report."""
    return make_checks(label_of(offer), (_makes, _makes_without_scores), _Case(offer, options))


def _listens(case: _Case) -> None:
    """`listen` returns a Listener."""
    found = case.offer.listen(case.options)
    expect(
        isinstance(found, Listener), "a Listener", type(found).__name__, "Derive its class from clocs_core.Listener."
    )


def _hears(case: _Case) -> None:
    """Every event of a run and of an evaluation can be told, also those of a second run."""
    listener = case.offer.listen(case.options)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            run = RunStarted(Path(folder) / str(number), "method", "data", {}, 1)
            run.folder.mkdir()
            _tell_all(listener, run)


def _makes(case: _Case) -> None:
    """`make` returns tables and PNG pictures."""
    make_section(case.offer, case.options, _findings())


def _makes_without_scores(case: _Case) -> None:
    """A run without labels has no scores and no predictions; the section is made or left out then."""
    empty = attrs.evolve(_findings(), scores=(), comparisons=(), predictions={}, label=None, patient=(), record=())
    make_section(case.offer, case.options, empty)


def _tell_all(listener: Listener, run: RunStarted) -> None:
    found = _findings()
    health = Health(4.0, 8, 0.9, 0.1, 0.5)
    listener.run_started(run)
    listener.epoch_done(run, EpochDone(1, torch.zeros(2), 0.5, 0.6, health, True, 1, 8, 0.1, True))
    listener.run_stopped(run, RunStopped("interrupted"))
    listener.run_started(run)
    listener.run_done(run, RunDone(1, 1, found.scores, found.comparisons, found.embeddings, ()))
    listener.evaluation_done(EvaluationDone(run.folder, "linear", "m", "d", "t", found.scores, found.comparisons, ()))


def _findings() -> Findings:
    rng = np.random.default_rng(0)
    where: dict[str, Any] = {"dataset": "data", "label_fraction": 1.0, "metric": "auroc", "level": "frame"}
    score = Score(protocol="linear", init="method", value=0.8, low=0.7, high=0.9, **where)
    gain = Comparison(a="method", b="random", protocol="linear", difference=0.1, low=0.0, high=0.2, **where)
    names = tuple(f"p{number // 2}" for number in range(_ROWS))
    records = tuple(f"r{number}" for number in range(_ROWS))
    embedding = rng.normal(size=(_ROWS, 4)).astype(np.float32)
    share = rng.dirichlet(np.ones(2), _ROWS)
    return Findings(
        method="method",
        dataset="data",
        task=Task("task", ("a", "b")),
        scores=(score, attrs.evolve(score, init="random", value=0.7)),
        comparisons=(gain,),
        embeddings=EmbeddingMap(embedding, names, records, ("a", "b") * (_ROWS // 2)),
        predictions={("linear", "method", 1.0): share, ("linear", "random", 1.0): share[::-1].copy()},
        label=np.arange(_ROWS) % 2,
        patient=names,
        record=records,
    )
