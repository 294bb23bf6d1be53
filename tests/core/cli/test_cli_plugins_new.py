"""`clocs plugins new` writes a plugin, or touches nothing."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import torch
from fake_events import epoch_done, run_at
from fake_offers import tiny
from fake_plugins import fake_point
from scaffolded import NAME, new

from clocs_core import API_VERSION, Dataset
from clocs_core.cli import main
from clocs_core.data.framing import cut_frames
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import installed_session
from clocs_core.scaffold.naming import KINDS, OFFERS, choose_kinds
from clocs_core.testing.project import open_project
from clocs_core.train.build import build_encoders

pytestmark = pytest.mark.usefixtures("forgotten")


def test_a_name_that_is_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two plugins with one name neither would be loaded."""
    points = [fake_point("eeg"), fake_point("other", clocs_datasets=lambda: [tiny()])]
    for name, taken in (("clocs-eeg", "plugin 'eeg'"), ("clocs-tiny", "dataset 'tiny'"), ("torch", "module 'torch'")):
        assert main(["plugins", "new", name, "--out", str(tmp_path / "x")], points) == 2
        assert capsys.readouterr().err.startswith(f"Error: A {taken} is ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert new(tmp_path / "mine") == 2
    assert "already exists and is not changed" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_of_one_kind_offers_that_kind_and_is_written_for_this_version(kind: str, tmp_path: Path) -> None:
    """The parts of the card and of the pages must fit together in every choice."""
    assert new(tmp_path / "one", "--kind", kind) == 0
    project = open_project(tmp_path / "one", [])
    offered = [one for one in choose_kinds([kind]) if one in OFFERS]
    assert [offer.kind for offer in project.offers()] == offered
    (plugin,) = project.plugins
    assert (plugin.name, plugin.distribution, plugin.version) == ("scaffolded", NAME, "0.1.0")
    assert f"{API_VERSION[0]}.{API_VERSION[1]}" == plugin.module.CLOCS_API
    assert Path(plugin.module.__file__ or "").is_relative_to(tmp_path)


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  clocs run")]


@pytest.mark.parametrize(
    ("kinds", "command"),
    [
        ("dataset", "--method cmsc --dataset scaffolded"),
        ("dataset,loss", "--method cmsc --dataset scaffolded"),
        ("encoder", "--method cmsc --dataset demo --encoder scaffolded-conv"),
        ("perturbation", "--method cmsc --dataset demo -o perturbations=scaffolded-drift"),
        ("metric", "--method cmsc --dataset demo"),
        ("listener", "--method cmsc --dataset demo"),
        ("method", "--method scaffolded --dataset demo"),
        ("dataset,method", "--method scaffolded --dataset scaffolded"),
    ],
)
def test_the_last_step_runs_what_was_written(
    kinds: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes a part wants to see it in a run; the other parts are those that are installed."""
    assert main(["plugins", "new", NAME, "--kind", kinds, "--out", str(tmp_path / "one")]) == 0
    assert commands(capsys) == [f"clocs run {command}"]


@pytest.mark.parametrize("kind", ["views", "loss", "objective"])
def test_a_part_that_only_a_method_uses_says_so(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "new", NAME, "--kind", kind, "--out", str(tmp_path / "one")]) == 0
    out = capsys.readouterr().out
    assert f"A run finds its {kind} through a method that names it; `--kind method` writes one." in out
    assert "clocs run" not in out


def test_frames_of_the_new_data_set_are_long_enough_for_the_default_encoder(tmp_path: Path) -> None:
    """Its first run ended with a sentence about samples."""
    assert new(tmp_path / "one", "--kind", "dataset") == 0
    project = open_project(tmp_path / "one", [])
    (dataset,) = project.offers()
    assert isinstance(dataset, Dataset)
    catalogue = installed_session().with_dataset(dataset, project.plugins[0]).catalogue
    plan = resolve(catalogue, {"run": {"method": "cmsc", "dataset": "scaffolded"}})
    build_encoders(plan, len(dataset.channels), torch.device("cpu"))
    framing = plan.pretrain_framing
    (entry, *_) = dataset.scan(tmp_path, dataset.tasks[0], dataset.options()).entries
    assert len(cut_frames(dataset.load(entry, dataset.options()), framing).samples) >= 2 * plan.needs.segments


def test_a_command_alone_is_shown_by_its_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "new", NAME, "--kind", "command", "--out", str(tmp_path / "one")]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\n  clocs scaffolded --help\n")
    assert "clocs run" not in out


def test_a_new_listener_hears_of_epochs_and_a_new_command_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(tmp_path / "one", "--kind", "listener,command") == 0
    host = open_project(tmp_path / "one", []).host
    run = run_at(tmp_path)
    host.announce("clocs_run_started", pytest.fail, run=run)
    host.announce("clocs_epoch_done", pytest.fail, run=run, epoch=epoch_done(1, 0.5, [0.5]))
    assert (tmp_path / "scaffolded.csv").read_text(encoding="utf-8") == "1,0.5000\n"
    cli = click.Group()
    host.announce("clocs_commands", pytest.fail, cli=cli)
    assert list(cli.commands) == ["scaffolded"]
