"""Save and load a learner as one safetensors file, without pickle: weights, optimiser, best weights and progress."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import attrs
import torch
from torch import Tensor

from clocs_core.artifacts.networks import load_weights
from clocs_core.artifacts.tensors import copied_at_once, read_tensors, save_tensors, to_host
from clocs_core.errors import RunFolderError
from clocs_core.settings.options import structure
from clocs_core.settings.toml_file import SCHEMA
from clocs_core.train.adam import Adam
from clocs_core.train.learner import Learner, Progress

_STATE = {"step", "exp_avg", "exp_avg_sq"}  # of Adam, for each weight


def save_checkpoint(learner: Learner, path: Path, log: dict[str, object] | None = None) -> None:
    """Write everything that a resumed run needs. A kill leaves either the old or the new checkpoint, whole.

    log: what the caller wants back from `load_checkpoint`, as values for JSON.
    """
    save_snapshot(Snapshot(_tensors(learner), learner.progress), path, log)


@attrs.frozen(eq=False)
class Snapshot:
    """Everything that a resumed run needs, at one moment."""

    tensors: dict[str, Tensor]
    progress: Progress


def take_snapshot(learner: Learner) -> Snapshot:
    """Copy the state of a learner to the host, so that training may go on while it is saved."""
    return Snapshot(to_host(_tensors(learner), copy=True), learner.progress)


def save_snapshot(held: Snapshot, path: Path, log: dict[str, object] | None = None) -> None:
    """Write a snapshot, as `save_checkpoint` writes a learner."""
    about = {"schema": SCHEMA, "progress": attrs.asdict(held.progress), "log": log or {}}
    save_tensors(held.tensors, about, path)


@attrs.frozen(eq=False)
class Held:
    """A copy, on the device, of all that a step changes: made at the end of an epoch, so that the next one may begin.

    there: the moment on the device from which on the copy can be read; None on a CPU.
    """

    tensors: dict[str, Tensor]
    there: torch.cuda.Event | None

    def put_back(self, learner: Learner) -> None:
        """Let a learner be as it was."""
        with torch.no_grad():
            for name, tensor in _changing(learner).items():
                if name in self.tensors:
                    tensor.copy_(self.tensors[name])
                else:  # Adam's averages of a weight that had no gradient before
                    tensor.zero_()

    def encoders(self) -> dict[str, Tensor]:
        """Return the weights of the encoders."""
        return _part(self.tensors, "encoders")

    def snapshot(self, learner: Learner) -> Snapshot:
        """Copy what is held, with the best weights and the progress of the learner, to the host.

        The copy has a stream of its own: on that of training it would wait for the next epoch.
        """
        tensors = {**self.tensors, **_named("best", learner.best)}
        if self.there is None:
            return Snapshot(to_host(tensors, copy=True), learner.progress)
        stream = _stream_of(learner.device)
        stream.wait_event(self.there)
        with torch.cuda.stream(stream):
            return Snapshot(to_host(tensors), learner.progress)


def hold(learner: Learner) -> Held:
    """Copy the state of a learner on its device. No host sync."""
    copies = copied_at_once({name: tensor.detach() for name, tensor in _changing(learner).items()})
    there = None if learner.device.type == "cpu" else torch.cuda.current_stream(learner.device).record_event()
    return Held(copies, there)


@cache
def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which states are copied to the host: one of a device, since each has memory of its own."""
    return torch.cuda.Stream(device)


def _tensors(learner: Learner) -> dict[str, Tensor]:
    """Return all tensors of a learner by their names in the file."""
    return {**_changing(learner), **_named("best", learner.best)}


def _changing(learner: Learner) -> dict[str, Tensor]:
    """Return the tensors that a step changes, by their names in the file."""
    optimiser = {
        f"optimiser.{number}.{name}": torch.as_tensor(value)
        for number, state in learner.optimiser.state_dict().items()
        for name, value in state.items()
    }
    networks = _named("encoders", learner.encoders.state_dict()) | _named("objective", learner.objective.state_dict())
    return networks | optimiser


def _named(part: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{part}.{name}": tensor for name, tensor in state.items()}


def load_checkpoint(learner: Learner, path: Path) -> dict[str, object]:
    """Load a checkpoint into a new learner, and return its log. Raise RunFolderError if it is damaged or does not fit.

    The log of a checkpoint that an earlier version wrote is empty.
    """
    tensors, about = read_tensors(path)
    if type(about.get("schema")) is not int or about["schema"] != SCHEMA:
        raise RunFolderError(
            f"{path} was written by another version of clocs (schema {about.get('schema')!r}, this one reads "
            f"{SCHEMA}); resume it with that version, or start a new run."
        )
    try:
        load_weights(learner.encoders, _part(tensors, "best"))
        learner.keep_best()
        load_weights(learner.encoders, _part(tensors, "encoders"))
        load_weights(learner.objective, _part(tensors, "objective"), finite=False)  # a buffer may be infinite
        _load_optimiser(learner.optimiser, _part(tensors, "optimiser"))
        learner.progress = _read_progress(about.get("progress"))
        log = about.get("log", {})
        if not isinstance(log, dict):
            raise ValueError(f"its log is {type(log).__name__}, expected a table.")
    except ValueError as problem:
        raise RunFolderError(f"{path} does not fit the run's settings: {problem} Start a new run.") from None
    return log


def _load_optimiser(optimiser: Adam, tensors: dict[str, Tensor]) -> None:
    """Load the state of Adam. Raises ValueError where it is not that of the optimiser's weights."""
    weights = optimiser.weights
    state: dict[int, dict[str, Tensor]] = {number: {} for number in range(len(weights))}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        known = number.isdecimal() and int(number) < len(weights) and key in _STATE
        if not known or tensor.shape != (() if key == "step" else weights[int(number)].shape):
            raise ValueError(f"optimiser.{name} of shape {tuple(tensor.shape)} belongs to none of its weights.")
        state[int(number)][key] = tensor
    state = {place: held for place, held in state.items() if held}  # a weight that never had a gradient has none
    for place, held in state.items():
        if held.keys() != _STATE:
            raise ValueError(f"the optimiser's state of weight {place} is incomplete: it has {', '.join(held)}.")
    optimiser.load_state_dict(state)


def _read_progress(found: object) -> Progress:
    """Read how far training was. Raises ValueError where it is not there, or is not possible."""
    held = found if isinstance(found, dict) else {"progress": found}
    progress = structure(Progress, held, "progress", arguments=False)
    if not 0 <= progress.best_epoch <= progress.epoch:
        raise ValueError(f"its best epoch is {progress.best_epoch} of {progress.epoch}.")
    return progress


def _part(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name[len(part) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(part + ".")}
