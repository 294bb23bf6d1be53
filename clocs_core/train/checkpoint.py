"""Save and load a learner as one safetensors file, without pickle: weights, optimiser, best weights and progress."""

from __future__ import annotations

from pathlib import Path

import attrs
import torch
from torch import Tensor

from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.errors import RunFolderError
from clocs_core.settings.toml_file import SCHEMA
from clocs_core.train.learner import Learner, Progress


def save_checkpoint(learner: Learner, path: Path, log: dict[str, object] | None = None) -> None:
    """Write everything that a resumed run needs. A kill leaves either the old or the new checkpoint, whole.

    log: what the caller wants back from `load_checkpoint`, as values for JSON.
    """
    tensors: dict[str, Tensor] = {}
    for part, state in (
        ("encoders", learner.encoders.state_dict()),
        ("objective", learner.objective.state_dict()),
        ("best", learner.best),
    ):
        tensors |= {f"{part}.{name}": tensor for name, tensor in state.items()}
    for number, state in learner.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    save_tensors(tensors, {"schema": SCHEMA, "progress": attrs.asdict(learner.progress), "log": log or {}}, path)


def load_checkpoint(learner: Learner, path: Path) -> dict[str, object]:
    """Load a checkpoint into a new learner, and return its log. Raise RunFolderError if it does not fit.

    The log of a checkpoint that an earlier version wrote is empty.
    """
    tensors, about = read_tensors(path)
    if about.get("schema") != SCHEMA:
        raise RunFolderError(
            f"{path} was written by another version of clocs (schema {about.get('schema')!r}, this one reads "
            f"{SCHEMA}); resume it with that version, or start a new run."
        )
    try:
        learner.encoders.load_state_dict(_part(tensors, "encoders"))
        learner.objective.load_state_dict(_part(tensors, "objective"))
    except RuntimeError as problem:
        first = str(problem).splitlines()[0]
        raise RunFolderError(f"{path} does not fit the run's settings: {first} Start a new run.") from None
    learner.best = {name: tensor.to(learner.device) for name, tensor in _part(tensors, "best").items()}
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _part(tensors, "optimiser").items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = tensor
    groups = learner.optimiser.state_dict()["param_groups"]
    learner.optimiser.load_state_dict({"state": state, "param_groups": groups})
    progress = about["progress"]
    assert isinstance(progress, dict)
    learner.progress = Progress(**progress)
    log = about.get("log", {})
    assert isinstance(log, dict)
    return log


def _part(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name[len(part) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(part + ".")}
