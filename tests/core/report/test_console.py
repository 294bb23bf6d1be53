"""Progress in a terminal, and as plain lines where there is none."""

from __future__ import annotations

from io import StringIO

import attrs
import pytest
from fake_events import EPOCH
from rich.console import Console

from clocs_core.report.console import ConsoleDisplay


def shown(act, terminal=False, **more):
    """The text that a display wrote while it was used."""
    file = StringIO()
    console = Console(file=file, force_terminal=terminal, width=200, color_system=None, _environ={})
    with ConsoleDisplay(console, **more) as show:
        act(show)
    return file.getvalue()


def test_without_a_terminal_there_is_a_line_per_stage_and_no_bar():
    def act(show):
        for stage in ("Preparing", "Training"):
            show.stage(stage)
            show.tick(1, 2)
            show.tick(2, 2)

    assert shown(act) == "Preparing …\nTraining …\n"


def test_in_a_terminal_a_stage_is_a_bar_and_no_line():
    def act(show):
        show.stage("Preparing")
        show.tick(3, 4)
        show.progress.refresh()

    text = shown(act, terminal=True)
    assert "3/4" in text
    assert "…\n" not in text


def test_the_bars_of_a_stage_go_when_the_next_begins():
    def act(show):
        show.stage("Training")
        show.epoch(EPOCH, 5)
        show.stage("Evaluating")
        assert [task.description for task in show.progress.tasks] == ["Evaluating"]
        show.epoch(EPOCH, 5)
        assert [(task.description, task.completed, task.total) for task in show.progress.tasks[1:]] == [
            ("epochs", 2, 5)
        ]

    shown(act)


def test_a_tick_before_the_first_stage_is_no_error():
    assert shown(lambda show: show.tick(1, 2)) == ""


def test_the_last_epoch_is_told_in_a_line():
    def act(show):
        show.epoch(EPOCH, 5)
        show.epoch(attrs.evolve(EPOCH, epoch=3, last=True, validation_score=0.75), 5)

    assert shown(act) == "trained for 3 epochs: loss 0.500, validation 0.250 (score 0.750), best epoch 1\n"
    one = attrs.evolve(EPOCH, epoch=1, last=True)
    assert shown(lambda show: show.epoch(one, 5)).startswith("trained for 1 epoch: ")


def told_of_epochs(epochs, seconds, first=1, **more):
    """The lines of a run whose epochs take `seconds` each."""
    moment = [0.0]

    def act(show):
        show.stage("pre-training")
        for epoch in range(first, epochs + 1):
            moment[0] += seconds
            done = attrs.evolve(EPOCH, epoch=epoch, last=epoch == epochs, instances=500, seconds=seconds)
            show.epoch(done, epochs)

    return shown(act, clock=lambda: moment[0], **more).splitlines()


def test_without_a_terminal_every_tenth_of_the_epochs_is_a_line():
    lines = told_of_epochs(100, 2.0)
    assert [line.partition(":")[0] for line in lines[1:-1]] == [f"epoch {n} of 100" for n in range(10, 100, 10)]
    losses = "loss 0.500, validation 0.250, best epoch 1"
    assert lines[1] == f"epoch 10 of 100: {losses}; 250 instances/s, at most 3 min left"
    assert told_of_epochs(20, 2.0, first=11)[1].endswith("at most 16 s left"), "the time of this process counts"


def test_slow_epochs_are_a_line_a_minute_and_quick_ones_none():
    names = [line.partition(" of ")[0] for line in told_of_epochs(400, 25.0)]
    assert names[1:6] == ["epoch 3", "epoch 6", "epoch 9", "epoch 12", "epoch 15"]
    assert [line.partition(":")[0] for line in told_of_epochs(3, 3600.0)[1:-1]] == ["epoch 1 of 3", "epoch 2 of 3"]
    assert "at most 2 h 00 min left" in told_of_epochs(3, 3600.0)[1]
    assert len(told_of_epochs(10, 0.01)) == 2, "the stage and the end"


@pytest.mark.parametrize("terminal", [True, False])
def test_verbose_prints_a_line_for_every_epoch(terminal):
    lines = told_of_epochs(10, 0.01, verbose=True, terminal=terminal)
    for number in range(1, 10):
        assert sum(f"epoch {number} of 10: loss" in line for line in lines) == 1


def test_a_long_stage_without_a_terminal_says_how_far_it_is_once_a_minute():
    moment = [0.0]

    def act(show):
        show.stage("preparing recordings")
        for number in range(1, 201):
            moment[0] += 1.0
            show.tick(number, 200)

    lines = shown(act, clock=lambda: moment[0]).splitlines()
    assert lines == ["preparing recordings …", *(f"preparing recordings: {n} of 200" for n in (60, 120, 180))]


def test_quiet_shows_warnings_alone():
    def act(show):
        show.stage("pre-training")
        show.tick(1, 2)
        show.say("text")
        show.warn("careful")
        show.epoch(attrs.evolve(EPOCH, last=True), 2)

    assert shown(act, quiet=True) == "Warning: careful\n"
    assert shown(act, quiet=True, terminal=True) == "Warning: careful\n"


def test_wording_changes_every_message():
    def act(show):
        show.say("give `a=1`")
        show.warn("give `b=1`")
        show.stage("give `c=1`")

    words = shown(act, wording=lambda text: text.replace("=", " ").replace("`", ""))
    assert words == "give a 1\nWarning: give b 1\ngive c 1 …\n"


def test_a_message_is_printed_as_it_is():
    """A path in brackets is no markup, and a long line is not broken: a user searches for it, or copies it."""
    text = "[bold]/a/folder[/bold] " + "x" * 300
    assert shown(lambda show: show.say(text)) == f"{text}\n"
    assert shown(lambda show: show.warn(text)) == f"Warning: {text}\n"


def test_progress_goes_to_stderr(capfd):
    with ConsoleDisplay() as show:
        show.say("text")
    assert capfd.readouterr() == ("", "text\n")


def test_names_in_messages_and_stages_cannot_control_the_terminal():
    def act(show):
        show.stage("reading \x1b]0;x\x07")
        show.say("patient \x1b[2J")
        show.warn("channel \x9b1A [/red]")

    for terminal in (False, True):
        text = shown(act, terminal=terminal)
        assert "\x1b[2J" not in text
        assert "\x1b]0" not in text
        assert "\x9b" not in text
        assert "patient \\u001b[2J" in text
        assert "channel \\u009b1A [/red]" in text


def two_runs(show):
    show.stage("Preparing")
    for name in ("seed 0", "seed 1"):
        show.line(name, "Training")
        show.line(name, "Training", 1, 4, "loss 0.5")


def test_several_runs_have_a_bar_each_in_a_terminal():
    def act(show):
        two_runs(show)
        assert [task.description for task in show.progress.tasks] == ["seed 0: Training", "seed 1: Training"]
        assert [task.fields["detail"] for task in show.progress.tasks] == ["loss 0.5"] * 2
        show.stage("Summarising")
        assert [task.description for task in show.progress.tasks] == ["Summarising"]

    assert "…\n" not in shown(act, terminal=True)


def test_several_runs_have_a_line_per_stage_without_a_terminal_and_more_if_verbose():
    assert shown(two_runs) == "Preparing …\nseed 0: Training …\nseed 1: Training …\n"
    assert "seed 1: Training, 1 of 4: loss 0.5\n" in shown(two_runs, verbose=True)
