"""Two modalities with an encoder each: two leads of an ECG, and a pulse wave that is read four times more coarsely.

`clocs run --plugin ecg-and-pulse --dataset bedside`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core import (
    Batch,
    Dataset,
    Defaults,
    Entry,
    Framing,
    Listing,
    Method,
    Needs,
    Reader,
    Record,
    Task,
    ViewGenerator,
    Views,
    hookimpl,
    option,
)

if TYPE_CHECKING:
    from torch import Generator

CLOCS_API = "1.2"
RATE, SECONDS = 100, 40
RATE_CLASS = Task("rate", classes=("slow", "fast"))


@attrs.frozen
class BedsideOptions:
    """The size of the data set."""

    beds: int = option(30, "Number of patients.", check=(lambda n: n >= 5, "be 5 or more"))


@attrs.frozen
class PairOptions:
    """The encoder of the pulse wave."""

    pulse_encoder: str = option("resnet1d", "Encoder of the pulse wave; that of the ECG is the run's.")
    average: int = option(4, "Samples of the pulse wave in one value that its encoder reads.")


def scan(_root: Path, _task: Task, options: BedsideOptions) -> Listing:
    """List a recording of every patient; every second heart is fast."""
    return Listing(Entry(f"r{n}", f"p{n}", n % 2) for n in range(options.beds))


def load(entry: Entry, _options: BedsideOptions) -> Record:
    """Simulate two leads and a pulse wave of the same beats."""
    import numpy as np

    number = int(entry.record[1:])
    source = np.random.default_rng(number)
    beats = (1.0 if number % 2 == 0 else 1.6) * np.arange(RATE * SECONDS) / RATE + source.uniform()
    spike = np.exp(-(((beats % 1) - 0.3) ** 2) / 0.001)
    pulse = np.sin(2 * np.pi * (beats - 0.2)) + 0.3 * np.sin(4 * np.pi * beats)
    samples = np.stack([spike, -0.5 * spike, pulse]) + source.normal(0, 0.2, (3, len(beats)))
    return Record(entry.patient, entry.record, ("I", "aVR", "PLETH"), "a.u.", RATE, samples, entry.label)


def framing(_segments: int) -> Framing:
    """Cut frames of 5 s."""
    return Framing(frame_samples=5 * RATE)


def needs(options: PairOptions) -> Needs:
    """Say what each encoder reads: the first two channels, and all others."""
    pulse = Reader(name="pulse", channels=(2, None), average=options.average, encoder=options.pulse_encoder)
    ecg = Reader(name="ecg", channels=(0, 2))
    return Needs(channels="all", encoder_channels="all", readers=(ecg, pulse))


def build(_options: PairOptions) -> Callable[[Batch, Generator], Views]:
    """Build the views."""
    return frame_for_each


def frame_for_each(batch: Batch, _generator: Generator) -> Views:
    """Give the same frame to both encoders; each takes its own channels of it."""
    frame = batch.signal[:, 0]  # (batch, channel, sample)
    return Views(signal=frame.expand(2, *frame.shape), batch=batch, encoder_of_view=(0, 1))


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="bedside",
            summary="Simulated ECG and pulse waves of the same beats.",
            modality="ECG and PPG",
            tasks=(RATE_CLASS,),
            channels=("I", "aVR", "PLETH"),
            scan=scan,
            load=load,
            framing=framing,
            options=BedsideOptions,
            defaults=Defaults(batch_size=32, epochs=5),
            embedded=True,
        )
    ]


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "A frame for two encoders: of the ECG, and of the pulse wave."
    return [ViewGenerator(name="ecg-and-pulse", summary=summary, options=PairOptions, needs=needs, build=build)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method. The loss is that of the CLOCS paper: both modalities of a patient attract."""
    summary = "Contrast of an ECG with the pulse wave of the same beats; an encoder for each."
    return [Method(name="ecg-and-pulse", summary=summary, views="ecg-and-pulse", encoder="cnn", loss="patient-nce")]
