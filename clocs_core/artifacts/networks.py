"""Build the network that a card describes, and load the weights of its file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registration
from torch.nn.parameter import is_lazy

from clocs_core.artifacts.card import NetworkCard
from clocs_core.artifacts.partial_input import build_coarser
from clocs_core.contracts.records import Task
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure

_LARGER = 4  # times the weights of its file that building a network may register: some layers replace others
_ALWAYS = 1_000_000  # weights and, divided by 100, modules that it may register in any case


def build_encoders(
    card: NetworkCard, count: int, catalogue: Catalogue, weights: Mapping[str, Tensor], file: Path
) -> list[nn.Module]:
    """Build `count` encoders with random weights, to be overwritten by `weights`.

    Raises UnknownName where the plugin that offers them is missing, RunFolderError where it cannot build them, or
    where the card describes far larger ones than the file has weights for.
    """
    try:
        offer = catalogue.encoders.get(card.encoder).offer
    except UnknownName as problem:
        raise UnknownName(
            f"{file} holds an encoder {card.encoder!r} that is not installed here{_missing(card, catalogue)}. {problem}"
        ) from None
    try:
        options = structure(offer.options, card.options, "encoder", arguments=False)
        # Weights drawn here are overwritten; the caller's random state is kept.
        with torch.random.fork_rng(devices=[]), no_larger_than(weights):
            return [
                build_coarser(
                    lambda samples: offer.build(options, card.input_channels, samples, card.embedding_dim),
                    card.frame_samples,
                    card.average,
                )
                for _ in range(count)
            ]
    except (SettingsError, ValueError, ArithmeticError, RuntimeError, MemoryError) as problem:
        raise RunFolderError(
            f"The encoder {card.encoder!r} of {file} cannot be built by the plugin that is installed: "
            f"{_first_line(problem)} Install the version that wrote it ({card.written_with})."
        ) from None


def no_larger_than(weights: Mapping[str, Tensor]) -> AbstractContextManager[None]:
    """Stop this thread from building modules that are far larger than `weights`, as `limit_modules` does."""
    return limit_modules(
        _ALWAYS + _LARGER * sum(tensor.numel() for tensor in weights.values()),
        _ALWAYS // 100 + 100 * len(weights),
        "its card declares a far larger network than the file has weights for.",
    )


@contextmanager
def limit_modules(most_weights: float, most_modules: float, problem: str) -> Iterator[None]:
    """Stop this thread from building modules with more weights or inner modules, before they fill the memory.

    Raises ValueError, with `problem`, from the constructor of the module that is too large.
    """
    thread, made, modules = threading.get_ident(), 0, 0

    def count(_module: nn.Module, _name: str, new: Any) -> None:
        nonlocal made, modules
        if threading.get_ident() == thread:
            made += new.numel() if isinstance(new, Tensor) and not is_lazy(new) else 0
            modules += isinstance(new, nn.Module)
            if made > most_weights or modules > most_modules:
                raise ValueError(problem)

    hooks = [
        register(count)
        for register in (
            registration.register_module_parameter_registration_hook,
            registration.register_module_buffer_registration_hook,
            registration.register_module_module_registration_hook,
        )
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class ScaledLinear(nn.Linear):
    """A linear head for a number: its outputs are in standard deviations of the training labels, around their mean."""

    mean: Tensor
    sd: Tensor

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        self.register_buffer("mean", torch.zeros(outputs))
        self.register_buffer("sd", torch.ones(outputs))

    def fit_scale(self, label: Tensor) -> None:
        """Set the mean and the standard deviation from training labels (n,). Equal labels keep a deviation of 1."""
        sd, mean = torch.std_mean(label.double(), correction=0)
        self.mean.fill_(mean)
        self.sd.fill_(sd if sd > 0 else 1.0)

    def forward(self, embedding: Tensor) -> Tensor:
        """Return values (n, output) in the unit of the task."""
        return self.mean + self.sd * super().forward(embedding)


_HEADS: dict[str, type[nn.Linear]] = {"one_of": nn.Linear, "any_of": nn.Linear, "number": ScaledLinear}


def with_head(encoder: nn.Module, embedding_dim: int, task: Task) -> nn.Sequential:
    """Put a new linear head on the encoder: signals (n, channel, sample) to logits (n, class), or to numbers (n, 1).

    The head's weights are drawn from torch's default generator.
    """
    head = _HEADS[task.kind](embedding_dim, len(task.outputs))
    return nn.Sequential(OrderedDict(encoder=encoder, head=head))


def fit_weights(network: nn.Module, weights: Mapping[str, Tensor], card: NetworkCard, file: Path) -> None:
    """Load the weights of a file into a network. Raises RunFolderError where they do not fit."""
    try:
        load_weights(network, weights)
    except ValueError as problem:
        raise RunFolderError(
            f"The weights in {file} do not fit the encoder {card.encoder!r} that is installed: {problem} Install the "
            f"version that wrote it ({card.written_with})."
        ) from None


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], finite: bool = True) -> None:
    """Load weights into a network. Raises ValueError where a name, a shape or a type does not fit.

    finite: refuse NaN and infinities too, except where the network has some when it is new, as a mask may.
    """
    for name, own in network.state_dict().items():
        found = weights.get(name, own)
        if found.dtype != own.dtype:  # torch would convert it without a word
            raise ValueError(f"{name} holds {found.dtype}, expected {own.dtype}.")
        if finite and not found.isfinite().all() and own.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite.")
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as problem:
        raise ValueError(_first_line(problem)) from None


def _first_line(problem: BaseException) -> str:
    """Return the beginning of a message of torch or of a plugin, in one line that ends with a full stop."""
    return " ".join(str(problem).split())[:300].rstrip(".") + "."


def _missing(card: NetworkCard, catalogue: Catalogue) -> str:
    """List the plugins of the run that offer nothing here, with distributions: one of them had the encoder."""
    here = {f"plugin {item.plugin.name}" for shelf in catalogue.shelves() for item in shelf}
    gone = {name: version for name, version in card.versions.items() if name.startswith("plugin ") and name not in here}
    told = ", ".join(f"{name.removeprefix('plugin ')} ({version})" for name, version in sorted(gone.items()))
    return f"; of the plugins that it was made with, these offer nothing here: {told}" if told else ""
