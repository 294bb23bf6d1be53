"""The table on PTB-XL: every row is a run that clocs accepts, and evaluations that fit it."""

from __future__ import annotations

from pathlib import Path

import ptbxl
import pytest

import clocs_core as clocs
from clocs_core.api.arguments import PRETRAIN, assignments_of
from clocs_core.contracts.result_offers import OWN_PROTOCOLS
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import installed_session

ROWS = ptbxl.read_rows(Path(ptbxl.HERE, "ptbxl.toml"))


def plan_of(row: ptbxl.Row) -> Plan:
    settings = {**ptbxl.COMMON, **ptbxl.FRAMES[row.frames], **row.options, "method": row.method, "encoder": row.encoder}
    data = clocs.dataset("ptbxl", task=row.task, split="published")
    return resolve(installed_session().catalogue, {}, assignments_of(PRETRAIN, data, settings))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_a_run_of_all_leads_on_the_published_folds(row: ptbxl.Row) -> None:
    plan = plan_of(row)
    assert plan.data.split == "published"
    assert plan.encoder.offer.name == row.encoder
    assert plan.evaluate_framing.frame_samples * plan.evaluate_framing.frames_per_record == 1000
    assert plan.needs.encoder_channels == "all"


def test_names_are_unique_and_so_are_their_folders(tmp_path: Path) -> None:
    place = ptbxl.Place(tmp_path, tmp_path, "test", "cpu")
    assert len({place.folder(row, 0) for row in ROWS}) == len(ROWS)


def test_fold_9_is_scored_with_a_fixed_penalty_and_fold_10_with_one_chosen_on_fold_9(tmp_path: Path) -> None:
    for part, penalty in (("validation", 0.01), ("test", "auto")):
        place = ptbxl.Place(tmp_path, tmp_path, part, "cpu")
        linear = list(ptbxl._evaluations(ptbxl.Row("a", "cpc", "s4d"), place))
        assert [one["task"] for one in linear] == list(ptbxl.TASKS)
        assert {one["C"] for one in linear} == {penalty}


def test_protocols_of_other_evaluations_exist() -> None:
    offered = {item.offer.name for item in installed_session().catalogue.protocols}
    assert {one["protocol"] for row in ROWS for one in row.evaluations} <= offered | set(OWN_PROTOCOLS)
