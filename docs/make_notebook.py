"""Make docs/python.ipynb from docs/python.md: text becomes cells of Markdown, Python blocks become cells of code.

Run from anywhere: python docs/make_notebook.py. Blocks of output are left out, since a notebook makes its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PAGE = Path(__file__).with_name("python.md")
NOTEBOOK = PAGE.with_suffix(".ipynb")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)


def notebook_of(page: str) -> NotebookNode:
    """The page as a notebook without outputs. Cells are numbered, so that the same page gives the same file."""
    found: NotebookNode = new_notebook(metadata={"language_info": {"name": "python"}})
    found.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    pieces = _BLOCK.split(page)  # text, kind, body, text, kind, body, ..., text
    for number, (kind, body) in enumerate(_cells(pieces)):
        name = f"cell-{number}"
        found.cells.append(new_code_cell(body, id=name) if kind else new_markdown_cell(body, id=name))
    nbformat.validate(found)
    return found


def _cells(pieces: list[str]) -> list[tuple[str, str]]:
    """Kind and content of every cell. Text on both sides of an output is one cell."""
    cells: list[tuple[str, str]] = []
    for kind, body in [("", pieces[0]), *_pairs(pieces[1:])]:
        content = body.strip()
        if cells and not kind and not cells[-1][0]:
            cells[-1] = ("", f"{cells[-1][1]}\n\n{content}".strip())
        elif content:
            cells.append((kind, content))
    return cells


def _pairs(rest: list[str]) -> list[tuple[str, str]]:
    """Blocks of code and the text behind each block, in order; other blocks are left out."""
    found: list[tuple[str, str]] = []
    for kind, body, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        found += [(kind, body)] if kind == "python" else []
        found.append(("", text))
    return found


def main() -> None:
    """Write the notebook beside the page."""
    NOTEBOOK.write_text(nbformat.writes(notebook_of(PAGE.read_text(encoding="utf-8"))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
