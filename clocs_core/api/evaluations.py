"""Evaluate an encoder from Python.

scores = clocs.evaluate(run.encoder, data, protocol="finetune", label_fraction=[0.25, 1.0])
"""

from __future__ import annotations

from pathlib import Path

import attrs

from clocs_core.api.arguments import EVALUATE, assignments_of, choose_workers, with_settings_in_signature
from clocs_core.api.display import open_display
from clocs_core.api.encoder import Embedder
from clocs_core.api.recordings import Data
from clocs_core.api.results import Results
from clocs_core.api.runs import Run
from clocs_core.artifacts.predictions import PredictedRows
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.session import installed_session
from clocs_core.workflows.evaluate import evaluate_encoder
from clocs_core.workflows.surroundings import Surroundings


@attrs.frozen(eq=False, slots=False, repr=False)
class EvaluationResults(Results):
    """The scores of an evaluation. path: its folder; None where nothing was kept."""

    path: Path | None
    predictions: PredictedRows | None = attrs.field(repr=False)


@with_settings_in_signature(EVALUATE, "dataset", "task", "root")
def evaluate(
    trained: Embedder | Run | str | Path | None,
    data: Data,
    /,
    *,
    out: str | Path | None = None,
    controls: str | Path | None = None,
    progress: bool = True,
    workers: int | None = None,
    **settings: object,
) -> EvaluationResults:
    """Evaluate an encoder on labelled recordings, beside the same encoder untrained and the class prior.

    trained: an encoder, a run, or the path of either; None evaluates an untrained encoder, named by `encoder=NAME`.
    data: `clocs.Recordings` or `clocs.dataset`; it may be another data set than the encoder was trained on.
    out: a folder to keep the evaluation and its classifiers in; an interrupted one is resumed; None keeps nothing.
    controls: a folder in which evaluations share their controls.
    settings: protocol ("linear", "finetune", or that of a plugin, with its options), label_fraction (one or several),
    part, seed, and with "finetune" epochs, batch_size and learning_rate.
    """
    given = assignments_of(EVALUATE, data, settings)
    session = data.add_to(installed_session())
    opened = None if trained is None else open_encoder(_source(trained), session.catalogue)
    plan = resolve_evaluation(session.catalogue, opened, {}, given)
    path = None if out is None else Path(out)
    with open_display(progress) as show:
        around = Surroundings(session.host, show, choose_workers(data, workers))
        done = evaluate_encoder(plan, path, around, None if controls is None else Path(controls))
    return EvaluationResults(record=done.report, path=path, predictions=done.predictions)


def _source(trained: Embedder | Run | str | Path) -> Path | bytes:
    found = trained.file if isinstance(trained, Run) else trained.path if isinstance(trained, Embedder) else trained
    return found if isinstance(found, bytes) else Path(found)
