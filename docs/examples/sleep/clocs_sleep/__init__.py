"""Sleep EEG as a data set: nights in epochs of 30 s, with stages, arousals and the age of the sleeper.

Nights are simulated, so that the plugin runs anywhere. To read your own files, list them in `scan`, name them in
`Entry.files`, and read one in `load`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core import (
    Column,
    Dataset,
    Defaults,
    Entry,
    Episode,
    Framing,
    Label,
    Listing,
    Record,
    Task,
    hookimpl,
    option,
)

if TYPE_CHECKING:
    import numpy as np

CLOCS_API = "1.2"

RATE = 100  # Hz
EPOCH = 30 * RATE  # samples; sleep is scored in epochs of 30 s
EPOCHS = 12  # in a night
RHYTHM = {"wake": 10.0, "light": 5.0, "deep": 1.5}  # Hz, of each stage
BURST = {"spontaneous": 18.0, "respiratory": 25.0}  # Hz, of each kind of arousal
STAGE = Task("stage", classes=tuple(RHYTHM), per="frame")
AROUSAL = Task("arousal", classes=tuple(BURST), kind="any_of", per="frame")
AGE = Task("age", kind="number", unit="years")


@attrs.frozen
class SleepOptions:
    """The size of the data set."""

    sleepers: int = option(20, "Number of sleepers, with two nights each.", check=(lambda n: n >= 5, "be 5 or more"))


def _facts(number: int) -> tuple[int, list[int], list[tuple[int, int, int]]]:
    """Draw the age of a sleeper, and the stages and arousals (onset, offset, class) of a night."""
    import numpy as np

    age = int(np.random.default_rng(number // 2).integers(20, 80))
    source = np.random.default_rng(1000 + number)
    stages = source.integers(0, len(RHYTHM), EPOCHS).tolist()
    onsets = sorted(source.integers(0, EPOCHS * EPOCH - EPOCH, 6).tolist())
    return age, stages, [(one, one + 12 * RATE, place % len(BURST)) for place, one in enumerate(onsets)]


def _label(task: Task, number: int) -> Label:
    """Return the label of a night for a task."""
    age, stages, arousals = _facts(number)
    if task.name == "age":
        return age
    if task.name == "stage":
        return tuple(Episode(place * EPOCH, (place + 1) * EPOCH - 1, one) for place, one in enumerate(stages))
    # The whole night is scored: an epoch without an arousal has none of the classes. An epoch has the labels at its
    # first sample, so an arousal is widened to all epochs that it touches. Arousals may overlap.
    wide = [(onset // EPOCH * EPOCH, (offset // EPOCH + 1) * EPOCH - 1, kind) for onset, offset, kind in arousals]
    none = Episode(0, EPOCHS * EPOCH - 1, frozenset())
    return (none, *(Episode(onset, offset, frozenset({kind})) for onset, offset, kind in wide))


def scan(_root: Path, task: Task, options: SleepOptions) -> Listing:
    """List two nights of every sleeper."""
    return Listing(
        Entry(f"night-{number}", f"sleeper-{number // 2}", _label(task, number), about={"age": _facts(number)[0]})
        for number in range(2 * options.sleepers)
    )


def load(entry: Entry, _options: SleepOptions) -> Record:
    """Simulate a night. Waves of old sleepers are smaller; arousals are bursts of fast waves."""
    import numpy as np

    number = int(entry.record.removeprefix("night-"))
    age, stages, arousals = _facts(number)
    source = np.random.default_rng(2000 + number)
    time = np.arange(EPOCHS * EPOCH) / RATE
    rhythm = np.repeat([list(RHYTHM.values())[stage] for stage in stages], EPOCH)
    wave = (30 - age / 4) * np.sin(2 * np.pi * np.cumsum(rhythm) / RATE)
    for onset, offset, kind in arousals:
        wave[onset:offset] += 15 * np.sin(2 * np.pi * list(BURST.values())[kind] * time[onset:offset])
    noise = source.normal(0, 8, (2, len(time)))
    samples: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.stack([wave, 0.6 * wave]) + noise
    return Record(entry.patient, entry.record, ("C3", "O1"), "uV", RATE, samples.astype(np.float32), entry.label)


def framing(_segments: int) -> Framing:
    """Cut epochs of 30 s, at 50 Hz: no rhythm of sleep is faster than 25 Hz."""
    return Framing(frame_samples=EPOCH // 2, sampling_rate=RATE / 2)


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data set."""
    return [
        Dataset(
            name="sleep",
            summary="Simulated sleep EEG with stages, arousals and age.",
            modality="EEG",
            tasks=(STAGE, AROUSAL, AGE),
            channels=("C3", "O1"),
            scan=scan,
            load=load,
            framing=framing,
            options=SleepOptions,
            columns=(Column("age"),),
            defaults=Defaults(batch_size=64, epochs=5, normalise="constant"),
            embedded=True,
            licence="none needed: simulated",
        )
    ]
