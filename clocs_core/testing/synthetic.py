"""Synthetic signals for tests: seeded and finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clocs_core.contracts.batches import Batch
from clocs_core.contracts.records import Label, Record

if TYPE_CHECKING:
    import torch


def synthetic_record(
    patient: str = "patient-0",
    record: str = "record-0",
    channels: Sequence[str] = ("I", "II"),
    *,
    unit: str = "mV",
    sampling_rate: float = 500.0,
    samples: int = 5000,
    label: Label = None,
    seed: int = 0,
) -> Record:
    """Make a recording of `samples` samples at `sampling_rate` Hz: a sine wave per channel, with a little noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / sampling_rate  # (sample,) s
    rate = rng.uniform(0.8, 1.6)  # Hz, like a heart
    phase = rng.uniform(0, 2 * np.pi, (len(channels), 1))
    signal = np.sin(2 * np.pi * rate * time + phase) + 0.05 * rng.standard_normal((len(channels), samples))
    return Record(patient, record, tuple(channels), unit, sampling_rate, signal.astype(np.float32), label)


def synthetic_batch(
    batch: int = 8,
    segments: int = 1,
    channels: int = 1,
    samples: int = 250,
    patients: int = 4,
    device: torch.device | str = "cpu",
    seed: int = 0,
    *,
    classes: int = 3,
) -> Batch:
    """Make a batch of synthetic instances that cycle through `patients` patients and labels 0 to `classes` - 1.

    The signal is (batch, segment, channel, sample) in float32; the last instance is flat, like a detached lead.
    """
    import torch

    source = torch.Generator().manual_seed(seed)  # on the CPU, so that every device gets the same numbers
    wave = torch.linspace(0, 6.0, samples)
    rate = 1 + torch.rand(batch, segments, channels, 1, generator=source)
    signal = (rate * wave).sin() + 0.1 * torch.randn(batch, segments, channels, samples, generator=source)
    if batch > 1:
        signal[-1] = 0.0
    number = torch.arange(batch)
    ids: dict[str, Any] = {
        "patient": number % patients,
        "record": number,
        "segment": number % 2,
        "channel": torch.zeros_like(number),
        "label": number % classes,
    }
    return Batch(signal=signal.to(device), **{name: value.to(device) for name, value in ids.items()})
