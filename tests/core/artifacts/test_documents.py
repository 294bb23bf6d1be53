"""Records such as report.json read back exactly, or say what is wrong with them."""

import json
import math
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.artifacts.documents import dump_record, read_text
from clocs_core.artifacts.reports import Report, SplitSummary, read_report
from clocs_core.contracts.records import DropReport
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.errors import ClocsError, RunFolderError

FLOATS = st.floats(allow_nan=False, allow_infinity=True)


def report(**changes) -> Report:
    whole = Report(
        method="m",
        dataset="d",
        task="rhythm",
        seed=7,
        settings={"train": {"epochs": 3, "rate": 0.1, "names": ("a", "b"), "root": None, "exact": False}},
        epochs_run=3,
        best_epoch=2,
        stopped="early stopping",
        split=SplitSummary(
            "abc", "60/20/20", 7, {"train": 6, "test": 2}, {"train": 60, "test": 20}, {"train": 9}, 0, 0
        ),
        environment={"python": "3.11"},
        scores=(Score("linear", "m", "d", 1.0, "auroc", "frame", 0.1 + 0.2, 0.25, 0.375),),
        comparisons=(Comparison("m", "random", "linear", "d", 1.0, "auroc", "frame", 1 / 3, 0.25, 0.5),),
        notes=("naïve",),
        drops=DropReport({"flat": 2}, {"flat": ("A1 V2", "A7 II")}),
        form="WFDB",
        seconds={"prepare": 0.1, "pretrain": 2.0},
    )
    return attrs.evolve(whole, **changes)


def test_a_report_reads_back_exactly():
    """A table made from report.json must show the numbers of the run, to the last bit."""
    assert read_report(dump_record(report())) == report()
    assert read_report(dump_record(report(task=None))).task is None


def test_a_report_without_p_of_its_comparisons_is_read():
    """Reports from before the permutation test have none."""
    (one,) = report().comparisons
    tested = report(comparisons=(attrs.evolve(one, p=0.125),))
    assert read_report(dump_record(tested)) == tested
    held = json.loads(dump_record(tested))
    del held["comparisons"][0]["p"], held["digest"]
    assert read_report(json.dumps(held)).comparisons == (one,)


@given(value=FLOATS, low=FLOATS, high=FLOATS)
def test_every_float_of_a_score_survives(value, low, high):
    """Two runs are compared by their bits, so a score must not lose one on its way through the file."""
    score = Score("linear", "m", "d", 1.0, "auroc", "frame", value, low, high)
    assert read_report(dump_record(report(scores=(score,)))).scores == (score,)


def test_a_value_that_is_not_defined_is_null_and_reads_back_as_nan():
    """NaN is not JSON: other programs would refuse the whole file."""
    score = Score("linear", "m", "d", 1.0, "auroc", "frame", math.nan, math.nan, 0.5)
    text = dump_record(report(scores=(score,)))
    assert json.loads(text, parse_constant=pytest.fail)["scores"][0]["value"] is None
    (read,) = read_report(text).scores
    assert math.isnan(read.value)
    assert math.isnan(read.low)
    assert read.high == 0.5


def test_keys_stand_in_the_order_of_the_record():
    """A reader with a text editor finds what the run was first, and two files can be compared line by line."""
    text = dump_record(report())
    keys = list(json.loads(text))
    assert keys[:5] == ["schema", "method", "dataset", "task", "seed"]
    assert text.endswith("}\n")
    assert '\n  "method": "m",\n' in text
    assert "naïve" in text


def test_numbers_of_numpy_and_paths_become_plain():
    """A setting or a score that comes straight from NumPy must not break the report after hours of training."""
    score = Score("linear", "m", "d", 1.0, "auroc", "frame", np.float32(0.5), np.float64(0.25), np.float32(0.75))
    written = report(scores=(score,), settings={"a": {"n": np.int64(3), "file": Path("x") / "y", "bad": math.nan}})
    assert written.settings == {"a": {"n": 3, "file": str(Path("x") / "y"), "bad": None}}
    assert read_report(dump_record(written)) == written


def test_another_schema_is_refused_with_a_way_out():
    """A newer file must not be misread by an older version."""
    newer = dump_record(report()).replace('"schema": 1', '"schema": 2')
    with pytest.raises(ClocsError, match=r"report.json has schema 2, this version of clocs reads 1; .* again"):
        read_report(newer)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: d.pop("seed"), "required field missing.*seed"),
        (lambda d: d.update(seed="7"), "expected int.*seed"),
        (lambda d: d["scores"][0].pop("metric"), "required field missing.*metric"),
        (lambda d: d.update(extra=1), "extra"),
        (lambda d: d["scores"][0].update(level="leaf"), "level"),
        (lambda d: d["scores"][0].update(value="high"), "value"),
    ],
)
def test_a_damaged_report_says_where(damage, says):
    """A file that somebody edited fails at the border, with the name of the field."""
    document = json.loads(dump_record(report()))
    damage(document)
    with pytest.raises(RunFolderError, match=says):
        read_report(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema"'])
def test_what_is_no_report_at_all_is_refused(text):
    """An empty or truncated file is a problem of the run folder, not a crash."""
    with pytest.raises(RunFolderError, match=r"report\.json"):
        read_report(text)


def test_a_file_that_is_not_utf_8_or_not_there_is_refused_by_its_name(tmp_path):
    (tmp_path / "report.json").write_bytes(b'{"schema": 1, "method": "\xff"}')
    with pytest.raises(RunFolderError, match=r"report\.json is damaged: it is not text in UTF-8"):
        read_text(tmp_path / "report.json")
    with pytest.raises(RunFolderError, match=r"Cannot read .*gone: No such file"):
        read_text(tmp_path / "gone")


@pytest.mark.parametrize("text", ['{"a": ' + "[" * 100_000, '{"a": ' + "9" * 5000 + "}"], ids=["nested", "digits"])
def test_json_that_no_parser_reads_is_one_sentence(text):
    with pytest.raises(RunFolderError, match=r"report\.json is not JSON"):
        read_report(text)


def test_a_number_that_changed_on_the_disk_is_noticed():
    """JSON has no checksum of its own: a flipped bit of a digit gives another score, silently."""
    text = dump_record(report())
    assert read_report(text) == report()
    value = json.loads(text)["scores"][0]["value"]
    changed = text.replace(repr(value), repr(round(value + 0.01, 6)), 1)
    assert changed != text
    with pytest.raises(RunFolderError, match=r"report.json is damaged, or was edited: .*digest"):
        read_report(changed)
    without = {key: found for key, found in json.loads(text).items() if key != "digest"}
    assert read_report(json.dumps(without)) == report()  # an earlier version wrote it
