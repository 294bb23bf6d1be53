"""A diagonal state space layer, as a long convolution over time.

Each of the features has `state` complex numbers x that follow x' = A x + B u, and gives y = Re(C x) + D u. With a step
dt and constant input between positions, y is a convolution of u with the kernel

    k[l] = 2 Re( sum over n of  C[n] (exp(dt A[n]) - 1) / A[n]  exp(dt A[n] l) )

(S4D-Lin with zero-order hold: Gu, Gupta, Goel and Ré, NeurIPS 2022; B is 1, since C can hold it). The real part of A
stays negative, so that kernels fade. Everything is computed in real numbers: complex tensors have no bf16, and the ONNX
exporter does not know them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

FASTEST, SLOWEST = 0.1, 0.001  # steps dt that are drawn: memories of about ten to a thousand positions


class StateSpace(nn.Module):
    """Features (n, width, time) to features of the same shape, each convolved with the kernel of its states.

    both: convolve backwards in time as well, with another kernel, so that a position sees the later ones too.
    """

    def __init__(self, width: int, state: int, both: bool) -> None:
        super().__init__()
        kernels = width * (2 if both else 1)
        self.both = both
        steps = torch.empty(kernels).uniform_(math.log(SLOWEST), math.log(FASTEST))
        self.log_step = nn.Parameter(steps)
        self.log_decay = nn.Parameter(torch.full((kernels, state), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(state).float().repeat(kernels, 1))
        self.output = nn.Parameter(torch.randn(2, kernels, state) * math.sqrt(0.5))  # real and imaginary part of C
        self.skip = nn.Parameter(torch.randn(width))

    def kernel(self, time: int) -> Tensor:
        """Return the kernels (width, or twice the width, time), in float32 or better."""
        step = self.log_step.exp()[:, None]  # (kernel, 1)
        decay, turn = -self.log_decay.exp() * step, self.frequency * step  # real and imaginary part of dt A
        # (exp(dt A) - 1) / A, as a fraction with a real denominator
        real, imaginary = decay.exp() * turn.cos() - 1, decay.exp() * turn.sin()
        size = (decay.square() + turn.square()) / step
        held = (real * decay + imaginary * turn) / size, (imaginary * decay - real * turn) / size
        c = self.output[0] * held[0] - self.output[1] * held[1], self.output[0] * held[1] + self.output[1] * held[0]
        at = torch.arange(time, device=step.device, dtype=step.dtype)
        fading = (decay[..., None] * at).exp()  # (kernel, state, time)
        angle = turn[..., None] * at
        return 2 * (fading * (c[0][..., None] * angle.cos() - c[1][..., None] * angle.sin())).sum(1)

    def forward(self, features: Tensor) -> Tensor:
        """Convolve features over time, in float32 or better whatever the precision of the run."""
        with torch.autocast(features.device.type, enabled=False):
            signal = features.float() if features.dtype != torch.float64 else features
            if not len(signal):  # as one of several processes may have it; FFTs of MKL refuse it
                return signal * self.skip[:, None]
            kernel = self.kernel(signal.shape[-1])
            if torch.onnx.is_in_onnx_export():
                made = _by_convolution(signal, kernel, self.both)
            else:
                made = _by_fft(signal, kernel, self.both)
            return made + signal * self.skip[:, None]  # (n, width, time)


def _by_fft(signal: Tensor, kernel: Tensor, both: bool) -> Tensor:
    """Convolve (n, width, time) by FFT, which takes time log(time) operations instead of time squared."""
    width, time = signal.shape[-2:]
    padded = torch.zeros(width, 2 * time, device=signal.device, dtype=signal.dtype)
    padded[:, :time] = kernel[:width]
    if both:
        padded[:, time + 1 :] = kernel[width:, 1:].flip(-1)  # at negative times, which follow the positive ones
    product = torch.fft.rfft(signal, n=2 * time) * torch.fft.rfft(padded)
    made: Tensor = torch.fft.irfft(product, n=2 * time)[..., :time]
    return made


def _by_convolution(signal: Tensor, kernel: Tensor, both: bool) -> Tensor:
    """Convolve by the sum itself, in operations that ONNX has."""
    width, time = signal.shape[-2:]
    made = nn.functional.conv1d(signal, kernel[:width, None].flip(-1), padding=time - 1, groups=width)[..., :time]
    if both:
        later = torch.cat([torch.zeros_like(kernel[width:, :1]), kernel[width:, 1:]], -1)
        made = made + nn.functional.conv1d(signal, later[:, None], padding=time - 1, groups=width)[..., time - 1 :]
    return made
