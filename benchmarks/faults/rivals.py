"""Let two processes work in one place, or let files change while they are read."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from faults.disturbances import Undisturbed
from faults.inputs import Form
from faults.mutations import mutate
from faults.processes import PATIENCE, Work, clocs, run, start
from faults.verdicts import GOOD, Trial, differing, judge_end


def race(calm: Undisturbed, folder: Path, seed: int) -> Trial:
    """Start the same command twice, a random moment apart. One finishes; the other may wait, or be refused."""
    rng = random.Random(seed)
    shutil.copytree(calm.template, folder)
    first = start(calm.story.work(folder), folder.with_suffix(".a.log"))
    time.sleep(rng.random() ** 2 * calm.seconds)
    second = start(calm.story.work(folder), folder.with_suffix(".b.log"))
    ends = [first.wait(PATIENCE), second.wait(PATIENCE)]
    judged = [judge_end(ended) for ended in ends]
    longest, largest = max(ended.seconds for ended in ends), max(ended.memory for ended in ends)

    def trial(verdict: str, detail: str) -> Trial:
        return Trial("two processes", calm.story.name, f"seed {seed}", verdict, longest, largest, detail)  # type: ignore[arg-type]

    for verdict, detail in judged:
        if verdict not in GOOD:
            return trial(verdict, detail)
    if all(ended.code for ended in ends):
        return trial("not resumable", " / ".join(detail for _, detail in judged))
    wrong = differing(calm.story.results(folder), calm.results)
    return trial("difference" if wrong else "equal", wrong)


def race_other(folder: Path, seed: int) -> Trial:
    """Start two runs with different settings in one folder: the results are those of the settings that it holds."""
    from clocs_core.artifacts.reports import read_report
    from clocs_core.settings.toml_file import read_tables

    rng = random.Random(seed)
    folder.mkdir()
    tiny = ("--epochs", "2", "--batch-size", "16", "--resamples", "5", "--embedding-dim", "8", "--workers", "1")
    data = ("--dataset", "demo", "-o", "patients=12", "--data-root", str(folder / "data"))
    place = (*data, "--out", str(folder / "run"))
    works = [
        clocs("run", "--plugin", method, "--seed", str(n), *place, *tiny) for n, method in enumerate(("cmsc", "simclr"))
    ]
    first = start(works[0], folder.with_suffix(".a.log"))
    time.sleep(rng.random() ** 2 * 2)
    second = start(works[1], folder.with_suffix(".b.log"))
    ends = [first.wait(PATIENCE), second.wait(PATIENCE)]
    longest, largest = max(ended.seconds for ended in ends), max(ended.memory for ended in ends)

    def trial(verdict: str, detail: str) -> Trial:
        return Trial("two processes", "run, other settings", f"seed {seed}", verdict, longest, largest, detail)  # type: ignore[arg-type]

    for ended in ends:
        verdict, detail = judge_end(ended)
        if verdict not in GOOD:
            return trial(verdict, detail)
    if sorted(ended.code for ended in ends) != [0, 2]:
        return trial("difference", f"exit codes {[ended.code for ended in ends]}: one of two should have been refused")
    held = read_tables(folder / "run/settings.toml")["run"]
    report = read_report((folder / "run/report.json").read_text())
    same = (held["method"], held["seed"]) == (report.method, report.seed)
    return trial("equal" if same else "difference", f"settings {held}, report {report.method} {report.seed}")


def change_while_preparing(form: Form, template: Path, folder: Path, seed: int) -> Trial:
    """Change a file after the data set was listed and before it is read; then prepare a copy that did not change.

    The frames must be those of the file as it is now, or the preparation refuses. A later preparation notices too.
    """
    rng = random.Random(seed)
    shutil.copytree(template, folder)
    arguments = ("data", "prepare", form.dataset, "--root", str(folder / form.root), "--workers", "1", *form.arguments)
    given = tuple(one.replace("{}", str(folder)) for one in arguments)
    first = run(_changing(folder, rng, clocs(*given, "--data-root", str(folder / "a"))), folder.with_suffix(".a.log"))
    again = run(clocs(*given, "--data-root", str(folder / "a")), folder.with_suffix(".b.log"))
    fresh = run(clocs(*given, "--data-root", str(folder / "b")), folder.with_suffix(".c.log"))

    def trial(verdict: str, detail: str) -> Trial:
        seconds, memory = max(first.seconds, again.seconds), max(first.memory, again.memory)
        return Trial("changing file", form.name, f"seed {seed}", verdict, seconds, memory, detail)  # type: ignore[arg-type]

    for ended in (first, again, fresh):
        verdict, detail = judge_end(ended)
        if verdict not in GOOD:
            return trial(verdict, detail)
    if again.code != fresh.code:
        return trial("difference", f"prepared again: {again.text[-300:]}; from nothing: {fresh.text[-300:]}")
    if again.code:
        return trial("refused", again.text.strip().splitlines()[-1])
    told = [ended.text.replace(str(folder / "a"), "").replace(str(folder / "b"), "") for ended in (again, fresh)]
    wrong = _frames_differ(folder / "a", folder / "b") or (told[0] != told[1] and f"{told[0]} != {told[1]}")
    return trial("difference" if wrong else "equal", wrong or "")


def _changing(folder: Path, rng: random.Random, work: Work) -> Work:
    def changing() -> int:
        from clocs_core.data import cohort

        divide = cohort.divide

        def change_then_divide(*given: object) -> object:
            files = [path for path in folder.rglob("*") if path.is_file() and "prepared" not in path.parts]
            file = rng.choice(sorted(files))
            file.write_bytes(mutate(file.read_bytes(), rng)[0])
            return divide(*given)  # type: ignore[arg-type]

        cohort.divide = change_then_divide  # type: ignore[assignment]
        return work()

    return changing


def _frames_differ(a: Path, b: Path) -> str:
    """Name frames of a fresh preparation that the other lacks."""
    held = {path.read_bytes() for path in a.rglob("frames.bin")}
    missing = [path for path in b.rglob("frames.bin") if path.read_bytes() not in held]
    return f"frames that a fresh preparation makes are missing: {missing[0].parent.name}" if missing else ""
