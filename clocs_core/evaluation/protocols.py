"""Run the protocol of a plugin: withhold the labels that are scored, and check what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.contracts.protocols import Answer, Trial
from clocs_core.errors import ClocsError, PluginError
from clocs_core.plan.chosen_protocol import OfferedProtocol

_ROUNDING = 1e-3  # of a sum of probabilities that were computed in float32 or less


def run_protocol(protocol: OfferedProtocol, trial: Trial) -> Answer:
    """Let a protocol answer a trial. Raises PluginError, which names the plugin, where it fails or does not fit."""
    offer = protocol.offer
    assert offer.predict is not None  # core trains its own protocols by itself
    who = f"Protocol {offer.name!r} of {protocol.owner or 'a plugin'}"
    torch.manual_seed(trial.seed)
    try:
        answer = offer.predict(protocol.options, withhold(trial))
    except ClocsError:
        raise
    except (Exception, SystemExit) as problem:  # code of plugins may raise anything
        raise PluginError(f"{who} failed: {type(problem).__name__}: {problem}") from problem
    if fault := fault_of(answer, trial):
        raise PluginError(f"{who} {fault}.")
    return answer


def withhold(trial: Trial) -> Trial:
    """Return the trial without the labels of its scored rows."""
    label = trial.scored.label
    none: NDArray[Any] = np.full_like(label, np.nan if label.dtype.kind == "f" else -1)
    return attrs.evolve(trial, scored=attrs.evolve(trial.scored, label=none))


def fault_of(answer: object, trial: Trial) -> str:
    """Return what is wrong with an answer, as the end of a sentence; empty if nothing."""
    if not isinstance(answer, Answer):
        return f"must return an Answer, got {type(answer).__name__}"
    found, expected = answer.predicted, (len(trial.scored), len(trial.task.outputs))
    shape = getattr(found, "shape", None)
    if not isinstance(found, np.ndarray) or found.dtype != np.float64 or shape != expected:
        return f"must predict a float64 array of the shape {expected}, got {type(found).__name__} {shape}"
    if not np.isfinite(found).all():
        return "predicts values that are not finite"
    if trial.task.classes and not (found.min() >= 0 and found.max() <= 1):
        return f"must predict probabilities from 0 to 1, got {found.min():g} to {found.max():g}"
    sums = found.sum(axis=1)
    if trial.task.kind == "one_of" and np.abs(sums - 1).max(initial=0) > _ROUNDING:
        return f"must predict probabilities that sum to 1 in each row, got {sums.min():g} to {sums.max():g}"
    if not isinstance(answer.chosen, Mapping):
        return f"must name what it has chosen by a mapping, got {answer.chosen!r:.60}"
    if not isinstance(answer.notes, (tuple, list)) or not all(isinstance(note, str) for note in answer.notes):
        return f"must return notes as a tuple of sentences, got {answer.notes!r:.60}"
    return ""
