"""Ctrl-C, a full disk, two processes in one folder, a listener that fails."""

import json
import resource
import signal
import subprocess
import sys
import time

import pytest

from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

SMALL = ("--plugin", "cmsc", "--dataset", "demo", "--batch-size", "16", "-o", "patients=12", "-o", "resamples=20")


def clocs(*arguments, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "clocs_core", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def hear_ctrl_c():
    """Shells start jobs in the background deaf to it, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(*arguments, **how):
    """A process of its own, for what ends it or limits it."""
    process = clocs(*arguments, **how)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def here(*arguments):
    """The same in this process, which is quicker, for what goes well."""
    assert main([str(one) for one in arguments]) == 0


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_going_on_gives_the_uninterrupted_scores(tmp_path):
    """The work of a night must survive a slip of the finger."""
    settings = (*SMALL, "--epochs", "40", "--data-root", tmp_path)
    here("run", *settings, "--out", tmp_path / "whole")
    process = clocs("run", *settings, "--out", tmp_path / "stopped", preexec_fn=hear_ctrl_c)
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    for _ in range(600):
        if metrics.exists() and metrics.read_text().count("\n") >= 2:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"clocs run --resume {tmp_path / 'stopped'}" in err
    assert "Traceback" not in err
    here("run", "--resume", tmp_path / "stopped")
    whole, stopped = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "stopped"))
    for key in ("scores", "comparisons", "best_epoch", "epochs_run"):
        assert stopped[key] == whole[key]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [20_000, 300_000])
def test_a_full_disk_is_one_line_and_what_was_there_stays_whole(tmp_path, limit):
    """A limit on the size of files stands in for the disk: first the frames do not fit, then the checkpoint."""
    before = tmp_path / "before"
    here("run", *SMALL, "--epochs", "1", "--data-root", tmp_path / "d1", "--out", before)
    kept = {path: path.read_bytes() for path in before.rglob("*") if path.is_file()}
    data = tmp_path / "d1" if limit > 100_000 else tmp_path / "d2"

    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code, _, err = run(
        "run", *SMALL, "--epochs", "3", "--data-root", data, "--out", tmp_path / "after", preexec_fn=small_disk
    )
    assert code == 2, err
    assert err.strip().splitlines()[-1].startswith("Error: I/O error")
    assert "Traceback" not in err
    assert {path: path.read_bytes() for path in before.rglob("*") if path.is_file()} == kept
    if (tmp_path / "after").exists():  # there is room again: it goes on
        here("run", "--resume", tmp_path / "after")


def test_a_second_process_in_the_same_run_folder_is_refused(tmp_path, capsys):
    from filelock import FileLock

    here("run", *SMALL, "--epochs", "1", "--data-root", tmp_path, "--out", tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink()
    with FileLock(tmp_path / "run" / ".lock"):
        code = main(["run", "--resume", str(tmp_path / "run")])
    err = capsys.readouterr().err
    assert code == 2
    assert "Another process is working in" in err


def test_a_truncated_checkpoint_is_named(tmp_path, capsys):
    folder = tmp_path / "run"
    here("run", *SMALL, "--epochs", "1", "--data-root", tmp_path, "--out", folder)
    (folder / "report.json").unlink()
    whole = (folder / "checkpoint.safetensors").read_bytes()
    (folder / "checkpoint.safetensors").write_bytes(whole[:1000])
    code = main(["run", "--resume", str(folder)])
    err = capsys.readouterr().err
    assert code == 2
    assert "checkpoint.safetensors" in err
    assert "Traceback" not in err
