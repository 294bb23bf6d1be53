"""PhysioNet/CinC Challenge 2020, its CPSC 2018 part: twelve leads, 6 to 60 s at 500 Hz, nine findings."""

from __future__ import annotations

from pathlib import Path

from clocs_core import Dataset, Defaults, Entry, Listing, NoOptions, Record, Source, Task, hookimpl

# Several may be present at once; in the order of the paper's code, which is alphabetical.
FINDINGS = Task("findings", ("AF", "I-AVB", "LBBB", "Normal", "PAC", "PVC", "RBBB", "STD", "STE"), kind="any_of")
LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def scan(root: Path, task: Task, options: NoOptions) -> Listing:
    """List the recordings with their labels, which are in the headers or in a table."""
    from clocs_plugins.physionet2020.listing import list_recordings

    return list_recordings(root, task)


def load(entry: Entry, options: NoOptions) -> Record:
    """Read one recording."""
    from clocs_plugins.physionet2020.reading import read_recording

    return read_recording(entry, LEADS)


FILES = "https://physionet.org/files/challenge-2020/1.0.2"


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the recordings of CPSC 2018, at their own 500 Hz, as in the paper's appendix A.1."""
    return [
        Dataset(
            name="physionet2020",
            summary="PhysioNet/CinC 2020 (CPSC 2018): 12-lead ECGs of 6,877 people, nine findings.",
            modality="ecg",
            tasks=(FINDINGS,),
            channels=LEADS,
            presets={"4": ("II", "V2", "aVL", "aVR"), "12": LEADS},
            scan=scan,
            load=load,
            defaults=Defaults(split="64/16/20", channels="4"),
            licence="CC-BY-4.0",
            sources=tuple(
                Source(
                    f"training/cpsc_2018/g{g}/",
                    f"{FILES}/training/cpsc_2018/g{g}/",
                    endings=(".hea", ".mat"),
                    sums=f"{FILES}/SHA256SUMS.txt",
                )
                for g in range(1, 8)
            ),
            homepage="https://physionet.org/content/challenge-2020/1.0.2/",
        )
    ]
