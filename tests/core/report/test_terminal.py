"""Tables and lines print names as they are."""

from __future__ import annotations

from io import StringIO

from clocs_core.report.terminal import Terminal

EVIL = "\x1b]8;;http://x\x07p1\x1b[2J [red]x[/red] [/] :smile: $x$"
SHOWN = "\\u001b]8;;http://x\\u0007p1\\u001b[2J [red]x[/red] [/] :smile: $x$"


def printed(act, **more):
    file = StringIO()
    act(Terminal(200, file=file, _environ={}, **more))
    return file.getvalue()


def test_names_in_cells_headings_and_lines_are_printed_as_they_are():
    text = printed(lambda terminal: terminal.print_table((EVIL, "b"), [("1", EVIL)]))
    assert text.count(SHOWN) == 2
    assert printed(lambda terminal: terminal.print(EVIL)) == SHOWN + "\n"


def test_no_escape_is_left_on_a_terminal_without_colour():
    text = printed(lambda terminal: terminal.print_table(("a",), [(EVIL,)]), force_terminal=True, color_system=None)
    assert "\x1b" not in text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert SHOWN[:20] in text


def test_output_that_is_no_terminal_is_as_wide_as_it_was_told():
    assert Terminal(140, file=StringIO(), _environ={}).width == 140
    assert Terminal(140, file=StringIO(), force_terminal=True, width=33, _environ={}).width == 33
