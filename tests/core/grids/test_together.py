"""Several pre-trainings as one job: what it runs, which locks it holds, and how each of them ended."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from pathlib import Path

import attrs

from clocs_core.contracts.jobs import Job, Outcome
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.executor import LocalProcesses
from clocs_core.grids.together import SeveralRuns, as_one_job, error_line, following, take_alike

FILL = (
    "import sys, json, pathlib\n"
    "for words in json.loads(sys.argv[3]) if sys.argv[2] == '--together' else [sys.argv[1:]]:\n"
    "    folder = pathlib.Path(words[2]); folder.mkdir(exist_ok=True); (folder / 'settings.toml').touch()\n"
    "    if folder.name == 'bad': print('Error: bad: no such thing.')\n"
    "    else: (folder / 'report.json').touch()\n"
)


def job(folder: Path) -> Job:
    fresh, resume = (("run", word, str(folder)) for word in ("--out", "--resume"))
    return Job(name=folder.name, folder=folder, fresh=fresh, resume=resume, group="demo")


def finish(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir()
        (folder / "report.json").touch()


def test_the_command_has_what_is_left(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in "abc")
    both = as_one_job([job(one) for one in (c, a, b)])
    assert isinstance(both, SeveralRuns)
    assert both.locks == (job(a).lock, job(b).lock, job(c).lock)
    a.mkdir()
    (a / "settings.toml").touch()
    command = both.command()
    assert command is not None
    assert command[:2] == ("run", "--together")
    assert json.loads(command[2]) == [["run", "--out", str(c)], ["run", "--resume", str(a)], ["run", "--out", str(b)]]
    finish(b, c)
    assert both.command() == job(a).resume, "one that is left is a plain run"
    (a / "report.json").touch()
    assert both.command() is None


def test_one_run_is_its_own_job(tmp_path: Path) -> None:
    one = job(tmp_path / "a")
    assert as_one_job([one]) is one
    assert one.locks == (one.lock,)


def test_each_run_is_done_or_failed_by_itself(tmp_path: Path) -> None:
    both = as_one_job([job(tmp_path / name) for name in ("good", "bad")])
    assert isinstance(both, SeveralRuns)
    with LocalProcesses((sys.executable, "-S", "-E", "-c", FILL), 1, time.monotonic) as executor:
        whole = executor.submit(both).result()
    good, bad = both.outcomes(whole)
    assert not good.error
    assert bad.error == "Error: no such thing. (good.log)"
    assert good.seconds == bad.seconds == whole.seconds / 2
    assert error_line(tmp_path / "bad", "no such thing.") == "Error: bad: no such thing."


def test_a_process_that_says_nothing_is_the_error_of_all_that_are_not_done(tmp_path: Path) -> None:
    both = as_one_job([job(tmp_path / name) for name in ("a", "b")])
    assert isinstance(both, SeveralRuns)
    finish(tmp_path / "b")
    killed = Outcome("it said nothing (killed by signal 9; a.log)", 4.0)
    assert both.outcomes(killed) == (attrs.evolve(killed, seconds=2.0), Outcome(seconds=2.0))


def test_pre_trainings_of_one_data_set_go_together_those_of_the_same_leads_first() -> None:
    def run(dataset: str, seed: int, leads: str = "4") -> Pretraining:
        return Pretraining(method="m", dataset=dataset, seed=seed, leads=leads)

    first, other, twelve, last = run("a", 0), run("b", 0), run("a", 1, "12"), run("a", 2)
    cells = (GridCell(pretraining=run("a", 9), downstream="a", protocol="linear"),)
    ready: deque[Pretraining | tuple[GridCell, ...]] = deque([first, cells, other, twelve, last])
    assert take_alike(ready, 2) == [first, last]
    assert take_alike(ready, 2) == [cells]
    assert take_alike(ready, 1) == [other]
    assert take_alike(ready, 5) == [twelve]
    assert not ready


def test_runs_that_go_alone_keep_the_order_of_the_table() -> None:
    runs = [Pretraining(method=method, dataset="a", seed=seed) for method in ("z", "a") for seed in (0, 1)]
    ready: deque[Pretraining | tuple[GridCell, ...]] = deque(runs)
    assert [take_alike(ready, 1) for _ in runs] == [[run] for run in runs]


def test_evaluations_on_one_data_set_by_one_protocol_go_together() -> None:
    def cells(seed: int, downstream: str = "a", protocol: str = "linear") -> tuple[GridCell, ...]:
        run = Pretraining(method="m", dataset="a", seed=seed, leads="4")
        return (GridCell(pretraining=run, downstream=downstream, protocol=protocol),)

    first, tuned, elsewhere, last = cells(0), cells(1, protocol="finetune"), cells(2, downstream="b"), cells(3)
    run = Pretraining(method="m", dataset="a", seed=4, leads="4")
    ready: deque[Pretraining | tuple[GridCell, ...]] = deque([first, tuned, elsewhere, run, last])
    assert take_alike(ready, 5) == [first, last]
    assert take_alike(ready, 5) == [tuned]
    assert take_alike(ready, 5) == [elsewhere]
    assert take_alike(ready, 5) == [run]


def test_the_command_of_several_evaluations_evaluates(tmp_path: Path) -> None:
    words = ("evaluate", "run", "--out")
    parts = [Job(name=one, folder=tmp_path / one, fresh=(*words, one), resume=(*words, one), group="a") for one in "ab"]
    command = as_one_job(parts).command()
    assert command is not None
    assert command[:2] == ("evaluate", "--together")
    assert json.loads(command[2]) == [[*words, "a"], [*words, "b"]]


def test_the_seeds_of_a_method_are_divided_among_jobs() -> None:
    """Two methods of five seeds in jobs of at most four: three jobs, of both methods each, whatever their order."""
    methods = ("mt-ssl", "cmsc")
    runs = [Pretraining(method=name, dataset="a", seed=seed, leads="4") for name in methods for seed in range(5)]
    ready: deque[Pretraining | tuple[GridCell, ...]] = deque(runs)
    jobs = [take_alike(ready, 4) for _ in range(3)]
    assert not ready
    assert sorted(len(job) for job in jobs) == [3, 3, 4]
    assert {one for job in jobs for one in job} == set(runs)
    assert [{run.method for run in job if isinstance(run, Pretraining)} for job in jobs] == [set(methods)] * 3


def test_evaluations_follow_a_pre_training_whose_recordings_they_read() -> None:
    run, other = (Pretraining(method="m", dataset=name) for name in ("a", "b"))
    own, elsewhere = (
        (GridCell(pretraining=run, downstream=downstream, protocol="linear"),) for downstream in ("a", "b")
    )
    theirs = (GridCell(pretraining=other, downstream="b", protocol="linear"),)
    assert following([run], {run: (elsewhere, own), other: (theirs,)}) == [own]
    assert following([own], {run: (own,)}) == []
