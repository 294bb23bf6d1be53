"""Small tables from workbooks and text: read alike, and refused in a sentence where they are too large or no table."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook

from clocs_core.data import sheet
from clocs_core.data.sheet import read_sheet
from clocs_core.errors import DataError

ROWS = [("FileName", "Rhythm"), ("a", "SB"), ("b", ""), ("", "SR")]


def write_workbook(path: Path, change: Callable[[str], str] = str) -> Path:
    book = Workbook()
    for row in ROWS:
        book.active.append(row)
    book.save(path)
    with zipfile.ZipFile(path) as parts:
        held = {name: parts.read(name) for name in parts.namelist()}
    name = "xl/worksheets/sheet1.xml"
    held[name] = change(held[name].decode()).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        for name, raw in held.items():
            parts.writestr(name, raw)
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_workbooks_and_text_give_the_same_rows(tmp_path: Path, mark: str) -> None:
    expected = [("FileName", "Rhythm"), ("a", "SB"), ("b",), ("", "SR")]
    assert read_sheet(write_workbook(tmp_path / "a.xlsx")) == expected
    text = "\n".join(mark.join(row) for row in ROWS)
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_sheet(tmp_path / "a.csv") == expected
    (tmp_path / "b.csv").write_bytes(text.encode().replace(b"SB", b"\xe9"))
    assert read_sheet(tmp_path / "b.csv")[1] == ("a", "é")  # Latin-1


@pytest.mark.timeout(20)
def test_a_row_number_in_the_billions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """openpyxl returns every missing row before it: three billion of them."""
    monkeypatch.setattr(sheet, "_ROWS", 1000)
    table = write_workbook(tmp_path / "a.xlsx", lambda text: text.replace('r="4"', 'r="3000000000"'))
    with pytest.raises(DataError, match=r"cannot be read as a workbook \(it has more than 1,000 rows"):
        read_sheet(table)


def test_cells_in_the_last_column_of_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """openpyxl fills every row up to its last cell, here XFD, the 16,384th."""
    monkeypatch.setattr(sheet, "_CELLS", 100_000)
    rows = "".join(f'<row r="{n}"><c r="XFD{n}" t="n"><v>1</v></c></row>' for n in range(1, 10))
    table = write_workbook(
        tmp_path / "a.xlsx", lambda text: f"{text.partition('<row')[0]}{rows}</sheetData></worksheet>"
    )
    with pytest.raises(DataError, match="100,000 cells"):
        read_sheet(table)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet, "_LARGEST", 100_000)
    table = write_workbook(tmp_path / "a.xlsx", lambda text: text + " " * 200_000)
    assert table.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"it unpacks to 2\d\d,\d+ bytes, expected at most 100,000"):
        read_sheet(table)
    (tmp_path / "a.csv").write_bytes(b"a" * 100_001)
    with pytest.raises(DataError, match="has 100,001 bytes, expected at most 100,000"):
        read_sheet(tmp_path / "a.csv")


def test_a_cell_of_more_than_131072_characters_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("FileName,Rhythm\na," + "x" * 140_000)
    with pytest.raises(DataError, match=r"cannot be read as a table \(field larger than field limit"):
        read_sheet(tmp_path / "a.csv")


def test_what_is_no_workbook_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"cannot be read as a workbook \(.*\)\. Download it again\."):
        read_sheet(tmp_path / "a.xlsx")
    table = write_workbook(tmp_path / "b.xlsx", lambda text: text.replace("</row>", "", 1))
    with pytest.raises(DataError) as caught:
        read_sheet(table)
    assert "\n" not in str(caught.value)
