"""Events reach plugins first, then listeners, each in order; none of them can end a run, but a full disk can."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from fake_plugins import fake_point

from clocs_core import Tracker
from clocs_core.contracts.events import Listener, RunStarted, RunStopped
from clocs_core.plan.data import Chosen
from clocs_core.plugins.host import load_plugins
from clocs_core.progress import Display
from clocs_core.workflows.surroundings import Surroundings

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


def test_a_listener_may_name_its_arguments_as_it_likes():
    """The checks of a plugin pass for such a listener, so that a run must not fail on it."""

    class Other(Listener):
        def run_done(self, _run, result):
            heard.append(result)

    heard, show = [], Warnings()
    Surroundings(load_plugins([]), show, listeners=[Other()]).done(RUN, DONE)
    assert (heard, show.heard) == ([DONE], [])


def test_a_user_can_stop_a_run_from_a_listener():
    """Ctrl-C while a listener works is for the run, not for the listener."""

    class Interrupted(Listener):
        def run_started(self, run):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        surroundings([], [Interrupted()]).started(RUN)


# ------------------------------------------------------------------------------------------- trackers, ends and repeats


def test_a_listener_that_always_fails_is_warned_of_once_and_still_told():
    """Four hundred epochs would bury everything else."""
    calls = []

    class Broken(Listener):
        def epoch_done(self, run, epoch):
            calls.append(epoch)
            raise ValueError("full")

    def clocs_epoch_done(run, epoch):
        calls.append(epoch)
        raise OSError("no server")

    host = load_plugins([fake_point("bad", clocs_epoch_done=clocs_epoch_done)])
    around = Surroundings(host, show=Warnings(), listeners=[Broken()])
    for _ in range(3):
        around.epoch(RUN, EPOCH)
    assert len(calls) == 6
    assert around.show.heard == [
        "plugin 'bad' (fakes 1.0) failed in clocs_epoch_done: OSError: no server",
        "Broken.epoch_done failed: ValueError: full",
    ]


FULL = OSError(errno.ENOSPC, "No space left on device", "events")


@pytest.mark.parametrize("event", ["epoch_done", "run_done"])
@pytest.mark.parametrize("of", ["plugin", "listener"])
def test_a_full_disk_stops_the_run_where_it_can_go_on(event, of):
    """A warning would end a run whose curves lack their last values for ever; resumed, it tells them again."""

    class Full(Listener):
        def epoch_done(self, run, epoch):
            raise FULL

        def run_done(self, run, done):
            raise FULL

    def clocs_epoch_done(run, epoch):
        raise FULL

    def clocs_run_done(run, done):
        raise FULL

    hooks = {"clocs_epoch_done": clocs_epoch_done, "clocs_run_done": clocs_run_done}
    host = load_plugins([fake_point("full", **hooks)] if of == "plugin" else [])
    around = Surroundings(host, show=Warnings(), listeners=[Full()] if of == "listener" else [])
    with pytest.raises(OSError, match="No space left on device"):
        around.epoch(RUN, EPOCH) if event == "epoch_done" else around.done(RUN, DONE)
    assert around.show.heard == []


def test_a_full_disk_at_an_event_that_is_not_told_again_costs_a_warning():
    class Full(Listener):
        def evaluation_done(self, done):
            raise FULL

    around = Surroundings(load_plugins([]), show=Warnings(), listeners=[Full()])
    around.evaluated(DONE)
    assert len(around.show.heard) == 1


def stop(around, problem, *before):
    """Tell some events of a run, and fail."""
    with around.watched():
        for tell in before:
            tell(RUN)
        raise problem


class Ends(Listener):
    def __init__(self):
        self.heard = []

    def run_stopped(self, run, stopped):
        self.heard.append((run, stopped))


@pytest.mark.parametrize(
    ("problem", "stopped"),
    [
        (KeyboardInterrupt(), RunStopped("interrupted")),
        (ValueError("broken"), RunStopped("failed", "ValueError: broken")),
        (SystemExit(3), RunStopped("failed", "SystemExit: 3")),
    ],
)
def test_a_run_that_ends_early_is_announced_once_and_the_error_goes_on(problem, stopped):
    ends = Ends()
    around = surroundings([], [ends])
    with pytest.raises(type(problem)):
        stop(around, problem, around.started)
    assert ends.heard == [(RUN, stopped)]


def test_what_fails_before_the_start_or_after_the_end_is_not_announced():
    ends = Ends()
    around = surroundings([], [ends])
    with pytest.raises(ValueError, match="early"):
        stop(around, ValueError("early"))
    with pytest.raises(ValueError, match="late"):
        stop(around, ValueError("late"), around.started, lambda run: around.done(run, DONE))
    assert ends.heard == []


def test_listeners_of_plugins_are_made_with_their_options_where_a_run_is_kept():
    heard = []

    def listen(options):
        if options == "broken":
            raise OSError("no server")
        if options == "forgotten":
            return None
        return Diary(options, heard)

    offer = Tracker(name="diary", summary="s", listen=listen)
    chosen = [
        *(Chosen(offer, options, "plugin 'p' (d 1.0)") for options in ("broken", "forgotten")),
        Chosen(offer, "x"),
    ]
    around = surroundings([]).tracked(chosen)
    broken, forgotten = around.show.heard
    assert broken == "listener 'diary' of plugin 'p' (d 1.0) cannot listen: OSError: no server"
    assert "`listen` of the listener 'diary' must return a Listener, got None" in forgotten
    around.started(RUN)
    assert heard == [("x", "run_started", RUN)]
    assert surroundings([], announces=False).tracked(chosen).trackers == ()


def test_a_listener_of_before_these_events_is_not_asked_for_them():
    class Old:
        def epoch_done(self, run, epoch): ...

    around = surroundings([], [Old()])
    around.evaluated(DONE)
    assert around.show.heard == []
