"""Tables for notebooks: rows by column name, shown as HTML in a notebook and as text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.report.tables import show_number
from clocs_core.report.visible import visible

if TYPE_CHECKING:
    import pandas


@attrs.frozen
class Table:
    """Rows of values under column names."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of_records(cls, records: Sequence[Any], kind: type[Any], leave_out: Sequence[str] = ()) -> Table:
        """A row for each attrs record, a column for each field."""
        names = tuple(field.name for field in attrs.fields(kind) if field.name not in leave_out)
        return cls(names, tuple(tuple(getattr(record, name) for name in names) for record in records))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Each row as a mapping from column to value."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """All values of a column."""
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; there is {', '.join(self.columns)}")
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def __repr__(self) -> str:
        cells = [list(self.columns), *([_shown(value) for value in row] for row in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return show_number(value)
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_shown, value))
    return "" if value is None else visible(str(value))
