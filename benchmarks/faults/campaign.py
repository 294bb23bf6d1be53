"""Draw trials over all groups, run them in several lanes, and write the table."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import attrs

from faults import disturbances, inputs, own_files, rivals
from faults.disturbances import Disturbance, Undisturbed, undisturbed
from faults.inputs import OWN_FORMS, Form, prepare_mutated, real_forms
from faults.own_files import READINGS, Reading, read_damaged
from faults.processes import PATIENCE, import_everything, run
from faults.stories import STORIES, copy_template
from faults.verdicts import Trial, tabulate

Draw = Callable[[Path], Trial]
"""One trial, in a folder that is not there yet."""

_TRANSIENT = (errno.EIO, errno.EACCES, errno.EMFILE, errno.ESTALE)


@attrs.frozen
class Budget:
    """How many trials of each group; seconds: stop after this time, with trials of all groups mixed."""

    kills: int
    disks: int
    reads: int
    inputs: int
    files: int
    pairs: int
    seconds: float | None = None


def run_campaign(
    scratch: Path, budget: Budget, seed: int, jobs: int, only: str | None, out: Path | None, log: Path | None = None
) -> int:
    """Run the trials, print the table, and write it. Returns 1 where a promise was broken.

    log: folder for a line per trial. A campaign that was interrupted goes on after the trials that stand there.
    """
    log = log or scratch
    _refuse_other_campaign(log, {"seed": seed, "jobs": jobs, "only": only, "budget": attrs.asdict(budget)})
    import_everything()
    began = time.monotonic()
    groups = {name: list(draws) for name, draws in _groups(scratch, budget, seed, only).items()}
    trials = _mixed(groups, seed)
    print(f"{len(trials):,} trials; templates made in {time.monotonic() - began:.0f} s", flush=True)
    deadline = None if budget.seconds is None else time.monotonic() + budget.seconds
    done = _in_lanes(trials, scratch, log, jobs, deadline)
    rows = tabulate(done)
    broken = [trial for trial in done if not trial.is_good]
    for row in rows:
        print(f"{row['group']:16} {row['subject']:34} {row['trials']:6,}  {row['verdicts']}")
    for trial in broken:
        print(f"BROKEN {trial.line()}")
    if out is not None:
        text = json.dumps(_document(rows, broken, time.monotonic() - began, jobs), indent=1) + "\n"
        out.write_text(text.replace(str(scratch), "SCRATCH"))
    print(f"{len(done) - len(broken)} passed, {len(broken)} failed")
    return 1 if broken or not done else 0


def make_again(scratch: Path, file: Path) -> int:
    """Make the trials again that broke a promise, of a campaign that was written to `file`; keep the outcome there.

    Returns 1 where one broke it again.
    """
    import_everything()
    document = json.loads(file.read_text())
    made = []
    for number, broken in enumerate(document["broken"]):
        (story,) = (one for one in STORIES if one.name == broken["subject"])
        calm = undisturbed(story, scratch / str(number))
        disturbance = disturbances.again(broken["group"], broken["repeat"])
        made.append(_disturb(calm, disturbance)(scratch / f"{number}-again"))
        print(made[-1].line())
    document["made_again"] = [attrs.asdict(trial) for trial in made]
    file.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if all(trial.is_good for trial in made) else 1


def _refuse_other_campaign(log: Path, asked: dict[str, object]) -> None:
    """Raise RuntimeError where the trials in a folder are those of another campaign, or of another clocs."""
    asked["source"] = _source()
    log.mkdir(exist_ok=True)
    file = log / "campaign.json"
    if file.exists() and json.loads(file.read_text()) != asked:
        raise RuntimeError(f"{file} was begun with other arguments or another source: {file.read_text()}. Remove it.")
    file.write_text(json.dumps(asked))


def _source() -> str:
    """Return a digest of the source of clocs and of its plugins."""
    import clocs_core
    import clocs_plugins

    digest = hashlib.sha256()
    for place in (*clocs_core.__path__, *clocs_plugins.__path__):
        for file in sorted(Path(place).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _groups(scratch: Path, budget: Budget, seed: int, only: str | None) -> dict[str, Iterator[Draw]]:
    wanted = None if only is None else set(only.split(","))

    def is_wanted(name: str) -> bool:
        return wanted is None or name in wanted

    groups: dict[str, Iterator[Draw]] = {}
    stories = [undisturbed(story, scratch) for story in STORIES] if _needs_stories(is_wanted) else []
    rng = random.Random(seed)
    if is_wanted("kills"):
        groups["kills"] = _sample(
            [
                *(_disturb(calm, one) for calm in stories for one in disturbances.all_kills(calm)),
                *(_disturb(calm, disturbances.kill_after(rng)) for calm in stories for _ in range(budget.kills // 5)),
            ],
            budget.kills,
            rng,
        )
    if is_wanted("disks"):
        every = [_disturb(calm, one) for calm in stories for one in disturbances.all_full_disks(calm)]
        groups["disks"] = _sample(every, budget.disks, rng)
    if is_wanted("reads"):
        groups["reads"] = _reads(scratch, stories, budget.reads, rng)
    if is_wanted("inputs"):
        groups["inputs"] = _inputs(scratch, budget.inputs, rng)
    if is_wanted("files"):
        groups["files"] = _files(scratch, budget.files, rng)
    if is_wanted("pairs"):
        groups["pairs"] = _pairs(stories, budget.pairs, rng)
    return groups


def _needs_stories(is_wanted: Callable[[str], bool]) -> bool:
    return any(map(is_wanted, ("kills", "disks", "reads", "pairs")))


def _disturb(calm: Undisturbed, disturbance: Disturbance) -> Draw:
    def draw(folder: Path) -> Trial:
        copy_template(calm.template, folder)
        return disturbance(calm, folder)

    return draw


def _sample(every: list[Draw], count: int, rng: random.Random) -> Iterator[Draw]:
    return iter(rng.sample(every, min(count, len(every))))


def _reads(scratch: Path, stories: Sequence[Undisturbed], count: int, rng: random.Random) -> Iterator[Draw]:
    """Draw failing reads, jumping clocks, and files that change between listing and reading."""
    template = scratch / "changing-template"
    OWN_FORMS[0].make(template)
    for number in range(count):
        calm = stories[number % len(stories)]
        if number % 4 < 2:
            yield _disturb(calm, disturbances.fail_read(rng.randrange(max(1, calm.reads)), rng.choice(_TRANSIENT)))
        elif number % 4 == 2:
            yield _disturb(calm, disturbances.jump_clock(rng.randrange(1 << 30)))
        else:
            yield _change(OWN_FORMS[0], template, rng.randrange(1 << 30))


def _change(form: Form, template: Path, seed: int) -> Draw:
    return lambda folder: rivals.change_while_preparing(form, template, folder, seed)


def _inputs(scratch: Path, count: int, rng: random.Random) -> Iterator[Draw]:
    data = os.environ.get("CLOCS_TEST_DATA")
    forms = (*OWN_FORMS, *(real_forms(Path(data)) if data else ()))
    templates = []
    for number, form in enumerate(forms):
        templates.append(scratch / f"form-{number}")
        form.make(templates[-1])
        calm = inputs.prepare_unchanged(form, templates[-1], scratch / f"form-{number}.calm")
        if calm.code:
            raise RuntimeError(f"{form.name} cannot be prepared undamaged: {calm.text}")
    for number in range(count):
        which = number % len(forms)
        yield _input(forms[which], templates[which], rng.randrange(1 << 30))


def _input(form: Form, template: Path, seed: int) -> Draw:
    return lambda folder: prepare_mutated(form, template, folder, seed)


def _files(scratch: Path, count: int, rng: random.Random) -> Iterator[Draw]:
    template = scratch / "files-template"
    own_files.fill_template(template)
    expected = {}
    for reading in READINGS:
        folder = scratch / "calm-reading"
        shutil.copytree(template, folder)
        ended = run(reading.work(folder), scratch / "calm-reading.log", None, PATIENCE)
        if ended.code:
            raise RuntimeError(f"{reading.name} failed on undamaged files: {ended.text}")
        expected[reading.name] = reading.results(folder)
        shutil.rmtree(folder)
    for number in range(count):
        reading = READINGS[number % len(READINGS)]
        yield _file(reading, expected[reading.name], template, rng.randrange(1 << 30))


def _file(reading: Reading, expected: dict[str, str], template: Path, seed: int) -> Draw:
    return lambda folder: read_damaged(reading, expected, template, folder, seed)


def _pairs(stories: Sequence[Undisturbed], count: int, rng: random.Random) -> Iterator[Draw]:
    for number in range(count):
        seed = rng.randrange(1 << 30)
        turn = number % (len(stories) + 1)
        yield _other_race(seed) if turn == len(stories) else _race(stories[turn], seed)


def _race(calm: Undisturbed, seed: int) -> Draw:
    return lambda folder: rivals.race(calm, folder, seed)


def _other_race(seed: int) -> Draw:
    return lambda folder: rivals.race_other(folder, seed)


def _mixed(groups: dict[str, list[Draw]], seed: int) -> list[Draw]:
    """Put the trials in an order in which every group is under way from the beginning, in proportion."""
    rng = random.Random(seed)
    keyed = [
        ((number + rng.random()) / len(draws), name, number, draw)
        for name, draws in groups.items()
        for number, draw in enumerate(draws)
    ]
    return [draw for _, _, _, draw in sorted(keyed, key=lambda one: one[:3])]


# --------------------------------------------------------------------------------------------------------------- lanes


def _in_lanes(trials: Sequence[Draw], scratch: Path, log: Path, jobs: int, deadline: float | None) -> list[Trial]:
    """Run every `jobs`-th trial in a process of its own, each of which forks for every trial."""
    lanes = []
    for lane in range(jobs):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                _run_lane(trials[lane::jobs], scratch / f"lane-{lane}", log / f"lane-{lane}.jsonl", deadline)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        lanes.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in lanes]
    if any(codes):
        raise RuntimeError("a lane of the campaign itself failed; its traceback is above")
    lines = [line for file in sorted(log.glob("lane-*.jsonl")) for line in file.read_text().splitlines()]
    return [Trial(**json.loads(line)) for line in lines]


def _run_lane(trials: Sequence[Draw], scratch: Path, log: Path, deadline: float | None) -> None:
    scratch.mkdir()
    done = len(log.read_text().splitlines()) if log.exists() else 0
    with open(log, "a", buffering=1) as file:
        for number, draw in enumerate(trials):
            if number < done:
                continue
            if deadline is not None and time.monotonic() > deadline:
                break
            trial = draw(scratch / str(number))
            file.write(trial.line() + "\n")
            if not trial.is_good:
                print(f"BROKEN {trial.line()}", flush=True)
            for path in scratch.glob(f"{number}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _document(rows: list[dict[str, object]], broken: list[Trial], seconds: float, jobs: int) -> dict[str, object]:
    import torch

    from clocs_core import __version__

    return {
        "command": " ".join(["python", *sys.argv]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {"clocs": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "date": str(date.today()),
        "jobs": jobs,
        "seconds": round(seconds),
        "trials": sum(int(str(row["trials"])) for row in rows),
        "broken": [attrs.asdict(trial) for trial in broken],
        "table": rows,
    }
