"""Flags that are short for options of the data set: read as the data set's own class says, or refused by name."""

from __future__ import annotations

from pathlib import Path

import attrs
import click
import pytest
from fake_plugins import fake_point, offers, tiny

from clocs_core import SettingsError, UnknownName, option
from clocs_core.cli.run import _tables
from clocs_core.plugins.session import Session, open_session


@attrs.frozen
class OwnOptions:
    """Options of a data set that asks for what its files do not say."""

    patients: str | None = option(None, "a file")
    sampling_rate: float | None = option(None, "Hz")
    unit: str = option("", "mV")


@attrs.frozen
class CountOptions:
    """Options of a data set that makes as many patients as it is told."""

    patients: int = option(10, "how many")


@pytest.fixture
def session() -> Session:
    hooks = offers() | {
        "clocs_datasets": lambda: [tiny(), tiny("own", options=OwnOptions), tiny("counted", options=CountOptions)]
    }
    return open_session([fake_point("fakes", **hooks)], (), False)


def tables(session: Session, **given: str) -> dict:
    return _tables(session.catalogue, {}, given)


def test_flags_become_options_of_the_data_set_with_its_own_types(session: Session):
    made = tables(session, dataset="own", patients="ids.csv", sampling_rate="125", unit="mV")
    file = str(Path("ids.csv").absolute())  # means the same from another folder
    assert made["dataset"] == {"patients": file, "sampling_rate": 125.0, "unit": "mV"}
    assert tables(session, dataset="own", patients="none")["dataset"] == {"patients": "none"}


def test_what_is_a_file_to_one_data_set_may_be_a_number_to_another(session: Session):
    assert tables(session, dataset="counted", patients="10")["dataset"] == {"patients": 10}


def test_a_flag_wins_over_the_file(session: Session):
    file = {"run": {"dataset": "own"}, "dataset": {"unit": "V", "sampling_rate": 100.0}}
    assert _tables(session.catalogue, file, {"unit": "mV"})["dataset"] == {"unit": "mV", "sampling_rate": 100.0}


def test_a_data_root_wins_over_the_folder_that_the_file_names(session: Session, tmp_path: Path):
    """The settings of another run may name a folder of its own; who asks for another place means it."""
    file = {"run": {"dataset": "own"}, "data": {"root": "/old", "split_seed": 3}}
    assert _tables(session.catalogue, file, {"data_root": str(tmp_path)})["data"] == {
        "split_seed": 3,
        "data_root": str(tmp_path),
    }
    assert _tables(session.catalogue, file, {"split_seed": "4"})["data"] == {"root": "/old", "split_seed": 4}


def test_a_data_set_without_the_option_says_so_by_the_name_of_the_flag(session: Session):
    with pytest.raises(
        SettingsError, match=r"--sampling-rate: data set 'tiny' has no option 'sampling_rate'\. There is"
    ):
        tables(session, dataset="tiny", sampling_rate="125")


def test_a_flag_without_its_data_set_asks_for_it(session: Session):
    with pytest.raises(SettingsError, match="--unit is a setting of a data set: say which one with `--dataset NAME`"):
        tables(session, unit="mV")
    with pytest.raises(UnknownName, match=r"No dataset 'onw'\. Did you mean 'own'"):
        tables(session, dataset="onw", unit="mV")


def test_help_names_the_flags():
    from clocs_core.cli.run import run_command

    text = run_command.get_help(click.Context(run_command))
    assert all(flag in text for flag in ("--patients", "--labels", "--sampling-rate", "--unit"))


def test_nothing_is_added_where_nothing_was_given(session: Session, tmp_path: Path):
    assert "dataset" not in tables(session, dataset="own")
