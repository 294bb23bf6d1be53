"""Numbers are read as Python reads them, to the last bit, whatever a file holds, and whichever way it is read."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data import number_table
from clocs_core.data.number_table import read_number_table

CELLS = (
    "0 -0 0.0 -0.0 1 -7 1218 -186 270.25 -28.869 .5 5. -.5 -5. 0.44662 0.065885 -0.065885 1234567 12345678 9999999 "
    "0.000001 123456. .123456 1.5e-05 -1E3 nan NaN -inf 00012.5 99999.9 0.1 0.2 0.3 7.8987 +4 1e400 -nan Infinity "
    "2.2250738585072011e-308 9007199254740993 0.1000000000000000055511151231257827021181583404541015625"
)


@contextmanager
def always_pandas() -> Iterator[None]:
    """Texts of a few bytes are read by pandas too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_table, "_LITTLE", 0)
        yield


def both_ways(text: bytes, separator: bytes | None = b",", columns: int | None = None) -> list[np.ndarray | str]:
    """What comes of a text, cell by cell and by pandas: a table, or the words of the error."""
    found: list[np.ndarray | str] = []
    for quick in (False, True):
        try:
            if quick:
                with always_pandas():
                    found.append(read_number_table(text, separator, columns))
            else:
                found.append(read_number_table(text, separator, columns))
        except ValueError as problem:
            found.append(str(problem))
    return found


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def same_as_python(cells: list[str]) -> None:
    """One row; NaN equals NaN, and -0 is not 0."""
    for found in both_ways(",".join(cells).encode()):
        assert isinstance(found, np.ndarray), found
        for cell, value in zip(cells, found[0].tolist(), strict=True):
            expected = float(cell) if cell.strip() else math.nan
            assert bits(value) == bits(expected) or (math.isnan(value) and math.isnan(expected)), cell


@pytest.mark.parametrize("cell", CELLS.split())
def test_a_number_is_what_python_makes_of_it(cell: str):
    """A reader that is off in the last bit gives frames that differ from what other readers give."""
    same_as_python([cell, "1", cell])


@given(
    st.lists(
        st.one_of(
            st.decimals(allow_nan=False, allow_infinity=False, min_value=-99999, max_value=99999, places=3).map(str),
            st.floats().map(repr),
            st.floats(width=32).map(lambda value: f"{value:.18e}"),
            st.integers(-(10**30), 10**30).map(str),
            st.just(""),
            st.just(" 3.5 "),
        ),
        min_size=1,
        max_size=30,
    ).filter(lambda cells: ",".join(cells).strip() != "")
)
def test_rows_of_numbers_are_what_python_makes_of_them(cells: list[str]):
    same_as_python(cells)


@given(st.text(alphabet="0123456789.-+e_ ,x/\n\té\0uTrue", max_size=60))
def test_what_is_no_number_is_refused_or_read_as_python_reads_it(text: str):
    """Neither a crash nor a guess: '1-2', '1.2.3', '.', '1_0', 'True' and 'é' are no numbers."""
    rows = [line.split(",") for line in text.split("\n") if line.strip(" ")]
    try:
        expected = [[float(cell) if cell.strip() else math.nan for cell in row] for row in rows]
        if "_" in text or any(len(row) != 2 for row in rows):
            raise ValueError
    except ValueError:
        assert all(isinstance(found, str) and "row" in found for found in both_ways(text.encode(), columns=2))
        return
    for found in both_ways(text.encode(), columns=2):
        np.testing.assert_array_equal(found, np.array(expected).reshape(-1, 2))


@pytest.mark.parametrize("form", ["{}", "1{}", "{}1", "1{}2", "-{}1", "1.{}"])
def test_no_other_character_passes_for_a_digit(form: str):
    """The neighbours of 0 and 9 above all, and _, which Python allows in numbers."""
    for code in set(range(128)) - set(b'0123456789,\n\r"'):
        cell = form.format(chr(code)).encode()
        try:
            expected = float(cell.replace(b"_", b"?")) if cell.strip() else math.nan
        except ValueError:
            for found in both_ways(cell + b",1\n2,3\n"):
                assert isinstance(found, str), cell
                assert found.startswith("row 1, column 1 is "), cell
        else:
            for found in both_ways(cell + b",1\n2,3\n"):
                np.testing.assert_array_equal(found, [[expected, 1], [2, 3]])


@pytest.mark.parametrize("word", ["True", "TRUE", "true", "False", "FALSE", "false"])
def test_a_column_of_truths_is_not_a_column_of_ones(word: str):
    """pandas would take it for one."""
    assert both_ways(f"{word},1\n{word},2\n".encode()) == [f"row 1, column 1 is {word!r}, expected a number"] * 2


def test_an_error_names_row_and_column():
    assert both_ways(b"1,2,3\n4,5,x\n") == ["row 2, column 3 is 'x', expected a number"] * 2
    assert both_ways(b"1,2,3\n4,5,6\n7,8\n9,10,11,12\n") == ["row 3 has 2 columns, expected 3"] * 2
    assert both_ways(b"1,2\n3,4,5\n") == ["row 2 has 3 columns, expected 2"] * 2
    assert both_ways(b"1 2\n3\n", None) == ["row 2 has 1 columns, expected 2"] * 2
    assert both_ways(b"1,2\n3,4\n", columns=3) == ["row 1 has 2 columns, expected 3"] * 2


@pytest.mark.parametrize(
    ("text", "separator", "expected"),
    [
        (b",NA,nan,1\n", b",", [[math.nan, math.nan, math.nan, 1]]),
        (b"null,n/a,na,NaN,2\n", b",", [[math.nan, math.nan, math.nan, math.nan, 2]]),
        (b'"1","2"\r\n\r\n"3",""\r\n', b",", [[1, 2], [3, math.nan]]),
        (b"1,2\r3,4\r", b",", [[1, 2], [3, 4]]),
        (b"\t1\t\n\t\t\n2\t\t3\n", b"\t", [[math.nan, 1, math.nan], [math.nan] * 3, [2, math.nan, 3]]),
        (b"  1 2 \n \n 3   4\n", None, [[1, 2], [3, 4]]),
        (b"1; 2\n  \n;3 ", b";", [[1, 2], [math.nan, 3]]),
    ],
)
def test_every_form_of_a_table_is_read(text: bytes, separator: bytes | None, expected: list[list[float]]):
    for found in both_ways(text, separator):
        np.testing.assert_array_equal(found, expected)


def test_nothing_is_no_row():
    assert [np.shape(found) for found in both_ways(b" \n", columns=12)] == [(0, 12)] * 2
    assert [np.shape(found) for found in both_ways(b"")] == [(0, 0)] * 2


def test_long_tables_are_not_read_cell_by_cell_and_wide_ones_are(monkeypatch: pytest.MonkeyPatch):
    """Either would be right, and ten times slower or more."""
    long, wide = (b"-165.33,270.25\n" * 500, 2), (b"0.25," * 2000 + b"1\n", 2001)
    with monkeypatch.context() as patch:
        patch.setattr(number_table, "_read_cells", lambda *_: pytest.fail("cell by cell"))
        assert read_number_table(long[0]).shape == (500, 2)
    monkeypatch.setattr(number_table, "_read_at_once", lambda *_: pytest.fail("by pandas"))
    assert read_number_table(wide[0]).shape == (1, wide[1])
