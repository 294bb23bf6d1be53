r"""Read the tables of the paper from its TeX, and write the TOML that the plugin paper_tables loads.

    python benchmarks/extract_paper_results.py --tex PATH --out plugins/clocs_plugins/paper_tables/printed.toml

Tables are known by where they stand, since labels are used again and again: section and subsection are counted as
LaTeX counts them, E comes from the heading, F from the caption, the leads from the caption of the whole table, and
the protocol from the header row. A cell that is not of a form known here is an error; an empty one or a dash is "".
The two tables of appendix C, the encoder and the batch sizes, hold no results and are left out.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import attrs

HEAD = """\
# The tables of the paper: Kiyasseh, Zhu and Clifton, "CLOCS: Contrastive Learning of Cardiac Signals Across Space,
# Time, and Patients", ICML 2021. Made from its TeX by extract_paper_results.py; not to be edited by hand.
#
# One line is one row of a table of the paper: first its conditions, in the order that `conditions` names, then its
# cells as printed. "7a" is Table 7 (a). Cells are the test AUC, mean ± sd over 5 seeds, one for each pair of
# `pretraining` and `downstream` data set, read downwards; `leads` are those of chapman and physionet2020, the others
# have one. The byol-tau tables name no embedding_dim: 128 is inferred, since their rows of 0.900 are those of 128.
"""

TABLES = {
    "6.2 linear": "linear-main",
    "6.2 finetune": "transfer-main",
    "D.1 linear": "linear-4-leads",
    "D.2 linear": "linear-12-leads",
    "E.1 finetune": "transfer-4-leads",
    "E.2 finetune": "transfer-12-leads",
    "F.1 linear": "byol-tau-linear",
    "F.2 finetune": "byol-tau-transfer",
}
"""By section and protocol, what we call a table."""

METHODS = {"Random Init.": "random"} | {
    name: name.lower() for name in ("Supervised", "MT-SSL", "BYOL", "SimCLR", "CMSC", "CMLC", "CMSMLC")
}
"""By the name that a row of the paper has, what we call a method."""

DISCUSSED_IN = {"transfer-main": "6.3"}  # the float stands before the heading of the section that it belongs to

DIM_OF_APPENDIX_F = 128
"""Appendix F names no E. Its rows at tau_d = 0.900 repeat those of BYOL in appendices D and E, all of E = 128."""

# A heading ends its line, and so does a caption; braces within them need not be matched then.
_PIECE = re.compile(
    r"(?P<appendix>\\appendix\b)"
    r"|\\(?P<level>(?:sub){0,2}section)\{(?P<title>[^\n]*)\}"
    r"|\\begin\{(?P<opens>table|subtable)\*?\}"
    r"|\\caption\{(?P<caption>[^\n]*)\}"
    r"|\\begin\{tabular\}\{[^}]*\}(?P<body>.*?)\\end\{tabular\}",
    re.DOTALL,
)
_SCORE = re.compile(r"(\d\.\d+)\s*\$\\pm\$\s*(\d\.\d+)")
_COUNT = re.compile(r"([\d,]+)(?:\s*\(([\d,]+)\)|\s*\$\\times (\d?S(?: \\times L)?)\$)")
_TAU = re.compile(r"\$\\tau_\{d\} = (\d\.\d+)\$")


@attrs.frozen
class Tabular:
    """One `tabular`: where it stands, the words above it, and its rows with spans written out."""

    section: str
    printed_in: str
    heading: str
    captions: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def has_scores(self) -> bool:
        """Whether a cell is a mean with its standard deviation."""
        return any(_SCORE.fullmatch(cell) for row in self.rows for cell in row)


@attrs.define
class Table:
    """A table of ours: what its rows share, and its rows, tabular by tabular; every value is as TOML writes it."""

    head: dict[str, str]
    blocks: list[list[list[str]]] = attrs.field(factory=list)


def main() -> int:
    """Read the TeX and write the TOML."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tex", type=Path, required=True, help="the TeX of the paper")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.write_text(extract(given.tex.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {given.out}")
    return 0


def extract(tex: str) -> str:
    """Make the TOML of every table of the paper that has results or counts."""
    tables: dict[str, Table] = {}
    for tabular in find_tabulars(tex):
        if tabular.has_scores:
            name, head, block = read_scores(tabular)
        elif tabular.section == "A.2":
            name, head, block = read_counts(tabular)
        else:
            continue
        table = tables.setdefault(name, Table(head))
        if table.head != head:
            raise ValueError(f"Table {tabular.printed_in}: {name} has {table.head} so far, found {head}.")
        table.blocks.append(block)
    return "\n".join([HEAD, *(dump_table(name, table) for name, table in tables.items())])


def find_tabulars(tex: str) -> Iterator[Tabular]:
    """Find every tabular, in the order of the paper."""
    in_appendix, counters, heading, table, part = False, [0, 0], "", 0, 0
    captions: list[str] = []
    for piece in _PIECE.finditer(re.sub(r"(?<!\\)%.*", "", tex)):
        if piece["appendix"]:
            in_appendix, counters = True, [0, 0]
        elif piece["level"] == "section":
            counters, heading = [counters[0] + 1, 0], ""
        elif piece["level"] == "subsection":
            counters, heading = [counters[0], counters[1] + 1], ""
        elif piece["level"]:
            heading = piece["title"]
        elif piece["opens"] == "table":
            table, part, captions = table + 1, 0, []
        elif piece["opens"]:
            part, captions = part + 1, captions[:1]
        elif piece["caption"]:
            captions.append(piece["caption"])
        else:
            first = ascii_uppercase[counters[0] - 1] if in_appendix else str(counters[0])
            letter = ascii_lowercase[part - 1] if part else ""
            rows = tuple(split_rows(piece["body"]))
            yield Tabular(f"{first}.{counters[1]}", f"{table}{letter}", heading, tuple(captions), rows)


def split_rows(body: str) -> Iterator[tuple[str, ...]]:
    """Split a tabular into rows, without empty ones; a cell that spans columns is repeated for each of them."""
    for line in re.sub(r"\\(?:top|mid|bottom)rule", "", body).split(r"\\"):
        cells: list[str] = []
        for cell in line.split("&"):
            plain = re.sub(r"\\text(?:bf|it)\{([^{}]*)\}", r"\1", cell.strip())
            plain = re.sub(r"\\multirow\{\d+\}\{\*\}\{([^{}]*)\}", r"\1", plain)
            span = re.fullmatch(r"\\multicolumn\{(\d+)\}\{[^{}]*\}\{([^{}]*)\}", plain)
            cells += [span[2].strip()] * int(span[1]) if span else [plain.strip()]
        if any(cells):
            yield tuple(cells)


def read_scores(tabular: Tabular) -> tuple[str, dict[str, str], list[list[str]]]:
    """Read a tabular of scores: the name of our table, what its rows share, and its rows."""
    protocol, pretraining, downstream, rows = split_header(tabular)
    name = _translate(f"{tabular.section} {protocol}", TABLES, tabular)
    dim = DIM_OF_APPENDIX_F if tabular.section.startswith("F.") else _dim(tabular)
    fraction = float(_search(r"F=([\d.]+)\$", tabular.captions[-1], tabular))
    block = []
    for first, *cells in rows:
        if set(cells) == {first}:  # a heading across all columns
            continue
        if len(cells) != len(downstream):
            raise ValueError(f"Table {tabular.printed_in}: row {first!r} has {len(cells)} cells for {downstream}.")
        tau = _TAU.fullmatch(first)
        method = ['"byol"', tau[1]] if tau else [_quote(_translate(first, METHODS, tabular))]
        scores = [_quote(_score(cell, tabular)) for cell in cells]
        block.append([_quote(tabular.printed_in), str(dim), str(fraction), *method, *scores])
    conditions = ["printed_in", "embedding_dim", "label_fraction", "method"]
    head = {
        "section": _quote(DISCUSSED_IN.get(name, tabular.section)),
        "protocol": _quote(protocol),
        "leads": _search(r"using (?:all )?(\d+) leads", tabular.captions[0], tabular),
        "pretraining": _list(pretraining),
        "downstream": _list(downstream),
        "conditions": _list([*conditions, "tau_d"] if "tau" in name else conditions),
    }
    return name, head, block


def split_header(tabular: Tabular) -> tuple[str, list[str], list[str], tuple[tuple[str, ...], ...]]:
    """Read the header: the protocol, both data sets of each column, and the rows below."""
    (first, *above), (second, *below) = tabular.rows[:2]
    if first == "Dataset":  # a linear evaluation is of the data set that was pre-trained on
        return "linear", [_dataset(one) for one in above], [_dataset(one) for one in above], tabular.rows[1:]
    if (first, second) == ("Pre-training Dataset", "Downstream Dataset"):
        return "finetune", [_dataset(one) for one in above], [_dataset(one) for one in below], tabular.rows[2:]
    raise ValueError(f"Table {tabular.printed_in}: a header that begins {first!r}, {second!r} is not known.")


def read_counts(tabular: Tabular) -> tuple[str, dict[str, str], list[list[str]]]:
    """Read a tabular of counts: the name of our table, what its rows share, and its rows."""
    header, *rows = tabular.rows
    keys = header.index("Train")  # columns before the counts: the data set, and for pre-training the method
    block, dataset = [], ""
    for row in rows:
        dataset = row[0] or dataset  # the data set is named once for several methods
        methods = [_translate(cell, METHODS, tabular) for cell in row[1:keys]]
        counts = [_count(cell, tabular) for cell in row[keys:]]
        block.append([_quote(one) for one in (tabular.printed_in, _dataset(dataset), *methods, *counts)])
    head = {
        "section": _quote(tabular.section),
        "parts": _list([one.lower() for one in header[keys:]]),
        "conditions": _list(["printed_in", "dataset", "method"][: keys + 1]),
    }
    return "counts-pretraining" if keys == 2 else "counts-supervised", head, block


def dump_table(name: str, table: Table) -> str:
    """Write one table as TOML, with aligned columns and a blank line between the tabulars of the paper."""
    widths = [max(map(len, column)) + 1 for column in zip(*itertools.chain(*table.blocks), strict=True)]
    head = "".join(f"{key} = {value}\n" for key, value in table.head.items())
    return f"[{name}]\n{head}rows = [\n" + "\n".join(_dump_block(block, widths) for block in table.blocks) + "]\n"


def _dump_block(block: list[list[str]], widths: list[int]) -> str:
    rows = (" ".join(f"{one},".ljust(width) for one, width in zip(row, widths, strict=True)) for row in block)
    return "".join(f"    [{row.rstrip().removesuffix(',')}],\n" for row in rows)


def _dataset(printed: str) -> str:
    return printed.rstrip("*").replace(" ", "").lower()


def _score(cell: str, tabular: Tabular) -> str:
    if cell in ("", "-"):
        return ""
    if score := _SCORE.fullmatch(cell):
        return f"{score[1]} ± {score[2]}"
    raise ValueError(f"Table {tabular.printed_in}: cell {cell!r} is not a mean and a standard deviation.")


def _count(cell: str, tabular: Tabular) -> str:
    if count := _COUNT.fullmatch(cell):
        return f"{count[1]} ({count[2]})" if count[2] else f"{count[1]} × {count[3]}".replace(r"\times", "×")
    raise ValueError(f"Table {tabular.printed_in}: cell {cell!r} is not a count.")


def _dim(tabular: Tabular) -> int:
    return int(_search(r"(?:E=|Dimension = )(\d+)", " ".join((*tabular.captions, tabular.heading)), tabular))


def _search(pattern: str, words: str, tabular: Tabular) -> str:
    found = re.search(pattern, words)
    if not found:
        raise ValueError(f"Table {tabular.printed_in}: {words!r} has nothing like {pattern}.")
    return found[1]


def _translate(printed: str, names: dict[str, str], tabular: Tabular) -> str:
    if printed not in names:
        raise ValueError(f"Table {tabular.printed_in}: {printed!r} is not known here; known are {', '.join(names)}.")
    return names[printed]


def _quote(text: str) -> str:
    return f'"{text}"'


def _list(names: list[str]) -> str:
    return f"[{', '.join(map(_quote, names))}]"


if __name__ == "__main__":
    sys.exit(main())
