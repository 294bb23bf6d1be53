"""A diagonal state space layer, as a long convolution over time.

Each of the features has `state` complex numbers x that follow x' = A x + B u, and gives y = Re(C x) + D u. With a step
dt and constant input between positions, y is a convolution of u with the impulse response (impulse_response.py):
S4D-Lin with zero-order hold (Gu, Gupta, Goel and Ré, NeurIPS 2022; B is 1, since C can hold it). The real part of A
stays negative, so that kernels fade.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from clocs_core import can_run_triton
from clocs_plugins.s4d.by_matrix import convolve_by_matrix
from clocs_plugins.s4d.impulse_response import impulse_response

FASTEST, SLOWEST = 0.1, 0.001  # steps dt that are drawn: memories of about ten to a thousand positions

LONGEST = 512
"""Positions up to which a GPU convolves by a product of matrices. It has more operations than an FFT, and fewer passes
through memory, in which an FFT spends its time there. On a CPU the FFT is quicker, six times for 250 positions. The
matrices take width * positions^2 numbers."""


class StateSpace(nn.Module):
    """Features (n, time, width) to features of the same shape, each convolved over time with the kernel of its states.

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
        return impulse_response(self.log_step, self.log_decay, self.frequency, self.output, time)

    def forward(self, features: Tensor) -> Tensor:
        """Convolve features over time: by FFT in float32 or better, by matrices in the precision of the run."""
        time, device = features.shape[1], features.device.type
        with torch.autocast(device, enabled=False):
            at_lags = self._at_lags(time)
        if features.shape[0] == 0:  # as one of several processes may have it; FFTs of MKL refuse it
            return features * self.skip
        if torch.onnx.is_in_onnx_export():
            return _by_convolution(features.transpose(1, 2).float(), at_lags, self.both).transpose(1, 2)
        if self.by_matrices(features):
            dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else features.dtype
            return convolve_by_matrix(features, at_lags, dtype)
        with torch.autocast(device, enabled=False):
            signal = features if features.dtype == torch.float64 else features.float()
            return _by_fft(signal.transpose(1, 2), at_lags).transpose(1, 2)

    def by_matrices(self, features: Tensor) -> bool:
        """Return whether these features are convolved by products of matrices: on a GPU, up to some length."""
        return features.is_cuda and features.shape[1] <= LONGEST and can_run_triton(features.device)

    def _at_lags(self, time: int) -> Tensor:
        """Return the kernels (width, 2 time) at the lags 0, 1, ..., time - 1, unused, 1 - time, ..., -1."""
        kernel, width = self.kernel(time), len(self.skip)
        later = kernel[width:, 1:].flip(-1) if self.both else kernel.new_zeros(width, time - 1)
        now = kernel[:width, :1] + self.skip[:, None]
        return torch.cat([now, kernel[:width, 1:], kernel.new_zeros(width, 1), later], -1)


def _by_fft(signal: Tensor, at_lags: Tensor) -> Tensor:
    """Convolve (n, width, time) by FFT, which takes time log(time) operations instead of time squared."""
    time = signal.shape[-1]
    product = torch.fft.rfft(signal, n=2 * time) * torch.fft.rfft(at_lags.to(signal.dtype))
    made: Tensor = torch.fft.irfft(product, n=2 * time)[..., :time]
    return made


def _by_convolution(signal: Tensor, at_lags: Tensor, both: bool) -> Tensor:
    """Convolve (n, width, time) by the sum itself, in operations that ONNX has."""
    width, time = signal.shape[-2:]
    past, later = at_lags[:, :time], torch.cat([at_lags.new_zeros(width, 1), at_lags[:, time + 1 :].flip(-1)], -1)
    made = nn.functional.conv1d(signal, past[:, None].flip(-1), padding=time - 1, groups=width)[..., :time]
    if both:
        made = made + nn.functional.conv1d(signal, later[:, None], padding=time - 1, groups=width)[..., time - 1 :]
    return made
