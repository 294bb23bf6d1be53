"""The ledger loses nothing that was written and believes nothing that was not."""

from __future__ import annotations

import json
import math
import os
from multiprocessing import get_context
from pathlib import Path

import attrs
import pytest
from grid.cells import Cell, Pretraining, digest
from grid.ledger import Entry, Ledger, protocol_id
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError

RUN = Pretraining(method="cmsc", dataset="demo")
CELL = Cell(pretraining=RUN, downstream="demo", protocol="linear", label_fraction=0.5)


def entry(**changes: object) -> Entry:
    about = Score("linear", "cmsc", "demo", 0.5, "auroc", "frame", 0.75, math.nan, 0.8)
    first = Entry(
        key=digest(CELL.evaluation),
        protocol=protocol_id("linear"),
        name="a cell",
        seed=0,
        status="done",
        scores=(about,),
        label_fractions=(0.5, 1.0),
    )
    return attrs.evolve(first, **changes)


def test_what_is_appended_reads_back(tmp_path: Path) -> None:
    """NaN included: a metric may be undefined, and JSON has no word for that."""
    ledger = Ledger(tmp_path / "deep" / "ledger.jsonl")
    ledger.append(entry())
    ledger.append(entry(name="zweite Zelle – µV", notes=("one", "two")))
    first, second = ledger.read().entries
    assert math.isnan(first.scores[0].low)
    assert attrs.evolve(first, scores=()) == attrs.evolve(entry(), scores=())
    assert (second.name, second.notes) == ("zweite Zelle – µV", ("one", "two"))


def test_lines_of_before_invocations_were_kept_still_count(tmp_path: Path) -> None:
    """A ledger is weeks of computing; a field that it lacks must not cost them."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry(invocation="2026-01-01T00:00:00+00:00"))
    fields = json.loads(ledger.path.read_text())
    del fields["invocation"]
    ledger.path.write_text(json.dumps(fields) + "\n")
    assert [one.invocation for one in ledger.read().entries] == [""]


@given(cut=st.integers(min_value=1, max_value=10_000))
@settings(max_examples=25, deadline=None)
def test_a_torn_last_line_is_dropped_and_cut_off(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """A kill or a power cut may leave any part of the last line; the next line must not be glued to it."""
    ledger = Ledger(tmp_path_factory.mktemp("torn") / "ledger.jsonl")
    ledger.append(entry(name="first"))
    whole = ledger.path.stat().st_size
    ledger.append(entry(name="second"))
    length = ledger.path.stat().st_size - whole
    os.truncate(ledger.path, whole + cut % length)
    assert [one.name for one in ledger.read().entries] == ["first"]
    ledger.append(entry(name="third"))
    assert [one.name for one in ledger.read().entries] == ["first", "third"]


def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path: Path) -> None:
    """The end is looked for backwards in blocks of 64 KiB."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry(name="first"))
    with open(ledger.path, "a") as file:
        file.write("x" * 200_000)
    ledger.append(entry(name="second"))
    assert [one.name for one in ledger.read().entries] == ["first", "second"]


def test_a_ledger_that_is_one_torn_line_is_empty(tmp_path: Path) -> None:
    """The very first write may be the one that is torn."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.path.write_text('{"key": "ab')
    assert ledger.read().entries == ()
    ledger.append(entry(name="first"))
    assert [one.name for one in ledger.read().entries] == ["first"]


def test_a_damaged_line_in_the_middle_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """It was not torn by a kill, so nobody knows what else is wrong."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry())
    text = ledger.path.read_text()
    ledger.path.write_text('{"key": 1}\n' + text)
    with pytest.raises(RunFolderError, match=r"ledger.jsonl, line 1, .*take that line out"):
        ledger.read()


def test_a_message_with_an_odd_end_of_line_is_one_line(tmp_path: Path) -> None:
    """U+2028 and its kin end a line for str.splitlines(), and may stand in the name of a patient or in an error."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry(error="one\u2028two\x85three\x0cfour"))
    ledger.append(entry(name="second"))
    assert [one.error for one in ledger.read().entries] == ["one\u2028two\x85three\x0cfour", ""]


def test_bytes_that_are_no_text_are_an_error_that_says_where(tmp_path: Path) -> None:
    """A block of zeros or noise after a power cut, with lines behind it."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.path.write_bytes(b"\xff\xfe\n")
    ledger.append(entry())
    with pytest.raises(RunFolderError, match=r"line 1, is not a line of a ledger \(UnicodeDecodeError"):
        ledger.read()


def append_many(path: Path, name: str) -> None:
    for number in range(40):
        Ledger(path).append(entry(name=f"{name}-{number}", notes=("x" * 3000,)))


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    """Two grids may share a folder."""
    path = tmp_path / "ledger.jsonl"
    with get_context("spawn").Pool(2) as pool:
        pool.starmap(append_many, [(path, "a"), (path, "b")])
    names = [json.loads(line)["name"] for line in path.read_text().splitlines()]
    assert sorted(names) == sorted(f"{who}-{number}" for who in "ab" for number in range(40))


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there must still be there, and the next line must stand on its own."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry(name="first"))
    before, real = ledger.path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:20]))
    with pytest.raises(OSError, match="a part of a line only"):
        ledger.append(entry(name="second"))
    monkeypatch.undo()
    assert ledger.path.read_bytes() == before


def test_a_cell_is_found_by_its_settings_and_its_share_of_labels(tmp_path: Path) -> None:
    """One line holds several F of one evaluation; an F that is not in it is missing."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry())
    results = ledger.read()
    assert results.is_done(CELL)
    assert results.is_done(attrs.evolve(CELL, label_fraction=1.0))
    assert not results.is_done(attrs.evolve(CELL, label_fraction=0.25))
    assert not results.is_done(attrs.evolve(CELL, part="validation"))
    assert not results.is_done(attrs.evolve(CELL, pretraining=attrs.evolve(RUN, seed=1)))
    assert results.pretraining(RUN) is None


def test_the_last_good_line_wins_over_failures(tmp_path: Path) -> None:
    """What failed may be tried again, before and after it went well."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for status, name in (("failed", "one"), ("done", "two"), ("failed", "three")):
        ledger.append(entry(status=status, name=name))
    found = ledger.read().cell(CELL)
    assert found is not None
    assert found.name == "two"


def test_lines_of_another_protocol_do_not_count(tmp_path: Path) -> None:
    """When the same settings come to mean another computation, older scores must not be mixed with newer ones."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(entry(protocol="linear/0"))
    assert not ledger.read().is_done(CELL)
