"""Columns of recordings: chosen by name and kind, standardised on training patients, missing where they are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clocs_core.contracts.records import Column, Entry
from clocs_core.data.metadata import choose_columns, read_columns
from clocs_core.errors import DataError

AGE, SEX, REMARK = Column("age"), Column("sex", "category", ("female", "male")), Column("remark", "text")
ENTRIES = [
    Entry("a", "p0", about={"age": 40, "sex": "male", "remark": "tired"}),
    Entry("b", "p1", about={"age": 60.0, "sex": None}),
    Entry("c", "p1", about={"age": None}),
    Entry("d", "p2", about={"age": 100.0, "sex": "female"}),
]
RECORDS = [("d", "p2"), ("a", "p0"), ("c", "p1"), ("b", "p1")]  # in another order than the entries


def read(*columns, train=("p0", "p1"), entries=ENTRIES):
    return read_columns(columns, entries, RECORDS, frozenset(train))


def test_numbers_are_standardised_on_the_recordings_of_training_patients_alone():
    """40 and 60; the patient of 100 is another part's. What is missing stays missing."""
    (column,), values = read(AGE)
    assert (column.mean, column.deviation) == (50.0, 10.0)
    assert values["age"].dtype == np.float32
    assert values["age"].tolist()[:2] == [5.0, -1.0]
    assert math.isnan(values["age"][2])
    assert values["age"][3] == 1.0


def test_categories_are_numbers_of_their_classes():
    (column,), values = read(SEX)
    assert column == SEX
    assert values["sex"].tolist() == [0, 1, -1, -1]
    assert values["sex"].dtype == np.int64


def test_a_constant_number_is_not_divided_by_zero():
    (column,), values = read(AGE, train=("p0",))
    assert (column.mean, column.deviation) == (40.0, 1.0)
    assert values["age"].tolist()[:2] == [60.0, 0.0]


def test_without_columns_nothing_is_read():
    assert read_columns((), [], RECORDS, frozenset()) == ((), {})


@pytest.mark.parametrize(("column", "train"), [(AGE, ("p9",)), (SEX, ("p1",))])
def test_a_column_without_a_value_among_training_patients_is_refused(column, train):
    with pytest.raises(DataError, match=f"column '{column.name}', and no recording of the training patients has"):
        read(column, train=train)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [(AGE, "old", "has age 'old', which is not a number"), (SEX, "f", "sex 'f'; its classes are female, male")],
)
def test_a_value_of_another_kind_is_named(column, value, said):
    entries = [*ENTRIES[1:], Entry("a", "p0", about={column.name: value})]
    with pytest.raises(DataError, match=said):
        read(column, entries=entries)


def test_columns_are_chosen_by_name_and_kind_and_each_once():
    declared = (REMARK, SEX, AGE)
    assert choose_columns((Column("age"), Column("sex", "category"), Column("age")), declared, "d") == (AGE, SEX)


@pytest.mark.parametrize(
    ("needed", "declared", "has"),
    [
        (Column("age"), (), "none"),
        (Column("age"), (SEX, REMARK), r"sex \(category\), remark \(text\)"),
        (Column("sex"), (SEX,), r"sex \(category\)"),
    ],
)
def test_a_column_that_a_data_set_does_not_have_is_refused_in_a_sentence(needed, declared, has):
    said = f"needs the column '{needed.name}' of each recording, a number; data set 'd' has {has}. Choose another"
    with pytest.raises(DataError, match=said):
        choose_columns((needed,), declared, "d")
