"""The committed numbers are those of the paper, each under its own condition."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import attrs
import extract_paper_results
import pytest
from extract_paper_results import extract, find_tabulars

from clocs_plugins.paper_tables.printed import RESULTS, PaperCondition, PaperResults, PrintedScore, load_results

CHAPMAN, P2020, P2017, CARDIOLOGY = "chapman", "physionet2020", "physionet2017", "cardiology"
SAME = ((CHAPMAN, CHAPMAN), (P2020, P2020))
OTHERS = (
    *((CHAPMAN, CARDIOLOGY), (CHAPMAN, P2017), (CHAPMAN, P2020)),
    *((P2020, CARDIOLOGY), (P2020, P2017), (P2020, CHAPMAN)),
)
DIMS, FRACTIONS = (32, 64, 128, 256), (0.25, 0.5, 0.75, 1.0)
OURS = ("simclr", "cmsc", "cmlc", "cmsmlc")  # what stands in every table but those of appendix F

# Typed from the TeX by eye: table, E, F, method, tau_d, pre-training and downstream data set, what is printed.
TYPED = [
    ("linear-main", 128, 0.5, "mt-ssl", None, P2020, P2020, "0.665 ± 0.015"),
    ("linear-main", 128, 0.5, "cmsc", None, CHAPMAN, CHAPMAN, "0.896 ± 0.005"),  # bold within \multicolumn
    ("transfer-main", 128, 0.5, "supervised", None, CHAPMAN, P2020, "0.827 ± 0.001"),
    ("transfer-main", 128, 0.5, "mt-ssl", None, P2020, CHAPMAN, "0.923 ± 0.007"),  # below a row that spans all columns
    ("transfer-main", 128, 0.5, "cmsmlc", None, P2020, P2017, "0.774 ± 0.012"),
    ("linear-4-leads", 32, 0.25, "cmsc", None, CHAPMAN, CHAPMAN, "0.831 ± 0.131"),
    ("linear-4-leads", 64, 0.5, "cmlc", None, CHAPMAN, CHAPMAN, "0.850 ± 0.02"),  # two digits
    ("linear-4-leads", 64, 0.5, "cmsmlc", None, CHAPMAN, CHAPMAN, "0.861 ± 0.02"),
    ("linear-4-leads", 128, 0.25, "cmsc", None, P2020, P2020, "0.713 ± 0.032"),  # "Embedding Dimension = 128", not "E="
    ("linear-4-leads", 128, 1.0, "byol", None, P2020, P2020, "0.602 ± 0.015"),
    ("linear-4-leads", 256, 1.0, "cmlc", None, CHAPMAN, CHAPMAN, "0.890 ± 0.006"),
    ("linear-12-leads", 64, 0.5, "simclr", None, CHAPMAN, CHAPMAN, "0.753 ± 0.046"),  # \midrule for \toprule
    ("linear-12-leads", 128, 0.25, "cmsc", None, P2020, P2020, "0.7600 ± 0.019"),  # four digits
    ("linear-12-leads", 256, 0.5, "cmsmlc", None, CHAPMAN, CHAPMAN, "0.852 ± 0.010"),  # no space before the &
    ("transfer-4-leads", 32, 0.25, "simclr", None, CHAPMAN, P2020, "0.790 ± 0.008"),  # no space before the ±
    ("transfer-4-leads", 64, 0.75, "random", None, CHAPMAN, P2017, "0.7600 ± 0.011"),
    ("transfer-4-leads", 128, 0.25, "supervised", None, P2020, CHAPMAN, "0.942 ± 0.011"),
    ("transfer-4-leads", 128, 0.75, "byol", None, P2020, CARDIOLOGY, "0.700 ± 0.02"),
    ("transfer-4-leads", 256, 1.0, "cmsc", None, P2020, CARDIOLOGY, "0.718 ± 0.012"),
    ("transfer-12-leads", 32, 1.0, "cmsc", None, CHAPMAN, P2017, "0.821 ± 0.013"),
    ("transfer-12-leads", 64, 0.75, "random", None, CHAPMAN, CARDIOLOGY, "0.68 ± 0.015"),
    ("transfer-12-leads", 64, 0.75, "cmlc", None, CHAPMAN, CARDIOLOGY, "0.690 ± 0.007"),
    ("transfer-12-leads", 128, 1.0, "cmsc", None, P2020, CHAPMAN, "0.959 ± 0.004"),
    ("transfer-12-leads", 256, 0.75, "random", None, P2020, CARDIOLOGY, "0.68 ± 0.018"),
    ("byol-tau-linear", 128, 0.25, "byol", 0.5, CHAPMAN, CHAPMAN, "0.602 ± 0.072"),
    ("byol-tau-linear", 128, 1.0, "byol", 0.99, P2020, P2020, "0.592 ± 0.026"),
    ("byol-tau-transfer", 128, 0.25, "byol", 0.9, P2020, CHAPMAN, "0.904 ± 0.006"),
    ("byol-tau-transfer", 128, 0.75, "byol", 0.99, P2020, P2017, "0.763 ± 0.01"),
]

MADE_UP = r"""
\appendix
\section{a}
\section{b}
\section{c}
\section{d}
\subsection{d.1}
\subsubsection{Embedding Dimension, $E=32$}
\begin{table} \caption{Using 4 leads: evaluating using 4 leads.}
\begin{subtable}{x} \caption{$F=0.25$}
\begin{tabular}{c | c c}
\toprule
Dataset&\multicolumn{1}{c}{Chapman*}&\multicolumn{1}{c}{PhysioNet 2020*}\\
\midrule
SimCLR & 0.5 $\pm$ 0.02 & - \\ % 0.999 $\pm$ 0.999
CMSC & & \multicolumn{1}{c}{\textbf{0.400$\pm$0.010}} \\
\bottomrule \end{tabular}
\end{subtable}
\end{table}
"""


@pytest.fixture(scope="module")
def paper() -> PaperResults:
    return load_results()


def condition(cell: PrintedScore) -> tuple:
    where = (cell.pretraining, cell.downstream)
    return (cell.table, cell.embedding_dim, cell.label_fraction, cell.method, cell.tau_d, *where)


def expected_conditions() -> set[tuple]:
    """What the paper evaluates, said once more in loops."""
    found = set()
    for (start, pairs), (end, dims, fractions) in itertools.product(
        (("linear", SAME), ("transfer", OTHERS)),
        (("main", (128,), (0.5,)), ("4-leads", DIMS, FRACTIONS), ("12-leads", DIMS, FRACTIONS)),
    ):
        for dim, fraction, pair in itertools.product(dims, fractions, pairs):
            methods = list(OURS)
            if start == "transfer":
                methods.append("random")
            if end != "12-leads" and dim == 128:
                methods += ["byol", "supervised"] if start == "transfer" else ["byol"]
            if end == "main":
                methods.append("mt-ssl")
            found |= {(f"{start}-{end}", dim, fraction, method, None, *pair) for method in methods}
    for start, pairs in (("linear", SAME), ("transfer", OTHERS)):
        for fraction, tau, pair in itertools.product(FRACTIONS, (0.5, 0.9, 0.99), pairs):
            found.add((f"byol-tau-{start}", 128, fraction, "byol", tau, *pair))
    return found


def test_every_condition_of_the_paper_is_there_once(paper):
    conditions = Counter(map(condition, paper.cells))
    assert set(conditions) == expected_conditions()
    assert set(conditions.values()) == {1}
    assert len(paper.cells) == 1428


def test_the_cells_are_of_74_tabulars(paper):
    by_table: dict[str, set[str]] = {}
    for cell in paper.cells:
        by_table.setdefault(cell.table, set()).add(cell.printed_in)
    assert {name: len(found) for name, found in by_table.items()} == {
        "linear-main": 1,
        "transfer-main": 1,
        "linear-4-leads": 16,
        "linear-12-leads": 16,
        "transfer-4-leads": 16,
        "transfer-12-leads": 16,
        "byol-tau-linear": 4,
        "byol-tau-transfer": 4,
    }
    assert len(set.union(*by_table.values())) == 74


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: "-".join(map(str, typed[:-1])))
def test_a_cell_is_what_the_paper_prints(paper, typed):
    *asked, printed = typed
    (cell,) = [one for one in paper.cells if condition(one) == tuple(asked)]
    mean, sd = printed.split(" ± ")
    assert (cell.printed, cell.mean, cell.sd) == (printed, float(mean), float(sd))


def test_tables_know_their_section_protocol_and_leads(paper):
    found = {(cell.table, cell.section, cell.protocol, cell.leads) for cell in paper.cells}
    assert found == {
        ("linear-main", "6.2", "linear", 4),
        ("transfer-main", "6.3", "finetune", 4),
        ("linear-4-leads", "D.1", "linear", 4),
        ("linear-12-leads", "D.2", "linear", 12),
        ("transfer-4-leads", "E.1", "finetune", 4),
        ("transfer-12-leads", "E.2", "finetune", 12),
        ("byol-tau-linear", "F.1", "linear", 4),
        ("byol-tau-transfer", "F.2", "finetune", 4),
    }


def find_count(paper, *, dataset, part, method=None):
    """Find the size of a part: for pre-training with a method, or without one for a downstream task."""
    asked = (dataset, part, method)
    return next((one for one in paper.counts if (one.dataset, one.part, one.method) == asked), None)


def test_counts_are_those_of_appendix_a(paper):
    assert len(paper.counts) == 2 * 5 * 2 + 4 * 3
    cmsmlc = find_count(paper, dataset=CHAPMAN, part="validation", method="cmsmlc")
    assert cmsmlc is not None
    assert (cmsmlc.instances, cmsmlc.patients, cmsmlc.axes) == (2125, None, "2S × L")
    assert {one.section for one in paper.counts} == {"A.2"}
    typed = {
        (P2020, "cmsc", "train"): "24,080 × 2S",
        (P2020, "cmlc", "validation"): "6,076 × S × L",
        (CHAPMAN, "byol", "train"): "25,543 × S",
        (P2020, None, "train"): "51,880 (4,402)",
        (CHAPMAN, None, "test"): "8,520 (2,130)",
        (CARDIOLOGY, None, "validation"): "1,109 (50)",
        (P2017, None, "test"): "5,824 (1,705)",
    }
    for (dataset, method, part), printed in typed.items():
        count = find_count(paper, dataset=dataset, part=part, method=method)
        assert count is not None
        assert count.printed == printed
    downstream = find_count(paper, dataset=P2017, part="train")
    assert downstream is not None
    assert (downstream.instances, downstream.patients) == (18256, 5459)
    assert find_count(paper, dataset=CHAPMAN, part="train", method="mt-ssl") is None


def test_a_condition_is_found_in_the_main_text_first_and_in_the_table_that_is_asked_for(paper):
    asked = {"protocol": "linear", "method": "cmsc", "pretraining": CHAPMAN, "downstream": CHAPMAN}
    assert paper.find(PaperCondition(**asked)).table == "linear-main"
    assert paper.find(PaperCondition(**asked), table="linear-4-leads").printed_in == "9b"
    assert paper.find(PaperCondition(**asked, leads=12, embedding_dim=256)).printed == "0.906 ± 0.002"


def test_what_the_paper_has_no_number_for_is_none(paper):
    chapman = {"protocol": "linear", "pretraining": CHAPMAN, "downstream": CHAPMAN}
    assert paper.find(PaperCondition(**chapman, method="mt-ssl")) is not None
    assert paper.find(PaperCondition(**chapman, method="mt-ssl", label_fraction=0.25)) is None
    assert paper.find(PaperCondition(**chapman, method="byol", leads=12)) is None
    assert paper.find(PaperCondition(**chapman, method="random")) is None
    assert paper.find(PaperCondition(**chapman, method="cmsc", tau_d=0.9)) is None
    assert paper.find(PaperCondition(**chapman, method="cmsc"), table="transfer-main") is None


def test_the_same_condition_has_the_same_number_everywhere(paper):
    """So it does not matter which table a look-up takes, and E = 128 is what appendix F was made with."""
    by_condition: dict[tuple, set[tuple[float, float]]] = {}
    for cell in paper.cells:
        tau = 0.9 if cell.method == "byol" and cell.tau_d is None else cell.tau_d
        key = (cell.protocol, cell.leads, *condition(attrs.evolve(cell, table="", tau_d=tau)))
        by_condition.setdefault(key, set()).add((cell.mean, cell.sd))
    assert {key: found for key, found in by_condition.items() if len(found) > 1} == {}


def test_the_committed_file_is_what_the_paper_gives(paper_tex):
    assert RESULTS.read_text(encoding="utf-8") == extract(paper_tex)


def test_every_plus_minus_of_the_paper_is_a_cell_in_the_same_order(paper, paper_tex):
    """An oracle that knows nothing of tables: the signs of the paper, one after the other."""
    found = re.findall(r"([0-9.]+) *\$\\pm\$ *([0-9.]+)", paper_tex)
    assert paper_tex.count(r"\pm") == len(found) == 1428
    assert [f"{mean} ± {sd}" for mean, sd in found] == [cell.printed for cell in paper.cells]


def test_the_paper_has_78_tabulars(paper_tex):
    found = list(find_tabulars(paper_tex))
    assert (len(found), sum(one.has_scores for one in found)) == (78, 74)
    assert [(one.printed_in, one.section) for one in found if not one.has_scores] == [
        *(("3", "A.2"), ("4", "A.2")),
        *(("5", "C.1"), ("6", "C.2")),
    ]


def test_bold_changes_nothing(paper_tex):
    """The paper's bold is not always the best of its column, so nothing may rest on it."""
    assert extract(re.sub(r"\\textbf\{([^{}]*)\}", r"\1", paper_tex)) == extract(paper_tex)


def test_empty_cells_and_dashes_are_no_cells(tmp_path):
    path = tmp_path / "made_up.toml"
    path.write_text(extract(MADE_UP), encoding="utf-8")
    first, second = load_results(path).cells
    assert condition(first) == ("linear-4-leads", 32, 0.25, "simclr", None, CHAPMAN, CHAPMAN)
    assert condition(second) == ("linear-4-leads", 32, 0.25, "cmsc", None, P2020, P2020)
    assert (first.printed, second.printed, second.printed_in) == ("0.5 ± 0.02", "0.400 ± 0.010", "1a")


@pytest.mark.parametrize(
    ("printed", "instead", "message"),
    [
        ("SimCLR", "SimSiam", "Table 1a: 'SimSiam' is not known here; known are Random Init., Supervised, MT-SSL"),
        (" - ", " n/a ", "Table 1a: cell 'n/a' is not a mean and a standard deviation"),
        ("& - ", "", "Table 1a: row 'SimCLR' has 1 cells for ['chapman', 'physionet2020']"),
        ("Dataset&", "Data&", "Table 1a: a header that begins 'Data', 'SimCLR' is not known"),
        ("$F=0.25$", "F", "Table 1a: 'F' has nothing like F="),
        (r"\subsection{d.1}", "", "Table 1a: 'D.0 linear' is not known here"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_the_table(printed, instead, message):
    assert printed in MADE_UP
    with pytest.raises(ValueError, match=re.escape(message)):
        extract(MADE_UP.replace(printed, instead))


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ('"0.5 ± 0.02"', '"0.5"', "linear-4-leads: cell '0.5' is not of the form"),
        (', "0.5 ± 0.02"', "", "linear-4-leads: row ['1a', 32, 0.25, 'simclr', ''] has 5 entries, expected 4 and 2"),
        ('"simclr"', '"simsiam"', "'simsiam'"),
    ],
)
def test_a_file_of_another_form_is_an_error(tmp_path, written, instead, message):
    toml = extract(MADE_UP)
    assert written in toml
    path = tmp_path / "made_up.toml"
    path.write_text(toml.replace(written, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        load_results(path)


def test_the_script_writes_what_it_extracts(tmp_path):
    tex, out = tmp_path / "made_up.tex", tmp_path / "made_up.toml"
    tex.write_text(MADE_UP, encoding="utf-8")
    script = Path(extract_paper_results.__file__)
    subprocess.run([sys.executable, script, "--tex", tex, "--out", out], check=True, capture_output=True)
    assert out.read_text(encoding="utf-8") == extract(MADE_UP)
