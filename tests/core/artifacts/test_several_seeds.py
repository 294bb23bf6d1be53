"""The folder of several seeds: what it says of itself, who may work in it, and which of its runs are left to make."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from fake_frames import PARTS

from clocs_core.artifacts.documents import seal
from clocs_core.artifacts.encoder import find_encoder
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.results import open_candidate
from clocs_core.artifacts.run_folder import open_run_folder, refuse_taken
from clocs_core.artifacts.run_keeper import FolderKeeper
from clocs_core.artifacts.several_seeds import (
    SeedsFolderKeeper,
    SeedsKeeper,
    SeedsReport,
    SeedsScore,
    all_tables,
    is_finished,
    list_seeds,
    open_seeds_folder,
)
from clocs_core.artifacts.split import Split
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.settings.toml_file import Tables

TABLES: Tables = {"run": {"method": "cmsc", "seed": 3}}
SPLIT = Split(PARTS, 0, "60/20/20")
USED = UsedRecordings(recordings=6, patients=6, split="s", labels="l", files=("f",), frames="a")
NAN = float("nan")


def begin(path: Path) -> SeedsFolderKeeper:
    keeper = SeedsFolderKeeper(path)
    with keeper.open():
        keeper.begin(TABLES, range(3, 6), SPLIT, USED)
    return keeper


def test_a_folder_says_which_settings_and_seeds_it_has(tmp_path: Path) -> None:
    begin(tmp_path / "s")
    folder, tables, seeds = open_seeds_folder(tmp_path / "s")
    assert (tables, seeds) == (TABLES, range(3, 6))
    assert folder.run(4).path == tmp_path / "s" / "seed4"


def test_runs_that_are_finished_are_left_alone_and_others_are_resumed_or_begun(tmp_path: Path) -> None:
    keeper = begin(tmp_path / "s")
    for seed, files in ((3, ("settings.toml", "report.json")), (4, ("settings.toml",))):
        run = keeper.folder.run(seed)
        run.path.mkdir()
        for name in files:
            (run.path / name).write_text("schema = 1\n[run]\nseed = 4\n")
    assert keeper.of_run(3) is None
    resumed, new = keeper.of_run(4), keeper.of_run(5)
    assert isinstance(resumed, FolderKeeper)
    assert isinstance(new, FolderKeeper)
    assert resumed.begun == {"run": {"seed": 4}}
    assert new.begun is None


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    begin(tmp_path / "s")
    again = SeedsFolderKeeper(tmp_path / "s", all_tables(TABLES, range(3, 6)))
    with again.open(), pytest.raises(RunFolderError, match="Another process is working in"), again.open():
        pass
    with (
        pytest.raises(RunFolderError, match="have just been changed"),
        SeedsFolderKeeper(tmp_path / "s", TABLES).open(),
    ):
        pass
    with (
        pytest.raises(RunFolderError, match="has runs of several seeds already"),
        SeedsFolderKeeper(tmp_path / "s").open(),
    ):
        pass


def test_a_mistake_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), SeedsFolderKeeper(tmp_path / "a" / "s").open():
        raise ValueError("mine")
    assert list(tmp_path.iterdir()) == []


def test_seeds_that_were_not_begun_are_not_made_of_other_recordings(tmp_path: Path) -> None:
    """A run keeps its own recordings; a seed that has no folder yet would be the mean's odd one out."""
    keeper = begin(tmp_path / "s")
    with pytest.raises(RunFolderError, match="recordings have changed"):
        keeper.begin(TABLES, range(3, 6), SPLIT, attrs.evolve(USED, recordings=7))


@pytest.mark.parametrize("opening", [open_run_folder, open_candidate, find_encoder])
def test_whoever_needs_one_run_is_told_where_it_is(tmp_path: Path, opening: object) -> None:
    begin(tmp_path / "s").folder.run(10).path.mkdir()
    (tmp_path / "s" / "seed4").mkdir()
    with pytest.raises(RunFolderError, match=r"holds runs of several seeds; give .* such as .*s/seed4\.$"):
        opening(tmp_path / "s")  # type: ignore[operator]
    with pytest.raises(RunFolderError, match=r"go on with them: `pretrain_seeds\(\.\.\., out='.*s'\)`"):
        refuse_taken(tmp_path / "s")


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_number_of_seeds_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(SettingsError, match=rf"`seeds={count}` is the number of seeds to run, from 1 to 1,000"):
        list_seeds(0, count)
    assert list(list_seeds(3, 2)) == [3, 4]


def report_of(*seeds: int) -> SeedsReport:
    about = {"protocol": "linear", "init": "cmsc", "label_fraction": 1.0, "metric": "auroc", "level": "frame"}
    one = SeedsScore(values=(0.5,), mean=0.5, sd=NAN, low=0.4, high=0.6, **about)  # type: ignore[arg-type]
    return SeedsReport(
        method="cmsc", dataset="tiny", task="kind", seeds=seeds, best_epochs=(1,), settings=TABLES, scores=(one,)
    )


def finish_runs(keeper: SeedsFolderKeeper, *seeds: int) -> None:
    for seed in seeds:
        folder = keeper.folder.run(seed)
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.report.write_text("{}")


def test_seeds_are_finished_when_the_summary_and_the_folder_have_all_of_them(tmp_path: Path) -> None:
    keeper = begin(tmp_path / "s")
    assert not is_finished(keeper.folder, range(3, 6))
    keeper.finish(report_of(3, 5), "<html>")
    assert not is_finished(keeper.folder, range(3, 6))
    finish_runs(keeper, 3, 5)
    keeper.finish(report_of(3, 4, 5), "<html>")
    assert not is_finished(keeper.folder, range(3, 6))  # that of seed 4 was removed
    finish_runs(keeper, 4)
    assert is_finished(keeper.folder, range(3, 6))
    assert keeper.folder.page.read_text() == "<html>"
    keeper.folder.report.write_text(keeper.folder.report.read_text().replace("0.5", "0.6"))
    with pytest.raises(RunFolderError, match="damaged, or was edited"):
        keeper.folder.read_report()


def test_a_summary_of_an_earlier_version_has_no_times(tmp_path: Path) -> None:
    keeper = begin(tmp_path / "s")
    keeper.finish(attrs.evolve(report_of(3), seconds={"prepare": 0.1, "runs": 2.5}), "<html>")
    assert keeper.folder.read_report().seconds == {"prepare": 0.1, "runs": 2.5}
    held = json.loads(keeper.folder.report.read_text())
    older = {name: value for name, value in held.items() if name not in ("seconds", "digest")}
    keeper.folder.report.write_text(json.dumps(seal(older)))
    assert keeper.folder.read_report().seconds == {}
    finish_runs(keeper, 3)
    assert is_finished(keeper.folder, range(3, 4))


def test_a_settings_file_without_seeds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seeds.toml").write_text("schema = 1\n[run]\nseed = 3\n")
    with pytest.raises(RunFolderError, match="does not say which seeds"):
        open_seeds_folder(tmp_path)


def test_in_memory_nothing_is_kept() -> None:
    keeper = SeedsKeeper()
    with keeper.open():
        keeper.begin(TABLES, range(2), SPLIT, USED)
        assert keeper.of_run(0) is not None
        keeper.finish(report_of(0), "")
