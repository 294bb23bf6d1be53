"""Numbers are read as Python reads them, to the last bit, whatever a file holds."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_plugins.chapman import decimals
from clocs_plugins.chapman.decimals import read_table


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def same_as_python(cells: list[str]) -> None:
    """One row; NaN equals NaN, and -0 is not 0."""
    found = read_table(",".join(cells).encode(), len(cells))[:, 0]
    for cell, value in zip(cells, found.tolist(), strict=True):
        expected = float(cell) if cell.strip() else math.nan
        assert bits(value) == bits(expected) or (math.isnan(value) and math.isnan(expected)), cell


CELLS = (
    "0 -0 0.0 -0.0 1 -7 1218 -186 270.25 -28.869 .5 5. -.5 -5. 0.44662 0.065885 -0.065885 1234567 12345678 9999999 "
    "0.000001 123456. .123456 1.5e-05 -1E3 nan NaN -inf 00012.5 99999.9 0.1 0.2 0.3 7.8987 +4 1e400"
)


@pytest.mark.parametrize("cell", CELLS.split())
def test_a_number_is_what_python_makes_of_it(cell: str):
    """27025 / 100 must be the double nearest to 270.25, or a frame differs from what other readers give."""
    same_as_python([cell, "1", cell])


@given(
    st.lists(
        st.one_of(
            st.decimals(allow_nan=False, allow_infinity=False, min_value=-99999, max_value=99999, places=3).map(str),
            st.floats(width=32).map(repr),
            st.integers(-(10**9), 10**9).map(str),
            st.floats(-9999, 9999).map(lambda value: f"{value:.5g}"),
            st.just(""),
            st.just(" 3.5 "),
        ),
        min_size=1,
        max_size=30,
    ).filter(lambda cells: ",".join(cells).strip() != "")
)
def test_rows_of_numbers_are_what_python_makes_of_them(cells: list[str]):
    if not cells[-1].strip():
        cells = [*cells, "1"]
    same_as_python(cells)


@given(st.text(alphabet="0123456789.-+e_ ,x/\n\té\0", max_size=60))
def test_what_is_no_number_is_refused_or_read_as_python_reads_it(text: str):
    """Neither a crash nor a guess: '1-2', '1.2.3', '.', '1_0' and 'é' are no numbers."""
    rows = [line.split(",") for line in text.rstrip().split("\n")] if text.strip() else []
    try:
        expected = [[float(cell) if cell.strip() else math.nan for cell in row] for row in rows]
        if "_" in text or any(len(row) != 2 for row in rows):
            raise ValueError
    except ValueError:
        with pytest.raises(ValueError, match="row"):
            read_table(text.encode(), 2)
        return
    found = read_table(text.encode(), 2)
    np.testing.assert_array_equal(found.T, np.array(expected).reshape(-1, 2))


def test_a_file_is_the_same_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch):
    """Files are read piece by piece; a border must not cut a row."""
    rows = [[round(0.37 * row * (column - 1.5), 3) for column in range(4)] for row in range(50)]
    text = "\r\n".join(",".join(map(str, row)) for row in rows).encode() + b"\r\n\r\n"
    for size in (1, 7, 100, 10_000):
        monkeypatch.setattr(decimals, "PIECE", size)
        np.testing.assert_array_equal(read_table(text, 4).T, rows)


def test_an_error_names_row_and_column():
    with pytest.raises(ValueError, match=r"row 2, column 3 is 'x', expected a number"):
        read_table(b"1,2,3\n4,5,x\n", 3)
    with pytest.raises(ValueError, match="row 3 has 2 columns, expected 3"):
        read_table(b"1,2,3\n4,5,6\n7,8\n9,10,11,12\n", 3)


def test_missing_values_are_nan_and_nothing_is_no_row():
    assert np.isnan(read_table(b",NA,nan,1\n", 4)[:, 0]).tolist() == [True, True, True, False]
    assert read_table(b" \n", 12).shape == (12, 0)


@pytest.mark.parametrize("form", ["{}", "1{}", "{}1", "1{}2", "-{}1", "1.{}"])
def test_no_other_character_passes_for_a_digit(form: str):
    """The neighbours of 0 and 9 above all, and _, which Python allows in numbers."""
    for code in set(range(128)) - set(b"0123456789,\n\r"):
        cell = form.format(chr(code)).encode()
        try:
            expected = float(cell.replace(b"_", b"?")) if cell.strip() else math.nan
        except ValueError:
            with pytest.raises(ValueError, match=r"row 1, column 1 is .* expected a number"):
                read_table(cell + b",1", 2)
        else:
            np.testing.assert_array_equal(read_table(cell + b",1", 2), [[expected], [1]])


def test_ordinary_cells_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch):
    """That would be right, and twenty times slower."""
    monkeypatch.setattr(decimals, "_read_cell", lambda cell: pytest.fail(f"{cell!r} was read by itself"))
    cells = ["-165.33", "270.25", "-28.869", "0.44662", "-0.0658", "1218", "-186", "0", "-7.8987", "1017.9", "9999999"]
    assert read_table(",".join(cells).encode(), len(cells))[:, 0].tolist() == [float(cell) for cell in cells]
