"""The embedded data set: simulated 12-lead ECGs, to try everything without a download."""

from __future__ import annotations

from pathlib import Path

import attrs

from clocs_core import Dataset, Defaults, Entry, Listing, Record, Task, hookimpl, option

RHYTHM = Task("rhythm", classes=("AFIB", "GSVT", "SB", "SR"))  # the four groups of the Chapman data set


@attrs.frozen
class DemoOptions:
    """Options of the data set `demo`: how many patients to simulate, and which."""

    patients: int = option(480, "Number of simulated patients.", check=(lambda n: n > 0, "be positive"))
    population: int = option(0, "Seed of the simulated patients.", check=(lambda n: n >= 0, "not be negative"))


def scan(_root: Path, _task: Task, options: DemoOptions) -> Listing:
    """List the recordings: one for most patients, two or three for every third, as in a clinic."""
    entries = []
    for number in range(options.patients):
        patient = f"patient-{number:05d}"
        for visit in range((1, 1, 2, 1, 1, 3)[number % 6]):
            # 4 and 6 share a factor, so shift the class every six patients: visits then say nothing about the rhythm
            label = (number + number // 6) % len(RHYTHM.classes)
            entries.append(Entry(record=f"{patient}-visit-{visit + 1}", patient=patient, label=label))
    return Listing(entries, form="simulated")


def load(entry: Entry, options: DemoOptions) -> Record:
    """Simulate one recording: the patient's name seeds the heart, the record's name seeds the visit."""
    import numpy as np

    from clocs_plugins.demo.simulator import LEADS, draw_heart, simulate

    assert isinstance(entry.label, int)  # scan labels every entry
    seed = [options.population, int(entry.patient.split("-")[1])]
    visit = int(entry.record.rsplit("-", 1)[1])
    heart = draw_heart(RHYTHM.classes[entry.label], np.random.default_rng([*seed, 0]))
    samples = simulate(heart, np.random.default_rng([*seed, visit]))
    return Record(entry.patient, entry.record, LEADS, "mV", 500.0, samples, entry.label)


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the simulated recordings."""
    limb = ("I", "II", "III", "aVR", "aVL", "aVF")
    chest = ("V1", "V2", "V3", "V4", "V5", "V6")
    return [
        Dataset(
            name="demo",
            summary="Simulated 12-lead ECGs of four rhythms, generated on the fly; nothing to download.",
            modality="ecg",
            tasks=(RHYTHM,),
            channels=limb + chest,
            presets={"4": ("II", "V2", "aVL", "aVR"), "12": limb + chest},
            scan=scan,
            load=load,
            options=DemoOptions,
            defaults=Defaults(batch_size=128, learning_rate=1e-3, epochs=60, channels="4"),
            licence="Apache-2.0",
            embedded=True,
        )
    ]
