"""Run every `clocs` command of README.md from top to bottom, in small versions."""

from __future__ import annotations

import re
import shlex
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import pytest
from clocs_core import Source

import clocs_plugin_ppg
from made_bidmc import write_bidmc
from made_ppg_bp import write_ppg_bp
from typed import clocs

PROJECT = Path(__file__).parents[1]
TEXT = (PROJECT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
COMMANDS = [shlex.split(line, comments=True) for line in re.findall(r"^\$ (clocs .*)$", TEXT, re.MULTILINE)]
FEW = ("-o", "resamples=10", "--device", "cpu", "--workers", "1")


def smaller(words: list[str]) -> list[str]:
    """Return a small version of the command: one epoch, few draws, and simulated ECGs instead of a download."""
    if words[1] in ("run", "evaluate"):
        words = [*words, *FEW]
    if words[1] == "run":
        words = [*words, "--epochs", "1", "--batch-size", "32"]
    if "finetune" in words:
        words = [*words, "--epochs", "1"]
    if "cardiology" in words:
        words = ["demo" if word == "cardiology" else word for word in words] + ["-o", "patients=12"]
    return [str(PROJECT) if word == "." else word for word in words]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *_: object) -> None: ...


class Server(ThreadingHTTPServer):
    """Ignores errors of clients that hang up early, such as one that asked for part of a file and is sent all of it."""

    def handle_error(self, *_: object) -> None: ...


@pytest.fixture
def physionet(tmp_path: Path) -> Iterator[str]:
    """Address of a local server with BIDMC as on PhysioNet: a folder with a RECORDS file."""
    root = write_bidmc(tmp_path / "served")
    names = sorted(path.stem for path in root.glob("*.hea") if not path.stem.endswith("n"))
    (root / "RECORDS").write_text("".join(f"{name}\n" for name in names), encoding="ascii")
    with Server(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def as_served(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `clocs data download bidmc` use this server."""
    (source,) = clocs_plugin_ppg.BIDMC.sources
    here = Source(source.file, address, endings=source.endings)
    monkeypatch.setattr(clocs_plugin_ppg, "BIDMC", attrs.evolve(clocs_plugin_ppg.BIDMC, sources=(here,)))


def ppg_bp(request: pytest.FixtureRequest, place: Path) -> None:
    """Make the folder PPG-BP: the published files if available, otherwise synthetic ones."""
    try:
        place.symlink_to(request.getfixturevalue("real_ppg_bp"))
    except pytest.skip.Exception:
        write_ppg_bp(place, subjects=24)


@pytest.mark.slow
def test_every_command_does_what_it_says(
    request: pytest.FixtureRequest, physionet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Run in one folder, in order: later commands read the results and downloads of earlier ones."""
    assert len(COMMANDS) >= 16
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "*")
    as_served(physionet, monkeypatch)
    ppg_bp(request, tmp_path / "PPG-BP")
    for words in COMMANDS:
        if words[1] == "run" and "--out" in words:  # a later section makes one of the same name again
            shutil.rmtree(tmp_path / words[words.index("--out") + 1], ignore_errors=True)
        clocs(tmp_path, *smaller(words)[1:])
    assert len(list((tmp_path / "data" / "bidmc").rglob("bidmc*n.dat"))) == 10
    assert (tmp_path / "ecg.npz").exists()
    reports = [*(tmp_path / "runs").glob("*/report.json"), *(tmp_path / "runs").glob("*/evaluations/*/report.json")]
    assert len(reports) >= 8
