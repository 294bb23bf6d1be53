"""Several seeds that are killed or stopped at any moment are resumed, and end as if nobody had disturbed them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
import pytest
from fake_plugins import points
from fake_runs import RUN
from killed_runs import contents_of, finish, kill_before, list_operations
from no_pictures import without_pictures

from clocs_core.cli import main
from clocs_core.workflows import several_seeds
from clocs_core.workflows.several import pretrain_several

pytestmark = pytest.mark.slow


@attrs.frozen
class Place:
    """A folder with two seeds, and the data beside them."""

    folder: Path

    @property
    def seeds(self) -> Path:
        return self.folder / "runs" / "seeds"

    def start(self) -> int:
        """Begin the seeds, or go on with them, as the user would who looks at the folder."""
        words = [*RUN, "--seeds", "2", "--data-root", str(self.folder / "data"), "--out", str(self.seeds)]
        if (self.seeds / "seeds.toml").exists():
            words = ["run", "--resume", str(self.seeds)]
        return main([*words, "--workers", "1"], points())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    here = Place(tmp_path_factory.mktemp("kills"))
    with without_pictures():
        assert here.start() == 0  # in this process, so that forks have all that a run imports
        shutil.rmtree(here.folder / "runs")
        yield here


def summary_of(place: Place) -> dict[str, object]:
    held = json.loads((place.seeds / "summary.json").read_text(encoding="utf-8"))
    return {name: value for name, value in held.items() if name not in ("digest", "date", "command", "seconds")}


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_kill_at_any_moment_changes_nothing_but_the_time(
    place: Place, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """at_once=2 makes the seeds as on a GPU, by threads; a kill then comes in the middle of both."""
    monkeypatch.setattr(several_seeds, "pretrain_several", partial(pretrain_several, at_once=at_once))
    operations = list_operations(place.start, place.folder / "runs")
    whole = {seed: contents_of(place.seeds / f"seed{seed}") for seed in range(2)}
    summary = summary_of(place)
    moments = range(2, len(operations) - 4, max(1, len(operations) // 7))
    for number in (*moments, len(operations) - 3):
        shutil.rmtree(place.folder / "runs")
        kill_before(number, place.start, place.folder / "runs")
        finish(place.start, place.folder / "runs")
        for seed in range(2):
            assert contents_of(place.seeds / f"seed{seed}") == whole[seed], f"killed before {operations[number - 1]}"
        assert summary_of(place) == summary
    shutil.rmtree(place.folder / "runs")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_all_seeds_and_says_how_to_go_on(tmp_path: Path, sent: int, code: int) -> None:
    out = tmp_path / "seeds"
    small = "--plugin cmsc --dataset demo --batch-size 16 -o patients=12 -o resamples=20 --epochs 3000 --device cpu"
    words = ["run", *small.split(), "--seeds", "2", "--data-root", str(tmp_path / "data"), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "clocs_core", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )
    metrics = out / "seed0" / "metrics.jsonl"
    for _ in range(600):
        if metrics.exists() and metrics.read_text().count("\n") >= 2:
            break
        time.sleep(0.05)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert f"training so far is saved. Resume it: clocs run --resume {out}" in err
    assert (out / "seed0" / "checkpoint.safetensors").exists()
