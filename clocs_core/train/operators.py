"""Declare operators with their own kernels, known to autograd, CUDA graphs and torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def launching_on(tensor: torch.Tensor) -> AbstractContextManager[Any]:
    """Make the device of a tensor the current one, on which Triton launches its kernels."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


class Operator:
    """An operator with the methods of `torch.library.custom_op`, whose first call does not import torch's compiler.

    That import takes 2 to 5 s, and a run compiles nothing. The operator must not change its arguments, nor return one.
    """

    def __init__(self, name: str, schema: str, run: Callable[..., Any]) -> None:
        """Declare `name`, as "namespace::operator", with a schema such as "(Tensor x) -> Tensor"."""
        namespace, own = name.split("::")
        self.name = name
        # Held here: an operator ends with its library.
        self._library = torch.library.Library(namespace, "FRAGMENT")
        self._library.define(own + schema, tags=(torch.Tag.pt2_compliant_tag,))
        self._library.impl(own, run, "CompositeExplicitAutograd")
        self._call = getattr(getattr(torch.ops, namespace), own).default

    def __call__(self, *arguments: Any) -> Any:
        """Call the operator."""
        return self._call(*arguments)

    def register_fake(self, fake: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the function that returns empty results of the right shapes."""
        torch.library.register_fake(self.name, fake, lib=self._library)
        return fake

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., None]) -> None:
        """Give the operator its gradient."""
        torch.library.register_autograd(self.name, backward, setup_context=setup_context, lib=self._library)

    def refuse_gradient(self) -> None:
        """Raise RuntimeError where a gradient would have to go through the operator, instead of losing it."""

        def refuse(*_: Any) -> None:
            raise RuntimeError(
                f"{self.name} has no gradient, so nothing that led to its input can be differentiated, nor can a "
                "gradient that it computed. Use an implementation without kernels of its own."
            )

        torch.library.register_autograd(self.name, refuse, lib=self._library)


def gpu_operator(name: str, schema: str = "") -> Callable[[Callable[..., Any]], Operator]:
    """Decorate the function that runs an operator's kernels. schema: by default, that of its annotations."""

    def declare(run: Callable[..., Any]) -> Operator:
        return Operator(name, schema or torch.library.infer_schema(run, mutates_args=()), run)

    return declare
