"""Progress below a cell of a notebook, with an IPython that only writes down what it is given."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import attrs
import pytest
from fake_events import EPOCH

from clocs_core.report import notebook
from clocs_core.report.notebook import NotebookDisplay, in_notebook


class FakeDisplay(ModuleType):
    """Stands in for IPython.display: keeps every state of the one line that it shows."""

    def __init__(self):
        super().__init__("IPython.display")
        self.states = []

    def HTML(self, text):
        return text

    def display(self, first, display_id):
        assert display_id is True
        self.states.append(first)
        return SimpleNamespace(update=self.states.append)


@pytest.fixture
def states(monkeypatch):
    """Every state that a notebook was given, oldest first."""
    fake = FakeDisplay()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return fake.states


@pytest.fixture
def clock(monkeypatch):
    """Seconds, in a list of one, for a test to set."""
    now = [100.0]
    monkeypatch.setattr(notebook, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_messages_are_escaped(states):
    show = NotebookDisplay()
    show.say("a <b> & c")
    show.warn("<script>")
    show.stage("<i>")
    assert states[-1] == "a &lt;b&gt; &amp; c<br><b>Warning:</b> &lt;script&gt;<br>&lt;i&gt;"


def test_the_bar_moves_but_not_more_often_than_it_can_be_drawn(states, clock):
    show = NotebookDisplay()
    show.stage("Preparing")
    for done, later in ((1, 0.1), (2, 0.2), (3, 0.1), (1500, 0.2)):
        clock[0] += later
        show.tick(done, 2000)
    bars = [state for state in states if "<progress" in state]
    assert bars == [
        "Preparing <progress value='2' max='2000'></progress> 2 / 2,000",
        "Preparing <progress value='1500' max='2000'></progress> 1,500 / 2,000",
    ]


def test_epochs_take_the_bar_of_steps_until_the_next_stage(states, clock):
    show = NotebookDisplay()
    show.stage("Training")
    for tell in (lambda: show.epoch(EPOCH, 5), lambda: show.tick(1, 9)):
        clock[0] += 1
        tell()
    bar = "<progress value='2' max='5'></progress> epoch 2 of 5: loss 0.500, validation 0.250, best epoch 1"
    assert states[-1] == f"Training {bar}"
    show.stage("Evaluating")
    clock[0] += 1
    show.tick(1, 9)
    assert states[-1] == "Evaluating <progress value='1' max='9'></progress> 1 / 9"


def test_the_last_state_has_messages_and_no_bar(states):
    with NotebookDisplay() as show:
        show.say("read 3 recordings")
        show.stage("Training")
        show.epoch(attrs.evolve(EPOCH, last=True), 5)
    assert states[-1] == ("read 3 recordings<br>trained for 2 epochs: loss 0.500, validation 0.250, best epoch 1")


def test_the_bar_goes_when_a_cell_fails(states):
    show = NotebookDisplay()
    show.stage("Training")
    with pytest.raises(KeyboardInterrupt), show:
        raise KeyboardInterrupt
    assert states[-1] == ""


@pytest.mark.parametrize(
    ("shell", "expected"), [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)]
)
def test_a_notebook_is_a_shell_with_a_kernel(monkeypatch, shell, expected):
    """IPython in a terminal is imported, too, and has none."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_several_runs_have_a_line_each_until_the_next_stage(states, clock):
    show = NotebookDisplay()
    show.stage("Preparing")
    for name in ("a<b", "c"):
        show.line(name, "Training")
    clock[0] += 1
    show.line("c", "Training", 1, 4, "loss 0.5")
    bar = "<progress value='1' max='4'></progress> 1 / 4 loss 0.5"
    assert states[-1] == f"a&lt;b: Training<br>c: Training {bar}"
    show.stage("Summarising")
    assert states[-1] == "Summarising"
