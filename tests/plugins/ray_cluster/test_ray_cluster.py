"""A grid on a Ray cluster of three nodes, one of which is killed while it works, and clusters that cannot serve."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import run_all

from clocs_core import SettingsError, Workplace
from clocs_plugins.ray_cluster import RayOptions, open_ray
from clocs_plugins.ray_cluster.cluster import lacking

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).parents[2] / "benchmarks" / "fake_grid_command.py"))
GRID = ("--methods", "cmsc,simclr,byol", "--datasets", "demo", "--seeds", "5", "--embedding-dims", "32,64")
HERE = {f"{one.dist.name}:{one.name}": one.dist.version for one in entry_points(group="clocs") if one.dist}


def test_a_machine_without_a_plugin_is_told_in_one_sentence() -> None:
    """Its jobs would fail one by one, each for a reason that names a method."""
    assert lacking(HERE) == ""
    assert lacking({**HERE, "clocs-plugin-eeg:eeg": "1.2"}) == (
        "has no plugin 'eeg': install clocs-plugin-eeg 1.2 there."
    )
    assert "where this grid has 9: install the same version" in lacking({"clocs:demo": "9"})


@pytest.fixture
def quiet_ray() -> Any:
    return pytest.importorskip("ray", reason="ray is not installed: pip install 'clocs[ray]'")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_an_address_that_does_not_answer_is_refused(quiet_ray: Any) -> None:
    """A closed port at once; one that accepts and says nothing, when the patience is over."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(SettingsError, match=f"No Ray cluster answers at {address} within 20 s .*refused"):
        open_ray(RayOptions(address=address), Workplace(command=FAKE))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"No Ray cluster answers at {address} within 2 s"):
            open_ray(RayOptions(address=address, patience=2.0), Workplace(command=FAKE))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes on this machine, each with room for two jobs; the first is the head, which keeps its node."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'clocs[ray]'")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    for _ in range(2):
        found.add_node(num_cpus=2)
    try:
        yield found
    finally:
        import ray

        ray.shutdown()
        found.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_grid_survives_the_loss_of_a_node(
    cluster: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_figures: None,
) -> None:
    """Thirty encoders and their scores: every job is done once, and the page is that of this machine alone."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "here.log"))
    command = ("--command", " ".join(FAKE))
    assert run_all.main([*GRID, *command, "--jobs", "2", "--out", str(tmp_path / "here")]) == 0
    here = capsys.readouterr().out
    log, lost = tmp_path / "there.log", cluster.list_all_nodes()[-1]
    log.touch()
    monkeypatch.setenv("FAKE_LOG", str(log))
    slow = ("env", f"FAKE_LOG={log}", "FAKE_SECONDS=1", *FAKE)

    def kill_a_node() -> None:
        while log.read_text().count("end ") < 6:
            time.sleep(0.1)
        cluster.remove_node(lost, allow_graceful=False)

    killer = threading.Thread(target=kill_a_node)
    killer.start()
    place = Workplace(command=slow, at_once=6, threads=1, plugins=HERE)
    began = time.monotonic()
    code = run_all.main(
        [*GRID, "--out", str(tmp_path / "there")],
        lambda request, say: open_ray(RayOptions(address=cluster.address), place),
    )
    took = time.monotonic() - began
    killer.join()
    assert code == 0
    told = Counter(line for line in log.read_text().splitlines() if line.startswith("end "))
    assert len(told) == 60
    assert set(told.values()) == {1}
    assert capsys.readouterr().out == here
    again = sum(line.startswith("begin ") for line in log.read_text().splitlines()) - 60
    sys.stderr.write(f"60 jobs of 1 s in {took:.0f} s; {again} begun again; {os.cpu_count()} cores\n")
