"""Kernels of `impulse_response`: all responses in one launch, and the gradients of all weights in another.

A complex number is two real ones, `_re` and `_im`. The gradient g of a complex x is dL/dRe x + i dL/dIm x, so that for
y = f(x) with a complex derivative f', g of x is g of y times the conjugate of f'(x).
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803, RUF059
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

POSITIONS = 128
"""Positions of a tile. A tile has all states: 16 x 128 numbers by default, 16 for each thread."""


def respond(weights: Sequence[Tensor], made: Tensor) -> None:
    """Write the responses (kernel, time)."""
    kernels, time = made.shape
    states = weights[1].shape[1]
    respond_kernel[(kernels, triton.cdiv(time, POSITIONS))](
        *weights, made, kernels, time, states, STATES=triton.next_power_of_2(states), POSITIONS=POSITIONS
    )


def respond_backward(outer: Tensor, weights: Sequence[Tensor], made: Sequence[Tensor]) -> None:
    """Write the gradients of the weights to `made`, from those of the responses (kernel, time)."""
    kernels, time = outer.shape
    states = weights[1].shape[1]
    backward_kernel[(kernels,)](
        outer, *weights, *made, kernels, time, states, STATES=triton.next_power_of_2(states), POSITIONS=POSITIONS
    )


@triton.jit
def times(a_re, a_im, b_re, b_im):
    """Return a b."""
    return a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re


@triton.jit
def over(a_re, a_im, b_re, b_im):
    """Return a / b."""
    size = b_re * b_re + b_im * b_im
    return (a_re * b_re + a_im * b_im) / size, (a_im * b_re - a_re * b_im) / size


@triton.jit
def load_states(steps, decay, frequency, output, w, kernels, states, STATES: tl.constexpr):
    """Return dt, and of each state A, z = dt A, exp(z), B = (exp(z) - 1) / A, and C. Behind the last state, C is 0."""
    n = tl.arange(0, STATES)
    there, at = n < states, w * states + n
    step = tl.load(steps + w)
    a_re = tl.load(decay + at, mask=there, other=-1.0)
    a_im = tl.load(frequency + at, mask=there, other=0.0)
    c_re = tl.load(output + at, mask=there, other=0.0)
    c_im = tl.load(output + (w + kernels) * states + n, mask=there, other=0.0)
    z_re, z_im = a_re * step, a_im * step
    e_re, e_im = tl.exp(z_re) * tl.cos(z_im), tl.exp(z_re) * tl.sin(z_im)
    b_re, b_im = over(e_re - 1, e_im, a_re, a_im)
    return step, a_re, a_im, z_re, z_im, e_re, e_im, b_re, b_im, c_re, c_im


@triton.jit
def respond_kernel(
    steps, decay, frequency, output, made, kernels, time, states, STATES: tl.constexpr, POSITIONS: tl.constexpr
):
    """Compute some positions of a response."""
    w = tl.program_id(0).to(tl.int64)
    step, a_re, a_im, z_re, z_im, e_re, e_im, b_re, b_im, c_re, c_im = load_states(
        steps, decay, frequency, output, w, kernels, states, STATES
    )
    s_re, s_im = times(c_re, c_im, b_re, b_im)
    position = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    lag = position.to(z_re.dtype)[None, :]
    angle = z_im[:, None] * lag  # (state, position)
    wave = s_re[:, None] * tl.cos(angle) - s_im[:, None] * tl.sin(angle)
    response = 2 * tl.sum(tl.exp(z_re[:, None] * lag) * wave, axis=0)
    tl.store(made + w * time + position, response, mask=position < time)


@triton.jit
def backward_kernel(
    outer,
    steps,
    decay,
    frequency,
    output,
    of_step,
    of_decay,
    of_frequency,
    of_output,
    kernels,
    time,
    states,
    STATES: tl.constexpr,
    POSITIONS: tl.constexpr,
):
    """Compute the gradients of the weights of a response, in a fixed order."""
    w = tl.program_id(0).to(tl.int64)
    step, a_re, a_im, z_re, z_im, e_re, e_im, b_re, b_im, c_re, c_im = load_states(
        steps, decay, frequency, output, w, kernels, states, STATES
    )
    s_re, s_im = times(c_re, c_im, b_re, b_im)
    gs_re, gs_im, gz_re, gz_im = z_re * 0, z_re * 0, z_re * 0, z_re * 0
    for first in range(0, time, POSITIONS):
        position = first + tl.arange(0, POSITIONS)
        lag = position.to(z_re.dtype)[None, :]
        weight = 2 * tl.load(outer + w * time + position, mask=position < time, other=0.0)[None, :]
        weight = weight * tl.exp(z_re[:, None] * lag)  # (state, position)
        angle = z_im[:, None] * lag
        p_re, p_im = weight * tl.cos(angle), weight * tl.sin(angle)  # of exp(z lag), times the weight
        gs_re += tl.sum(p_re, axis=1)
        gs_im -= tl.sum(p_im, axis=1)
        gz_re += tl.sum(lag * (s_re[:, None] * p_re - s_im[:, None] * p_im), axis=1)
        gz_im -= tl.sum(lag * (s_re[:, None] * p_im + s_im[:, None] * p_re), axis=1)
    gc_re, gc_im = times(gs_re, gs_im, b_re, -b_im)
    gb_re, gb_im = times(gs_re, gs_im, c_re, -c_im)
    q_re, q_im = over(e_re, e_im, a_re, a_im)  # the derivative of B by z
    more_re, more_im = times(gb_re, gb_im, q_re, -q_im)
    gz_re, gz_im = gz_re + more_re, gz_im + more_im
    d_re, d_im = over(-b_re, -b_im, a_re, a_im)  # the derivative of B by A
    ga_re, ga_im = times(gb_re, gb_im, d_re, -d_im)
    ga_re, ga_im = ga_re + gz_re * step, ga_im + gz_im * step
    n = tl.arange(0, STATES)
    there, at = n < states, w * states + n
    tl.store(of_step + w, tl.sum(tl.where(there, gz_re * a_re + gz_im * a_im, 0.0), axis=0))
    tl.store(of_decay + at, ga_re, mask=there)
    tl.store(of_frequency + at, ga_im, mask=there)
    tl.store(of_output + at, gc_re, mask=there)
    tl.store(of_output + (w + kernels) * states + n, gc_im, mask=there)
