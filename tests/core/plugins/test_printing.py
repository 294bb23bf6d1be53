"""What plugins print goes to stderr, whatever other threads load meanwhile."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import pytest

from clocs_core.plugins.printing import printing_to_stderr


def test_what_is_printed_in_a_block_goes_to_stderr(capsys):
    with printing_to_stderr() as stdout:
        sys.stdout.write("from a plugin\n")
        stdout.write("a result\n")
    sys.stdout.write("after\n")
    assert capsys.readouterr() == ("a result\nafter\n", "from a plugin\n")


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_of_two_threads_may_end_in_any_order(capsys, first):
    """As they overlap where a grid draws in one thread and reads results in another."""
    before = sys.stdout
    blocks = ExitStack(), ExitStack()
    given = [block.enter_context(printing_to_stderr()) for block in blocks]
    assert given == [before, before]
    blocks[first].close()
    sys.stdout.write("still in a block\n")
    blocks[1 - first].close()
    assert sys.stdout is before
    assert capsys.readouterr() == ("", "still in a block\n")


def test_an_error_in_a_block_puts_stdout_back():
    before = sys.stdout
    with pytest.raises(ImportError), printing_to_stderr():
        raise ImportError
    assert sys.stdout is before
