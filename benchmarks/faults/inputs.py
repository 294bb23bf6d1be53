"""Mutate recordings and tables of every form that clocs reads, and prepare them.

A damaged recording may be read, for many forms have no checksum: then its samples are what the file says. It may be
dropped with a count, or refused. It may not end in a traceback, a hang, or gigabytes.
"""

from __future__ import annotations

import csv
import random
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from faults.mutations import mutate
from faults.processes import PATIENCE, Ended, Work, clocs, run
from faults.verdicts import Trial, judge_end

_RECORDINGS = 8  # of each real form: enough for a split into three parts


@attrs.frozen
class Form:
    """A data set in one of its published forms, small. `make` writes it into a folder."""

    name: str
    dataset: str
    make: Callable[[Path], None]
    arguments: tuple[str, ...] = ()
    root: str = "."


def prepare_mutated(form: Form, template: Path, folder: Path, seed: int) -> Trial:
    """Mutate one file of a form and prepare it."""
    rng = random.Random(seed)
    shutil.copytree(template, folder)
    file = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    changed, way = mutate(file.read_bytes(), rng)
    file.write_bytes(changed)
    ended = run(_prepare(form, folder), folder.with_suffix(".log"))
    verdict, detail = judge_end(ended)
    repeat = f"seed {seed}: {way} in {file.relative_to(folder)}"
    return Trial("mutated input", form.name, repeat, verdict, ended.seconds, ended.memory, detail)


def prepare_unchanged(form: Form, template: Path, folder: Path) -> Ended:
    """Prepare a form as it is."""
    shutil.copytree(template, folder)
    return run(_prepare(form, folder), folder.with_suffix(".log"), None, PATIENCE)


def _prepare(form: Form, folder: Path) -> Work:
    given = [one.replace("{}", str(folder)) for one in form.arguments]
    return clocs(
        *("data", "prepare", form.dataset, "--root", str(folder / form.root), "--workers", "1"),
        *("--data-root", str(folder.with_suffix(".data")), *given),
    )


# ---------------------------------------------------------------------------------------------------------- own arrays


def _signals(recordings: int = 8, samples: int = 5000) -> Iterable[list[float]]:
    rng = random.Random(0)
    for _ in range(recordings):
        yield [round(rng.gauss(0, 1), 3) for _ in range(samples)]


def _make_folders(folder: Path) -> None:
    import numpy as np

    for number, signal in enumerate(_signals()):
        place = folder / f"patient-{number}"
        place.mkdir(parents=True)
        np.save(place / "monday.npy", np.array(signal, dtype=np.float32))
        (place / "friday.csv").write_text("time,II\n" + "".join(f"{t},{x}\n" for t, x in enumerate(signal)))


def _make_npz(folder: Path) -> None:
    import numpy as np

    folder.mkdir(parents=True)
    x = np.array(list(_signals()), dtype=np.float32)[:, None]
    patients, labels = np.array([f"p{n}" for n in range(8)]), np.array(["AF", "SR"] * 4)
    channels, unit = np.array(["II"]), np.array("mV")
    np.savez(folder / "x.npz", x=x, sampling_rate=250, patient=patients, label=labels, channels=channels, unit=unit)


def _make_compressed(folder: Path) -> None:
    import numpy as np

    folder.mkdir(parents=True)
    np.savez_compressed(folder / "x.npz", x=np.array(list(_signals()), dtype=np.float32)[:, None], sampling_rate=250)


def _make_table(folder: Path) -> None:
    import numpy as np

    folder.mkdir(parents=True)
    rows = []
    for number, signal in enumerate(_signals()):
        np.save(folder / f"r{number}.npy", np.array(signal, dtype=np.float32))
        rows.append(f"r{number},p{number},{'AF' if number % 2 else 'SR'}\n")
    (folder / "ids.csv").write_text("file,patient,label\n" + "".join(rows))


_OWN = ("-o", "sampling_rate=250")
OWN_FORMS = (
    Form("arrays: folders", "arrays", _make_folders, _OWN),
    Form("arrays: npz", "arrays", _make_npz, root="x.npz"),
    Form("arrays: compressed npz", "arrays", _make_compressed, root="x.npz"),
    Form("arrays: table", "arrays", _make_table, (*_OWN, "-o", "patients={}/ids.csv", "-o", "labels={}/ids.csv")),
)


# ------------------------------------------------------------------------------------------------------ published forms


def real_forms(data: Path) -> tuple[Form, ...]:
    """Return small copies of the published data sets that are in a folder."""
    made = (
        Form("ptbxl", "ptbxl", lambda folder: _make_ptbxl(data / "ptbxl", folder)),
        Form("physionet2017", "physionet2017", lambda folder: _make_2017(data / "physionet2017", folder)),
        Form("physionet2020", "physionet2020", lambda folder: _make_2020(data / "physionet2020", folder)),
        Form("chapman", "chapman", lambda folder: _make_chapman(data / "chapman", folder)),
        Form("cardiology", "cardiology", lambda folder: _make_cardiology(data / "cardiology", folder)),
    )
    return tuple(form for form in made if (data / form.dataset).is_dir())


def _make_ptbxl(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    with open(source / "ptbxl_database.csv", newline="") as file:
        reader = csv.DictReader(file)
        rows, names = [row for _, row in zip(range(_RECORDINGS), reader, strict=False)], reader.fieldnames or ()
    with open(folder / "ptbxl_database.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    shutil.copy(source / "scp_statements.csv", folder)
    for row in rows:
        for ending in (".hea", ".dat"):
            target = folder / (row["filename_lr"] + ending)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / (row["filename_lr"] + ending), target)


def _make_2017(source: Path, folder: Path) -> None:
    sample, target = source / "sample2017/validation", folder / "validation"
    target.mkdir(parents=True)
    lines = (sample / "REFERENCE.csv").read_text().splitlines()[:_RECORDINGS]
    (target / "REFERENCE.csv").write_text("\n".join(lines) + "\n")
    for line in lines:
        for ending in (".hea", ".mat"):
            shutil.copy(sample / (line.split(",")[0] + ending), target)


def _make_2020(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for header in sorted((source / "Training_WFDB").glob("*.hea"))[:_RECORDINGS]:
        shutil.copy(header, folder)
        shutil.copy(header.with_suffix(".mat"), folder)


def _make_chapman(source: Path, folder: Path) -> None:
    import openpyxl

    recordings = sorted((source / "ECGDataDenoised").glob("*.csv"))[:_RECORDINGS]
    (folder / "ECGDataDenoised").mkdir(parents=True)
    for path in recordings:
        shutil.copy(path, folder / "ECGDataDenoised")
    names = {path.stem for path in recordings}
    rows = openpyxl.load_workbook(source / "Diagnostics.xlsx", read_only=True).active.iter_rows(values_only=True)
    small = openpyxl.Workbook()
    for number, row in enumerate(rows):
        if number == 0 or row[0] in names:
            small.active.append(row)
    small.save(folder / "Diagnostics.xlsx")


def _make_cardiology(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    with (
        zipfile.ZipFile(source / "CARDIOL_MAY_2017.zip") as whole,
        zipfile.ZipFile(folder / "CARDIOL_MAY_2017.zip", "w", zipfile.ZIP_DEFLATED) as small,
    ):
        stems = sorted({Path(name).name.split(".")[0].split("_")[0] for name in whole.namelist() if "." in name})
        chosen = tuple(stems[:_RECORDINGS])
        for name in whole.namelist():
            if Path(name).name.startswith(chosen):
                small.writestr(name, whole.read(name))
