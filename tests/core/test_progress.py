"""Warnings for users are collected, each once, and shown without a line of source; a stopwatch adds up times."""

from __future__ import annotations

import subprocess
import sys
import warnings

import attrs
import fake_clock
import pytest
from fake_events import EPOCH

from clocs_core.errors import ClocsWarning
from clocs_core.progress import Display, RunDisplay, Stopwatch, collect_warnings, describe_losses

pytestmark = pytest.mark.filterwarnings("always")


def warn(text, category=ClocsWarning):
    warnings.warn(text, category, stacklevel=1)


def test_each_warning_is_collected_and_shown_once():
    shown = []
    with collect_warnings(shown.append) as collected:
        for text in ("few patients", "no labels", "few patients"):
            warn(text)
    assert collected == shown == ["few patients", "no labels"]


def test_without_a_display_the_outer_one_hears_too():
    """A classifier keeps its warnings for evaluations that share it; the command shows them at the end."""
    shown = []
    with collect_warnings(shown.append) as outer:
        for _ in range(2):
            with collect_warnings() as inner:
                warn("few patients")
            assert inner == ["few patients"]
    assert outer == shown == ["few patients"]


def test_with_a_display_the_outer_one_hears_nothing():
    with collect_warnings() as outer, collect_warnings(lambda text: None):
        warn("few patients")
    assert outer == []


def test_other_warnings_pass_through_unchanged():
    with warnings.catch_warnings(record=True) as passed, collect_warnings(pytest.fail) as collected:
        warnings.simplefilter("always")
        for _ in range(2):
            warn("old", DeprecationWarning)
    assert collected == []
    assert [(str(one.message), one.category, one.filename) for one in passed] == [
        ("old", DeprecationWarning, __file__)
    ] * 2


def test_a_warning_of_a_plugins_own_kind_is_collected():
    class Mine(ClocsWarning):
        pass

    with collect_warnings(lambda text: None) as collected:
        warn("mine", Mine)
    assert collected == ["mine"]


def test_afterwards_warnings_are_shown_as_before_even_after_an_error():
    before = warnings.showwarning
    with pytest.raises(KeyError), collect_warnings():
        raise KeyError
    assert warnings.showwarning is before


def test_the_plain_display_shows_nothing(capfd):
    show = Display()
    for tell in (show.say, show.warn, show.stage):
        tell("text")
    show.tick(1, 2)
    assert capfd.readouterr() == ("", "")


def test_a_second_run_collects_what_the_first_has_raised() -> None:
    """Python shows a warning of one line only once in a process; every report has to say it."""
    program = (
        "import warnings\n"
        "from clocs_core.errors import ClocsWarning\n"
        "from clocs_core.progress import collect_warnings\n"
        "for _ in range(2):\n"
        "    with collect_warnings(lambda text: None) as found:\n"
        "        warnings.warn('slow', ClocsWarning)\n"
        "    print(found)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['slow']\n['slow']\n"


def test_every_thread_collects_what_another_has_raised_too() -> None:
    """Runs of one process train at the same time, and Python shows a warning of one line once: each report has it."""
    program = (
        "import sys, threading, warnings\n"
        "from clocs_core.errors import ClocsWarning\n"
        "from clocs_core.progress import collect_warnings\n"
        "together = threading.Barrier(2)\n"
        "def run():\n"
        "    with collect_warnings(lambda text: None) as found:\n"
        "        together.wait()\n"
        "        warnings.warn('slow', ClocsWarning)\n"
        "        together.wait()\n"
        "    sys.stdout.write(f'{found}\\n')  # print would write the end of a line by itself\n"
        "threads = [threading.Thread(target=run) for _ in range(2)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
        "warnings.warn('outside', ClocsWarning)\n"
        "assert not any(one[2] is ClocsWarning for one in warnings.filters)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['slow']\n['slow']\n"
    assert done.stderr.count("outside") == 1


class Kept(Display):
    """A display that keeps all calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def say(self, text: str) -> None:
        self.calls.append(("say", text))

    def warn(self, text: str) -> None:
        self.calls.append(("warn", text))

    def line(self, name: str, doing: str, done: int = 0, total: int | None = None, detail: str = "") -> None:
        self.calls.append((name, doing, done, total, detail))


def test_one_of_several_runs_shows_its_name_and_one_line() -> None:
    shared, said = Kept(), set[str]()
    show, other = RunDisplay(shared, "seed 0", said), RunDisplay(shared, "seed 1", said)
    show.say("12 recordings")
    other.say("12 recordings")  # the same for all
    other.warn("few patients")
    show.stage("pre-training")
    show.tick(3, 4)
    show.epoch(attrs.evolve(EPOCH, epoch=1, last=False), 9)
    show.tick(4, 4)  # of the second epoch
    show.epoch(attrs.evolve(EPOCH, epoch=2, last=True), 9)
    losses = describe_losses(EPOCH)
    assert shared.calls == [
        ("say", "seed 0: 12 recordings"),
        ("warn", "seed 1: few patients"),
        ("seed 0", "pre-training", 0, None, ""),
        ("seed 0", "pre-training", 3, 4, ""),
        ("seed 0", "pre-training", 1, 9, losses),
        ("seed 0", "pre-training", 2, 9, losses),
        ("say", f"seed 0: trained for 2 epochs: {losses}"),
    ]


def fail_after(seconds: float) -> None:
    fake_clock.advance(seconds)
    raise ValueError("x")


def test_a_stopwatch_adds_up_the_times_of_a_part_however_it_ends() -> None:
    watch = Stopwatch(fake_clock.now)
    with watch.part("a"):
        fake_clock.advance(2)
    with pytest.raises(ValueError, match="x"), watch.part("b"):
        fail_after(3)
    with watch.part("a"):
        fake_clock.advance(5)
    watch.add("b", 1.5)
    assert watch.seconds == {"a": 7, "b": 4.5}
