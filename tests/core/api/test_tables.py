"""Tables for notebooks: readable as text and as HTML, and safe with names that anybody may have written."""

import math

import pytest

from clocs_core import Table

TABLE = Table(("name", "value"), (("<b>", 0.12345), ("ü", math.nan), ("list", ("a", "b"))))


def test_a_table_is_shown_as_text_and_as_html() -> None:
    assert repr(TABLE).splitlines() == ["name  value", "<b>   0.123", "ü     n/a", "list  a, b"]
    assert "<td>&lt;b&gt;</td><td>0.123</td>" in TABLE._repr_html_()


def test_rows_and_columns_are_read_by_name() -> None:
    assert len(TABLE) == 3
    assert TABLE["name"] == ["<b>", "ü", "list"]
    assert next(iter(TABLE)) == {"name": "<b>", "value": 0.12345}
    with pytest.raises(KeyError, match="no column 'nam'; there is name, value"):
        TABLE["nam"]


def test_pandas_gets_the_values_themselves() -> None:
    frame = Table(("a", "b"), ((1, 0.5), (2, 0.25))).to_pandas()
    assert list(frame.columns) == ["a", "b"]
    assert frame["b"].sum() == 0.75


def test_names_cannot_control_the_terminal_that_a_table_is_printed_to() -> None:
    assert "\x1b" not in repr(Table(("patient",), (("\x1b[2J",),)))
    assert Table(("patient",), (("\x1b[2J",),))["patient"] == ["\x1b[2J"]
