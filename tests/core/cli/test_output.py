"""Lines of commands show control characters, and never send them."""

from __future__ import annotations

from io import BytesIO, StringIO, TextIOWrapper

from fake_runs import points

from clocs_core.cli.main import main
from clocs_core.cli.output import echo, show_all_characters


def test_control_characters_are_shown_escaped(capsys):
    echo("patient \x1b[31m1\r", bold=True)
    echo("problem \x9b", err=True)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("patient \\u001b[31m1\\u000d\n", "problem \\u009b\n")


def test_an_error_shows_the_name_of_a_file_escaped(capsys, tmp_path):
    """A folder that was unpacked from an archive may have any name."""
    assert main(["embed", f"{tmp_path}/\x1b]0;owned\x07", "--out", "z.npz"], points()) == 2
    found = capsys.readouterr()
    assert "\\u001b]0;owned\\u0007" in found.err
    assert "\x1b" not in found.out + found.err


def test_a_character_that_the_terminal_cannot_encode_is_escaped():
    """Printing ended half-way, with an error that was blamed on clocs."""
    raw = BytesIO()
    stream = TextIOWrapper(raw, encoding="ascii")
    show_all_characters(stream, StringIO())
    stream.write("0.5 µV of Müller\n")
    stream.flush()
    assert raw.getvalue() == b"0.5 \\xb5V of M\\xfcller\n"
