"""Events of a workflow reach plugins first, then listeners, each in order; none of them can end a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_plugins import fake_point

from clocs_core.contracts.events import RunStarted
from clocs_core.plugins.host import load_plugins
from clocs_core.progress import Display
from clocs_core.workflows.surroundings import Listener, Surroundings

RUN = RunStarted(folder=Path("run"), method="m", dataset="d", settings={}, first_epoch=1)
EPOCH, DONE = object(), object()


class Warnings(Display):
    """Keeps what it is told to warn of."""

    def __init__(self):
        self.heard = []

    def warn(self, text):
        self.heard.append(text)


class Diary(Listener):
    """Writes down what it is told, in a list that others write into, too."""

    def __init__(self, name, heard):
        self.name, self.heard = name, heard

    def run_started(self, run):
        self.heard.append((self.name, "run_started", run))

    def epoch_done(self, run, epoch):
        self.heard.append((self.name, "epoch_done", run, epoch))

    def run_done(self, run, done):
        self.heard.append((self.name, "run_done", run, done))


def plugin(name, heard):
    """A plugin that writes into the same list."""

    def clocs_run_started(run):
        heard.append((name, "run_started", run))

    def clocs_epoch_done(run, epoch):
        heard.append((name, "epoch_done", run, epoch))

    def clocs_run_done(run, done):
        heard.append((name, "run_done", run, done))

    hooks = (clocs_run_started, clocs_epoch_done, clocs_run_done)
    return fake_point(name, **{hook.__name__: hook for hook in hooks})


def surroundings(heard, listeners=(), **more):
    host = load_plugins([plugin("a", heard), plugin("b", heard)])
    return Surroundings(host, show=Warnings(), listeners=listeners, **more)


def tell_all(around):
    around.started(RUN)
    around.epoch(RUN, EPOCH)
    around.done(RUN, DONE)


@pytest.mark.parametrize(("announces", "names"), [(True, "abxy"), (False, "xy")])
def test_events_reach_plugins_then_listeners_and_listeners_alone_where_nothing_is_kept(announces, names):
    """A plugin writes into the folder of the run, and a run in memory has none."""
    heard = []
    around = surroundings(heard, [Diary("x", heard), Diary("y", heard)], announces=announces)
    tell_all(around)
    expected = [("run_started", RUN), ("epoch_done", RUN, EPOCH), ("run_done", RUN, DONE)]
    assert heard == [(name, *event) for event in expected for name in names]
    assert around.show.heard == []


def test_a_listener_that_fails_costs_a_warning_and_the_next_is_told():
    class Broken(Listener):
        def epoch_done(self, run, epoch):
            raise ValueError("full")

    heard = []
    around = surroundings(heard, [Broken(), Diary("y", heard)])
    tell_all(around)
    assert around.show.heard == ["Broken.epoch_done failed: ValueError: full"]
    assert [event[1] for event in heard if event[0] == "y"] == ["run_started", "epoch_done", "run_done"]


def test_a_user_can_stop_a_run_from_a_listener():
    """Ctrl-C while a listener works is for the run, not for the listener."""

    class Interrupted(Listener):
        def run_started(self, run):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        surroundings([], [Interrupted()]).started(RUN)
