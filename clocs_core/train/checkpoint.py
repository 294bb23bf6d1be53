"""A learner as one safetensors file: weights, optimiser, best weights and progress. No pickle anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.settings import SCHEMA
from clocs_core.train.learner import Learner, Progress

__all__ = ["load_checkpoint", "read_tensors", "save_checkpoint", "save_tensors"]


def save_checkpoint(learner: Learner, path: Path) -> None:
    """Write everything that a resumed run needs, so that a kill leaves the old checkpoint or the new one."""
    tensors: dict[str, Tensor] = {}
    for part, state in (
        ("encoders", learner.encoders.state_dict()),
        ("objective", learner.objective.state_dict()),
        ("best", learner.best),
    ):
        tensors |= {f"{part}.{name}": tensor for name, tensor in state.items()}
    for number, state in learner.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    save_tensors(tensors, {"schema": SCHEMA, "progress": attrs.asdict(learner.progress)}, path)


def load_checkpoint(learner: Learner, path: Path) -> None:
    """Change a freshly made learner into the one that was saved. Raises RunFolderError where they do not fit."""
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


def save_tensors(tensors: dict[str, Tensor], about: dict[str, object], path: Path) -> None:
    """Write tensors with a JSON description inside, atomically."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_atomically(path, save(ready, {"clocs": json.dumps(about)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The tensors of a file and its description. Raises RunFolderError for a file that is damaged or not ours."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("clocs", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118  not a dict
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunFolderError(f"Cannot read {path}: {problem}.") from None


def _part(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name[len(part) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(part + ".")}
