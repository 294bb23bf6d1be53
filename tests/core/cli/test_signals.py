"""SIGTERM and SIGHUP end a command as Ctrl-C does: with what to do next, and an exit code that names the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from fake_plugins import fake_point
from fake_runs import RUN, points

import clocs_core.workflows.pretrain
from clocs_core.cli import main
from clocs_core.cli.signals import Stopped, heed_signals, say_stopped

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")

SIGNALS = {signal.SIGTERM: (143, "Terminated."), signal.SIGHUP: (129, "The terminal was closed.")}


@pytest.fixture(autouse=True)
def _as_without_nohup() -> Iterator[None]:
    """Let signals end the process, as they do by default: `nohup pytest` ignores SIGHUP, and so would the commands."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    signal.sigtimedwait([], 1)  # lets the handler run now, if it did not yet


@pytest.mark.parametrize("number", SIGNALS)
def test_any_command_says_what_ended_it(capsys: pytest.CaptureFixture[str], number: signal.Signals) -> None:
    def add(cli: click.Group) -> None:
        cli.add_command(click.Command("wait", callback=lambda: send(number)))

    code, text = SIGNALS[number]
    assert main(["wait"], [fake_point("waiting", clocs_commands=add)]) == code
    assert capsys.readouterr().err.split() == text.split()
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_run_that_is_ended_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Queues of clusters send SIGTERM before they kill."""
    arguments = [*RUN, "--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--workers", "1"]
    listener: Any = fake_point("listening", clocs_epoch_done=lambda: send(signal.SIGTERM))
    assert main(arguments, [*points(), listener]) == 143
    said = capsys.readouterr().err
    assert f"Stopped; training so far is saved. Resume it: clocs run --resume {tmp_path / 'run'}\n" in said


def test_a_run_that_is_ended_before_it_trains_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clocs_core.workflows.pretrain, "prepare_run", lambda *_: send(signal.SIGTERM))
    assert main([*RUN, "--out", str(tmp_path / "run")], points()) == 143
    assert "Stopped; nothing was trained yet." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup clocs run` must survive its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with heed_signals():
            send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_is_not_caught() -> None:
    with heed_signals() as came:
        with pytest.raises(Stopped):
            send(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert came == [signal.SIGTERM]


def test_a_thread_other_than_the_main_one_leaves_signals_alone() -> None:
    def heed() -> None:
        with heed_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    found: list[object] = []
    thread = threading.Thread(target=heed)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_a_terminal_that_is_gone_is_no_second_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(click, "echo", gone)
    assert say_stopped(Stopped(signal.SIGHUP)) == 129
    assert say_stopped(click.Abort()) == 130


STUCK = """
import ctypes, signal, threading
from clocs_core.cli.signals import end_after_sigterm, heed_signals

with heed_signals():
    end_after_sigterm(0.1)
    mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
    # Said by another thread, a second later: a signal that comes before the lock would be heard by Python.
    threading.Timer(1.0, print, ["stuck"], {"flush": True}).start()
    lock(mutex)
    lock(mutex)
"""


def test_a_process_that_is_stuck_outside_of_python_ends_after_sigterm_nevertheless() -> None:
    """A process whose partner died waited in gloo until it was killed, 30 s later: Python's handler never ran."""
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(10) == 128 + signal.SIGTERM
        finally:
            process.kill()
