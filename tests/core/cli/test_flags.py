"""Flags follow from settings; every other flag is an option of a part of the command, read as its own type."""

from __future__ import annotations

from pathlib import Path

import attrs
import click
import pytest
from fake_offers import offers, tiny
from fake_plugins import fake_point

from clocs_core import SettingsError, UnknownName, option
from clocs_core.cli.flags import given_flags, read_assignments
from clocs_core.cli.run import SECTIONS, run_command
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import Session, open_session
from clocs_core.settings.options import help_of


@attrs.frozen
class OwnOptions:
    """Options of a data set that asks for what its files do not say."""

    patients: Path | None = option(None, "a file")
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
    return open_session([fake_point("fakes", **hooks)])


def plan(session: Session, *words: str, **tables: dict) -> Plan:
    """The plan of `clocs run --method together WORDS`, with a settings file."""
    context = run_command.make_context("run", ["--method", "together", *words])
    return resolve(session.catalogue, tables, read_assignments(context, SECTIONS, context.params["assignments"]))


def test_a_flag_may_be_an_option_of_any_part_and_is_read_as_its_type(session: Session) -> None:
    made = plan(session, "--dataset", "own", "--patients", "ids.csv", "--sampling-rate=125", "--unit", "mV")
    assert made.dataset.options == OwnOptions(Path("ids.csv").absolute(), 125.0, "mV")
    assert plan(session, "--dataset", "own", "--patients", "none").dataset.options.patients is None
    assert plan(session, "--dataset", "counted", "--patients", "10").dataset.options.patients == 10
    assert plan(session, "--dataset", "tiny", "--temperature", "0.5").loss.options.temperature == 0.5
    assert plan(session, "--dataset", "tiny", "--views.gain", "2").views.options.gain == 2.0


def test_later_settings_win_file_flag_and_then_o(session: Session) -> None:
    file = {"run": {"dataset": "own"}, "dataset": {"unit": "V", "sampling_rate": 100.0}, "train": {"epochs": 7}}
    made = plan(session, "--unit", "mV", "--epochs", "5", "-o", "epochs=6", **file)
    assert (made.dataset.options.unit, made.dataset.options.sampling_rate, made.train.epochs) == ("mV", 100.0, 6)


def test_a_data_root_wins_over_the_folder_that_the_file_names(session: Session, tmp_path: Path) -> None:
    """The settings of another run may name a folder of its own; who asks for another place means it."""
    file = {"run": {"dataset": "own"}, "data": {"root": "/old", "split_seed": 3}}
    data = plan(session, "--data-root", str(tmp_path), **file).data
    assert (data.root, data.data_root, data.split_seed) == (None, tmp_path, 3)
    assert plan(session, "--split-seed", "4", **file).data.root == Path("/old")


def test_an_option_that_no_part_has_is_refused_with_its_neighbours(session: Session) -> None:
    with pytest.raises(SettingsError, match=r"no part of this run has an option 'sampling_rat'\. Did you mean"):
        plan(session, "--dataset", "own", "--sampling-rat", "125")
    with pytest.raises(UnknownName, match=r"No dataset 'onw'\. Did you mean 'own'"):
        plan(session, "--dataset", "onw", "--unit", "mV")


def test_a_flag_is_no_value_of_another_and_a_rate_is_that_of_the_recordings(session: Session) -> None:
    with pytest.raises(SettingsError, match=r"^--temperature needs a value"):
        plan(session, "--dataset", "tiny", "--temperature", "--gain", "3")
    with pytest.raises(SettingsError, match="'dataset' has no option 'sampling_rate'"):
        plan(session, "--dataset", "tiny", "--sampling-rate", "250")
    assert plan(session, "--dataset", "tiny", "-o", "sampling_rate=250").evaluate_framing.sampling_rate == 250


def test_two_names_of_one_setting_are_not_given_together(session: Session) -> None:
    assert plan(session, "--dataset", "tiny", "--leads", "left").data.channels == ("left",)
    with pytest.raises(SettingsError, match="--leads and --channels are two names for one setting"):
        plan(session, "--dataset", "tiny", "--leads", "left", "--channels", "right")
    with pytest.raises(SettingsError, match="--plugin and --method are two names for one setting"):
        plan(session, "--dataset", "tiny", "--plugin", "together")


def test_help_shows_every_setting_with_the_help_of_its_definition() -> None:
    text = " ".join(run_command.get_help(click.Context(run_command, max_content_width=1000)).split())
    for cls in SECTIONS.values():
        for field in attrs.fields(cls):
            assert f"--{field.name.replace('_', '-')} " in text
            assert help_of(field).split(";")[0].split(" `")[0].rstrip(".") in text


def test_the_flags_that_were_given_are_known_by_name() -> None:
    context = run_command.make_context("run", ["--plugin", "m", "--batch-size", "3", "--temperature", "1"])
    assert given_flags(context, SECTIONS) == ["--batch-size", "--plugin", "--temperature"]
