"""A call from Python shows its progress where the user looks, or nowhere."""

from __future__ import annotations

import pytest

from clocs_core.api import display
from clocs_core.api.display import open_display


def tell(show):
    show.stage("Training")
    show.tick(1, 2)
    show.say("hello")
    show.warn("careful")


@pytest.mark.parametrize("notebook", [False, True])
def test_without_progress_nothing_is_shown_anywhere(capfd, monkeypatch, notebook):
    monkeypatch.setattr(display, "in_notebook", lambda: notebook)
    monkeypatch.setattr(display, "NotebookDisplay", pytest.fail)
    with open_display(progress=False) as show:
        tell(show)
    assert capfd.readouterr() == ("", "")


def test_in_a_terminal_progress_goes_to_stderr(capfd, monkeypatch):
    monkeypatch.setattr(display, "in_notebook", lambda: False)
    with open_display(progress=True) as show:
        tell(show)
    assert capfd.readouterr() == ("", "Training …\nhello\nWarning: careful\n")


def test_in_a_notebook_progress_is_shown_below_the_cell_and_closed(monkeypatch):
    events = []

    class Fake:
        def __enter__(self):
            events.append("opened")
            return self

        def __exit__(self, *problem):
            events.append("closed")

    monkeypatch.setattr(display, "in_notebook", lambda: True)
    monkeypatch.setattr(display, "NotebookDisplay", Fake)
    with open_display(progress=True) as show:
        assert isinstance(show, Fake)
        assert events == ["opened"]
    assert events == ["opened", "closed"]
