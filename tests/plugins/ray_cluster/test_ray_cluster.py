"""A grid on a Ray cluster of three nodes, one of which is killed while it works, and clusters that cannot serve."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import pytest
import run_all

from clocs_core import Job, SettingsError, Workplace
from clocs_core.cli import main
from clocs_core.data import remote_shards, shards
from clocs_plugins.ray_cluster import RayOptions, open_ray
from clocs_plugins.ray_cluster.cluster import has_token, lacking
from clocs_plugins.ray_cluster.jobs import RayJobs, Remarks, remarks

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).parents[2] / "benchmarks" / "fake_grid_command.py"))
GRID = ("--methods", "cmsc,simclr,byol", "--datasets", "demo", "--seeds", "5", "--embedding-dims", "32,64")
HERE = {f"{one.dist.name}:{one.name}": one.dist.version for one in entry_points(group="clocs") if one.dist}


def test_a_machine_without_a_plugin_is_told_in_one_sentence() -> None:
    """Its jobs would fail one by one, each for a reason that names a method."""
    assert lacking(HERE) == ""
    assert lacking({**HERE, "clocs-plugin-eeg:eeg": "1.2"}) == (
        "has no plugin 'eeg': install clocs-plugin-eeg 1.2 there."
    )
    assert "instead of 9: install the same version" in lacking({"clocs:demo": "9"})


def test_a_token_is_sent_where_there_is_one_and_nothing_else_is_asked_for(tmp_path: Path) -> None:
    assert not has_token({}, tmp_path)
    assert has_token({"RAY_AUTH_TOKEN": "a"}, tmp_path)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a")
    assert has_token({}, tmp_path)
    assert not has_token({"RAY_AUTH_MODE": "disabled"}, tmp_path)


def test_jobs_that_would_wait_for_ever_or_leave_gpus_idle_are_remarked() -> None:
    small, large = {"CPU": 2.0, "memory": 4e9}, {"CPU": 8.0, "GPU": 1.0, "memory": 64e9}
    assert remarks([small, large], {"num_cpus": 4, "num_gpus": 0.25, "memory": 8e9}) == []
    (idle,) = remarks([small, large], {"num_cpus": 4, "num_gpus": 0, "memory": None})
    assert idle == "The cluster has GPUs, and no job gets one: -e gpus=0.25 lets four jobs share one."
    (waits,) = remarks([small], {"num_cpus": 4, "num_gpus": 0.5, "memory": None})
    assert waits.startswith("No machine of the cluster has 4 processors, 0.5 GPUs and 0 GB: jobs wait until one joins.")


def test_pages_of_log_that_ray_prints_become_one_line() -> None:
    said: list[str] = []
    with redirect_stdout(Remarks(said.append)):
        sys.stdout.write("\x1b[33m(raylet)\x1b[0m Raylet is terminated. Last 20 lines:\n    [state-dump] 1\n")
        sys.stdout.write(
            "\x1b[33m(raylet)\x1b[0m Raylet is terminated. Last 20 lines:\n    [state-dump] 1\n    [state-dump] 2\n"
        )
    assert said == ["(raylet) Raylet is terminated. Last 20 lines:"]


@pytest.mark.parametrize("share", [-0.5, 1.5])
def test_a_share_of_gpus_that_ray_has_not_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="be between 0 and 1, or a whole number"):
        RayOptions(gpus=share)
    assert RayOptions(gpus=2.0).gpus == 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes on this machine, each with room for two jobs; the first is the head, which keeps its node."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'clocs[ray]'")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    for _ in range(2):
        found.add_node(num_cpus=2, wait=False)
    found.wait_for_nodes()
    try:
        yield found
    finally:
        import ray

        ray.shutdown()
        found.shutdown()


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """Jobs take a second; the log says which began and which ended."""
    command = ("env", f"FAKE_LOG={tmp_path / 'log'}", "FAKE_SECONDS=1", *FAKE)
    (tmp_path / "log").touch()
    return Workplace(command=command, at_once=6, threads=1, plugins=HERE)


def job(folder: Path, group: str = "") -> Job:
    words = ("run", "--plugin", "cmsc", "--dataset", "demo", "--split-seed", "0", "--out", str(folder))
    return Job(name=folder.name, folder=folder, fresh=words, resume=words, group=group)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_an_address_that_does_not_answer_is_refused() -> None:
    """A closed port at once; one that accepts and says nothing, when the patience is over."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'clocs[ray]'")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(SettingsError, match=f"No Ray cluster answers at {address} within 20 s .*refused"):
        open_ray(RayOptions(address=address), Workplace(command=FAKE))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"No Ray cluster answers at {address} within 2 s"):
            open_ray(RayOptions(address=address, patience=2.0), Workplace(command=FAKE))


@pytest.mark.slow
def test_without_an_address_a_cluster_is_started_here(tmp_path: Path) -> None:
    """It lives until the command is done, and no longer."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'clocs[ray]'")
    asked = ("data", "prepare", "demo", "-o", "patients=6", "--engine", "ray", "--data-root", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "clocs_core", *asked], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"Frames: {tmp_path}" in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_worker_without_a_plugin_is_refused_before_the_first_job(cluster: Any) -> None:
    with pytest.raises(SettingsError, match=r"The machine \S+ of the Ray cluster has no plugin 'eeg': install"):
        open_ray(RayOptions(address=cluster.address), Workplace(command=FAKE, plugins={"clocs-plugin-eeg:eeg": "1.2"}))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_jobs_with_the_same_recordings_run_on_one_node_and_leaving_stops_them(
    cluster: Any, place: Workplace, tmp_path: Path
) -> None:
    """Frames that one job read are in the memory of its machine. A stopped command gets Ctrl-C, and saves itself."""
    said: list[str] = []
    jobs = open_ray(RayOptions(address=cluster.address), attrs.evolve(place, say=said.append))
    assert isinstance(jobs, RayJobs)
    with jobs:
        nodes: dict[str, set[str]] = {"a": set(), "b": set()}
        for number in range(3):
            ended = {group: jobs.submit(job(tmp_path / f"{group}{number}", group)) for group in nodes}
            for group, future in ended.items():
                assert future.result().error == ""
                nodes[group].add(jobs.last[group])
        assert [len(found) for found in nodes.values()] == [1, 1]
        unseen = jobs.submit(job(tmp_path / "nowhere" / "x")).result()
        assert "of the Ray cluster does not see" in unseen.error
        begun = time.monotonic()
        waiting = jobs.submit(job(tmp_path / "stopped-in-time"))
        log = tmp_path / "log"
        while "begin stopped" not in log.read_text():
            time.sleep(0.05)
    assert time.monotonic() - begun < 15
    assert waiting.result().error
    assert "end stopped" not in log.read_text()
    assert said[0].startswith(f"Ray cluster at {cluster.address}; dashboard: ")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("no_figures")
def test_a_grid_survives_the_loss_of_a_node(
    cluster: Any, place: Workplace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thirty encoders and their scores: every job is done once, and the page is that of this machine alone."""
    command = ("--command", " ".join(FAKE))
    assert run_all.main([*GRID, *command, "--jobs", "2", "--out", str(tmp_path / "here")]) == 0
    here, log, lost = capsys.readouterr().out, tmp_path / "log", cluster.list_all_nodes()[-1]

    def kill_a_node() -> None:
        while log.read_text().count("end ") < 6:
            time.sleep(0.1)
        cluster.remove_node(lost, allow_graceful=False)

    threading.Thread(target=kill_a_node, daemon=True).start()
    began = time.monotonic()
    there = run_all.main(
        [*GRID, "--out", str(tmp_path / "there")],
        lambda request, say: open_ray(RayOptions(address=cluster.address), place),
    )
    took = time.monotonic() - began
    assert there == 0
    assert len(cluster.list_all_nodes()) == 2
    lines = log.read_text().splitlines()
    done = Counter(line for line in lines if line.startswith("end "))
    assert len(done) == 60
    assert set(done.values()) == {1}
    assert capsys.readouterr().out == here
    again = sum(line.startswith("begin ") for line in lines) - 60
    sys.stderr.write(f"60 jobs of 1 s in {took:.0f} s; {again} begun again; {os.cpu_count()} cores\n")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_preparation_survives_the_loss_of_a_node(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dead worker's recordings are prepared again, and the frames are those of this machine alone, bit by bit."""
    monkeypatch.setattr(shards, "SHARD", 8)
    monkeypatch.setattr(remote_shards, "PART", 6)
    asked = ("data", "prepare", "demo", "-o", "patients=200")
    assert main([*asked, "--data-root", str(tmp_path / "here")]) == 0
    here = capsys.readouterr().out
    while len(cluster.list_all_nodes()) < 3:
        cluster.add_node(num_cpus=2)
    lost = cluster.list_all_nodes()[-1]

    def kill_a_node() -> None:
        while not list(tmp_path.glob("there/prepared/demo/*.partial/shard-*.json")):
            time.sleep(0.02)
        cluster.remove_node(lost, allow_graceful=False)

    killer = threading.Thread(target=kill_a_node, daemon=True)
    killer.start()
    flags = ("--engine", "ray", "--address", cluster.address, "--workers", "6")
    began = time.monotonic()
    assert main([*asked, "--data-root", str(tmp_path / "there"), *flags]) == 0
    took = time.monotonic() - began
    killer.join()
    assert len(cluster.list_all_nodes()) == 2
    told = capsys.readouterr()
    assert told.out == here.replace(f"{tmp_path}/here", f"{tmp_path}/there")
    assert bytes_below(tmp_path / "there") == bytes_below(tmp_path / "here")
    sys.stderr.write(f"prepared in {took:.0f} s\n")


def bytes_below(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
