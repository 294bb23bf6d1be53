"""Settings given as arguments find their table, whatever a data set calls its own options."""

from __future__ import annotations

import numpy as np
import pytest
from fake_recordings import recordings_in_memory

from clocs_core.api.arguments import EVALUATE, PRETRAIN, assignments_of, choose_workers
from clocs_core.api.recordings import InstalledDataset
from clocs_core.errors import DataError

SEEDED = InstalledDataset("somewhere", {"dataset.seed": 5, "data.split_seed": 6})


def named(sections, data, **settings):
    return {one.path: one.value for one in assignments_of(sections, data, settings)}


@pytest.mark.parametrize(("sections", "table"), [(PRETRAIN, "run"), (EVALUATE, "evaluation")])
def test_a_setting_of_core_goes_to_its_own_table_where_a_data_set_has_the_same_name(sections, table):
    """On a command line `-o seed=3` is ambiguous there; an argument `seed` can only be the one in the signature."""
    assert named(sections, SEEDED, seed=3) == {
        "dataset.seed": 5,
        "data.split_seed": 6,
        f"{table}.seed": 3,
        f"{table}.dataset": "somewhere",
    }


def test_a_setting_of_a_plugin_goes_to_whichever_part_has_it():
    assert named(PRETRAIN, SEEDED, temperature=0.1)["temperature"] == 0.1


def test_epochs_of_an_evaluation_are_those_of_fine_tuning():
    assert named(EVALUATE, SEEDED, epochs=3)["finetune.epochs"] == 3
    assert named(PRETRAIN, SEEDED, epochs=3)["train.epochs"] == 3


def test_an_argument_wins_over_what_the_data_set_was_named_with():
    assert named(PRETRAIN, SEEDED, split_seed=7)["data.split_seed"] == 7


def test_values_are_python_values_and_not_typed_text():
    assert not any(one.is_text for one in assignments_of(PRETRAIN, SEEDED, {"task": "3"}))


def test_no_name_of_core_stands_in_two_tables_of_one_call():
    """Else an argument would be given to the last of them, and nobody told."""
    for sections in (PRETRAIN, EVALUATE):
        fields = [name for cls in sections.values() for name in cls.__annotations__]
        assert len(set(fields)) == len(fields)


@pytest.mark.parametrize(("data", "name"), [(np.zeros((2, 1, 9)), "ndarray"), ([[1.0]], "list"), ("demo", "str")])
def test_data_that_is_a_bare_array_is_refused_by_name(data, name):
    with pytest.raises(DataError, match=rf"^`data` is {name}, expected clocs\.Recordings\(x, patients="):
        assignments_of(PRETRAIN, data, {})


def test_recordings_in_memory_are_read_by_this_process_alone():
    """Other processes would need a copy of them."""
    assert choose_workers(recordings_in_memory(2), 8) == 1
    assert choose_workers(SEEDED, 8) == 8
    assert choose_workers(SEEDED, None) >= 1
