"""Runs over several processes, each in a process of its own: equal to one, killed, resumed, and refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SMALL = ("--plugin", "cmsc", "--dataset", "demo", "-o", "patients=16", "-o", "resamples=20")
EXACT = (*SMALL, "--batch-size", "22", "--sync-batchnorm", "true", "--dropout", "0", "--device", "cpu")
# Without biases before BatchNorm: their gradient is zero, and Adam makes steps of its rounding.
EXACT += ("--encoder", "resnet1d", "--widths", "4,8", "--blocks", "1")


def start(*words: object, module: tuple[str, ...] = (), **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, *module, "-m", "clocs_core", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    _, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return err


def epochs(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def scores(folder: Path) -> list[float]:
    return [one["value"] for one in json.loads((folder / "report.json").read_text())["scores"]]


def wait_for_epochs(folder: Path, count: int) -> None:
    metrics = folder / "metrics.jsonl"
    for _ in range(2400):
        if metrics.exists() and metrics.read_text().count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} epochs in two minutes")


def process_of_rank(rank: int, parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"RANK={rank}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    return int(entry.name)
            except OSError:
                continue
    raise AssertionError(f"process {parent} has no child of rank {rank}")


@pytest.mark.timeout(900)
def test_one_two_and_four_processes_train_alike(tmp_path: Path) -> None:
    """Five epochs with ragged batches; torchrun itself starts the four."""
    settings = ("run", *EXACT, "--epochs", "5", "--data-root", tmp_path)
    ended(start(*settings, "--out", tmp_path / "1"))
    ended(start(*settings, "--out", tmp_path / "2", "--processes", 2))
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4")
    ended(start(*settings, "--out", tmp_path / "4", module=torchrun))
    one = epochs(tmp_path / "1")
    assert len(one) == 5
    for count in ("2", "4"):
        for found, expected in zip(epochs(tmp_path / count), one, strict=True):
            assert found["validation_loss"] == pytest.approx(expected["validation_loss"], rel=1e-5)
        report = json.loads((tmp_path / count / "report.json").read_text())
        assert report["environment"]["processes"] == count
        assert scores(tmp_path / count) == pytest.approx(scores(tmp_path / "1"), abs=1e-4)


@pytest.mark.timeout(900)
def test_an_evaluation_by_two_processes_is_that_of_one(tmp_path: Path) -> None:
    """Linear evaluation is equal to rounding. Fine-tuning has other statistics of BatchNorm: it ends, and once."""
    ended(start("run", *EXACT, "--epochs", "1", "--data-root", tmp_path, "--out", tmp_path / "run"))
    shared = ("--data-root", tmp_path, "--device", "cpu", "--resamples", "20")
    scores = {}
    for count in (1, 2):
        out = tmp_path / f"linear{count}"
        ended(start("evaluate", tmp_path / "run", *shared, "--out", out, "--processes", count))
        scores[count] = [one["value"] for one in json.loads((out / "report.json").read_text())["scores"]]
    assert scores[1] == pytest.approx(scores[2], abs=1e-6)
    tuned = (*shared, "--out", tmp_path / "tuned", "--protocol", "finetune", "--epochs", "2", "--processes", 2)
    for _ in range(2):  # the second finds it finished, and lets the other process go
        ended(start("evaluate", tmp_path / "run", *tuned))
    report = json.loads((tmp_path / "tuned" / "report.json").read_text())
    assert {one["epochs"] for one in report["cells"] if one["protocol"] == "finetune"} == {2}


@pytest.mark.timeout(600)
def test_two_processes_write_the_bytes_of_one_embedding_more_than_one_batch(tmp_path: Path) -> None:
    """Else each process would embed other batches, and round otherwise."""
    ended(start("run", *EXACT, "--epochs", "1", "--data-root", tmp_path, "--out", tmp_path / "run"))
    more = ("-o", "patients=60", "--leads", "12", "--data-root", tmp_path, "--device", "cpu")
    for count in (1, 2):
        ended(start("embed", tmp_path / "run", *more, "--processes", count, "--out", tmp_path / f"{count}.csv"))
    one, two = ((tmp_path / f"{count}.csv").read_bytes() for count in (1, 2))
    assert one.count(b"\n") > 1025
    assert one == two


@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_a_killed_process_ends_all_in_a_sentence_and_the_run_is_resumed(tmp_path: Path) -> None:
    settings = ("run", *EXACT, "--epochs", "30", "--data-root", tmp_path)
    ended(start(*settings, "--out", tmp_path / "whole", "--processes", 2))
    for name in ("same", "other"):
        process = start(*settings, "--out", tmp_path / name, "--processes", 2)
        wait_for_epochs(tmp_path / name, 3)
        killed = time.monotonic()
        os.kill(process_of_rank(1, process.pid), signal.SIGKILL)
        err = ended(process, code=2)
        assert time.monotonic() - killed < 30
        assert sum(line.startswith("Error: ") for line in err.splitlines()) == 1
        assert "Process 1 of 2 was ended by SIGKILL, and the others were stopped." in err
        assert not list((tmp_path / name).glob("*.tmp*"))
    ended(start("run", "--resume", tmp_path / "same", "--processes", 2))
    ended(start("run", "--resume", tmp_path / "other"))
    whole, same, other = (epochs(tmp_path / name) for name in ("whole", "same", "other"))
    assert [one["validation_loss"] for one in same] == [one["validation_loss"] for one in whole]
    for found, expected in zip(other, whole, strict=True):
        assert found["validation_loss"] == pytest.approx(expected["validation_loss"], rel=1e-4)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_torchrun_starts_all_again_after_one_was_killed_and_they_go_on(tmp_path: Path) -> None:
    settings = ("run", *EXACT, "--epochs", "30", "--data-root", tmp_path)
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
    ended(start(*settings, "--out", tmp_path / "whole", module=torchrun))
    process = start(*settings, "--out", tmp_path / "killed", module=torchrun)
    wait_for_epochs(tmp_path / "killed", 3)
    os.kill(process_of_rank(1, process.pid), signal.SIGKILL)
    ended(process)
    whole, killed = (epochs(tmp_path / name) for name in ("whole", "killed"))
    assert [one["validation_loss"] for one in killed] == [one["validation_loss"] for one in whole]
    assert (tmp_path / "killed" / "report.html").exists()


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def by_hand(*words: list[object], **of_the_last: str) -> list[tuple[int, str]]:
    """Start a process for each command line, as ranks 0, 1 …; return the code and the errors of each.

    of_the_last: variables of the last process alone.
    """
    port = free_port()
    started = [
        start(
            *one, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(len(words)), MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port, **(of_the_last if rank == len(words) - 1 else {}),
        )
        for rank, one in enumerate(words)
    ]  # fmt: skip
    found = [process.communicate(timeout=240)[1] for process in started]
    return [(process.returncode, err) for process, err in zip(started, found, strict=True)]


@pytest.mark.timeout(600)
def test_processes_that_differ_and_batches_that_are_too_small_are_refused_once(tmp_path: Path) -> None:
    base = ["run", *SMALL, "--device", "cpu", "--data-root", tmp_path, "--epochs", "1", "--out", tmp_path / "run"]
    differ = by_hand([*base, "--batch-size", 8], [*base, "--batch-size", 9])
    small = by_hand([*base, "--batch-size", 1], [*base, "--batch-size", 1])
    for found, sentence in (
        (differ, "process 0 has train.batch_size = 8, and process 1 has train.batch_size = 9 in its place"),
        (small, "`--batch-size 1` is smaller than the 2 processes that share each batch"),
    ):
        assert [code for code, _ in found] == [2, 2], found
        said = [line for _, err in found for line in err.splitlines() if line.startswith("Error: ")]
        assert len(said) == 1, found
        assert sentence in said[0]
    assert not (tmp_path / "run" / "settings.toml").exists()


@pytest.mark.timeout(600)
def test_other_versions_are_refused_by_name(tmp_path: Path) -> None:
    """Of a library here; those of plugins are compared in the same way."""
    other = tmp_path / "path" / "scipy-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scipy\nVersion: 0.0.1\n")
    base = ["run", *SMALL, "--device", "cpu", "--data-root", tmp_path, "--epochs", "1", "--out", tmp_path / "run"]
    found = by_hand(base, base, PYTHONPATH=str(other.parent))
    assert [code for code, _ in found] == [2, 2], found
    (said,) = [line for _, err in found for line in err.splitlines() if line.startswith("Error: ")]
    assert f"process 0 has scipy = {version('scipy')}, and process 1 has scipy = 0.0.1 in its place" in said
    assert not (tmp_path / "run" / "settings.toml").exists()


ELSEWHERE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
"""Begin of a command that sees an empty folder in place of the one that follows."""


@pytest.mark.timeout(600)
def test_a_process_that_cannot_see_the_run_folder_says_so(tmp_path: Path) -> None:
    """As on two machines without a shared disk."""
    (tmp_path / "run").mkdir()
    mount = [*ELSEWHERE, tmp_path / "run", "true"]
    if shutil.which("unshare") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("no mount of its own for a process here")
    base = ["run", *SMALL, "--device", "cpu", "--data-root", tmp_path, "--epochs", "500", "--out", tmp_path / "run"]
    begun = start(*base)
    wait_for_epochs(tmp_path / "run", 1)
    begun.send_signal(signal.SIGINT)
    ended(begun, 130)
    command = [*ELSEWHERE, tmp_path / "run", sys.executable, "-m", "clocs_core", "run", "--resume", tmp_path / "run"]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    first = start("run", "--resume", tmp_path / "run", RANK="0", LOCAL_RANK="0", **shared)
    variables = os.environ | shared | {"RANK": "1", "LOCAL_RANK": "1"}
    other = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=240, check=False)
    first.kill()  # as torchrun does when one of its processes has ended
    first.communicate()
    assert other.returncode == 2
    (said,) = [line for line in other.stderr.splitlines() if line.startswith("Error: ")]
    assert "Process 1: " in said
    assert "All processes of a training must see the same run folder." in said
    (tmp_path / "new").mkdir()
    fresh = ["run", *SMALL, "--device", "cpu", "--data-root", tmp_path, "--epochs", "1", "--out", tmp_path / "new"]
    shared["MASTER_PORT"] = free_port()
    first = start(*fresh, RANK="0", LOCAL_RANK="0", **shared)
    command = [*ELSEWHERE, tmp_path / "new", sys.executable, "-m", "clocs_core", *fresh]
    variables |= shared
    other = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=240, check=False)
    found = first.communicate(timeout=60)[1] + other.stderr
    assert (first.returncode, other.returncode) == (2, 2), found
    (said,) = [line for line in found.splitlines() if line.startswith("Error: ")]
    assert "process 1 has epochs in the run folder = none, it does not see the folder in its place" in said


@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_processes_end_with_their_launcher_and_the_run_is_resumed(tmp_path: Path) -> None:
    """Nobody would stop them otherwise, and a second launcher would find the folder taken."""
    settings = ("run", *EXACT, "--epochs", "1000", "--patience", "1000", "--data-root", tmp_path)
    process = start(*settings, "--out", tmp_path / "run", "--processes", 2)
    wait_for_epochs(tmp_path / "run", 2)
    ranks = [process_of_rank(rank, process.pid) for rank in (0, 1)]
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while any(Path("/proc", str(rank)).exists() for rank in ranks) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [rank for rank in ranks if Path("/proc", str(rank)).exists()]
    process.communicate()
    done = len(epochs(tmp_path / "run"))
    again = start("run", "--resume", tmp_path / "run", "--processes", 2)
    wait_for_epochs(tmp_path / "run", done + 1)
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
