"""The impulse response of diagonal state spaces: what they put out, 0, 1, 2 ... positions after an input of 1.

    k[l] = 2 Re( sum over n of  C[n] (exp(z[n]) - 1) / A[n]  exp(z[n] l) )    with z = dt A

The weights are the logarithms of dt and of -Re A, the imaginary part of A, and the two parts of C. Everything is
computed in real numbers: complex tensors have no bf16, and the ONNX exporter does not know them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clocs_core import can_run_triton, gpu_operator, launching_on


def impulse_response(log_step: Tensor, log_decay: Tensor, frequency: Tensor, output: Tensor, time: int) -> Tensor:
    """Return the responses (kernel, time) of weights (kernel,), twice (kernel, state), and (2, kernel, state).

    On a GPU by one kernel, and one for the gradients, instead of a hundred small ones for each layer of a step. torch
    takes the exponentials of the weights: Triton's are less exact, and a phase has hundreds of steps.
    """
    step, decay = log_step.exp(), -log_decay.exp()
    if step.is_cuda and can_run_triton(step.device):
        made: Tensor = _respond(step, decay, frequency, output, time)
        return made
    return respond_by_torch(step, decay, frequency, output, time)


def respond_by_torch(step: Tensor, decay: Tensor, frequency: Tensor, output: Tensor, time: int) -> Tensor:
    """Return the responses of dt and A = decay + i frequency, on any device and with any derivative."""
    step = step[:, None]  # (kernel, 1)
    decay, turn = decay * step, frequency * step  # real and imaginary part of z
    # (exp(z) - 1) / A, as a fraction with a real denominator
    real, imaginary = decay.exp() * turn.cos() - 1, decay.exp() * turn.sin()
    size = (decay.square() + turn.square()) / step
    held = (real * decay + imaginary * turn) / size, (imaginary * decay - real * turn) / size
    c = output[0] * held[0] - output[1] * held[1], output[0] * held[1] + output[1] * held[0]
    at = torch.arange(time, device=step.device, dtype=step.dtype)
    fading = (decay[..., None] * at).exp()  # (kernel, state, time)
    angle = turn[..., None] * at
    return 2 * (fading * (c[0][..., None] * angle.cos() - c[1][..., None] * angle.sin())).sum(1)


@gpu_operator(
    "clocs::impulse_response",
    "(Tensor step, Tensor decay, Tensor frequency, Tensor output, int time) -> Tensor",
)
def _respond(step: Tensor, decay: Tensor, frequency: Tensor, output: Tensor, time: int) -> Tensor:
    from clocs_plugins.s4d.impulse_kernels import respond  # Triton may not be installed

    made = step.new_empty((len(step), time))
    with launching_on(made):
        respond(_in_order(step, decay, frequency, output), made)
    return made


@_respond.register_fake
def _(step: Tensor, decay: Tensor, frequency: Tensor, output: Tensor, time: int) -> Tensor:
    return step.new_empty((len(step), time))


@gpu_operator(
    "clocs::impulse_response_backward",
    "(Tensor outer, Tensor step, Tensor decay, Tensor frequency, Tensor output) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _respond_backward(
    outer: Tensor, step: Tensor, decay: Tensor, frequency: Tensor, output: Tensor
) -> tuple[Tensor, ...]:
    from clocs_plugins.s4d.impulse_kernels import respond_backward  # Triton may not be installed

    weights = _in_order(step, decay, frequency, output)
    made = tuple(torch.empty_like(weight) for weight in weights)
    with launching_on(outer):
        respond_backward(outer.contiguous(), weights, made)
    return made


@_respond_backward.register_fake
def _(outer: Tensor, step: Tensor, decay: Tensor, frequency: Tensor, output: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(weight) for weight in _in_order(step, decay, frequency, output))


_respond_backward.refuse_gradient()


def _in_order(*weights: Tensor) -> tuple[Tensor, ...]:
    """Return weights as the kernels read them: one number after the other."""
    return tuple(weight.contiguous() for weight in weights)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])


def _backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
    return *_respond_backward(outer, *ctx.saved_tensors), None


_respond.register_autograd(_backward, setup_context=_remember)
