"""What TensorBoard's own server answers of runs and evaluations: settings, metrics, charts and embeddings."""

from __future__ import annotations

import json
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from fake_events import epoch_done, run_at, run_done
from werkzeug.test import Client

from clocs_plugins.tensorboard.writer import add_epoch, add_results, begin

with warnings.catch_warnings():  # a package that TensorBoard brings along warns of itself when it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from tensorboard.backend.application import TensorBoardWSGIApp
    from tensorboard.backend.event_processing.data_ingester import LocalDataIngester
    from tensorboard.plugins.custom_scalar.custom_scalars_plugin import CustomScalarsPlugin
    from tensorboard.plugins.hparams.hparams_plugin import HParamsPlugin
    from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
    from tensorboard.plugins.scalar.scalars_plugin import ScalarsPlugin


class Server:
    """TensorBoard on a folder, without a socket: its application is asked directly, once everything is read."""

    def __init__(self, logdir: Path) -> None:
        flags = Namespace(
            logdir=str(logdir),
            logdir_spec="",
            path_prefix="",
            generic_data="true",
            purge_orphaned_data=True,
            reload_interval=0,
            reload_task="blocking",
            reload_multifile=True,
            reload_multifile_inactive_secs=-1,
            samples_per_plugin={},
            max_reload_threads=1,
            detect_file_replacement=None,
            window_title="",
        )
        ingester = LocalDataIngester(flags)
        ingester.start()
        plugins = [ScalarsPlugin, HParamsPlugin, CustomScalarsPlugin, ProjectorPlugin]
        app = TensorBoardWSGIApp(flags, plugins, ingester.data_provider, None, ingester.deprecated_multiplexer)
        self._client = Client(app)

    def get(self, path: str, **query: str) -> bytes:
        answer = self._client.get(f"/data/{path}", query_string=query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_data()

    def post(self, path: str, **asked: object) -> Any:
        answer = self._client.post(f"/data/{path}", json=asked)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return json.loads(answer.get_data())


def write_run(folder: Path, method: str, value: float, **settings: dict[str, object]) -> None:
    run = run_at(folder, method=method, **settings)
    begin(run, 100.0)
    add_epoch(run, epoch_done(1, 4.0, [5.0, 3.0]), 101.0)
    add_results(run, run_done(method=method, value=value), 160.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Two methods with different options, as a grid leaves them."""
    runs = tmp_path_factory.mktemp("runs")
    write_run(runs / "near-d-s4", "near", 0.75, data={"leads": ("II", "V2"), "limit": None, "keep": True})
    write_run(runs / "far-d-s4", "far", 0.625, objective={"decay": float("inf")})
    return Server(runs)


def session_groups(server: Server) -> dict[str, Any]:
    """What the table of HPARAMS holds, by run; all settings and metrics are asked for."""
    found = server.post("plugin/hparams/experiment", experimentName="", includeMetrics=True)
    columns = [{"hparam": one["name"], "includeInResult": True} for one in found["hparamInfos"]]
    columns += [{"metric": one["name"]} for one in found["metricInfos"]]
    statuses = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]
    asked = {"startIndex": 0, "sliceSize": 100, "colParams": columns, "allowedStatuses": statuses}
    groups = server.post("plugin/hparams/session_groups", experimentName="", **asked)["sessionGroups"]
    return {group["name"]: group for group in groups}


def metric(group: dict[str, Any], tag: str) -> float:
    (found,) = [one["value"] for one in group["metricValues"] if one["name"] == {"tag": tag, "group": ""}]
    return found


def test_runs_are_rows_with_their_own_names_and_every_setting(served: Server) -> None:
    """A row is the run itself, not a copy of it below; a setting that one method alone has is a column all the same."""
    groups = session_groups(served)
    assert set(groups) == {"near-d-s4", "far-d-s4"}
    near, far = (groups[name]["hparams"] for name in ("near-d-s4", "far-d-s4"))
    assert near == {
        "method": "near",
        "dataset": "d",
        "seed": "4",
        "stage": "pretrain",
        "train.epochs": 3,
        "train.learning_rate": 1e-4,
        "loss.name": "a|b",
        "data.leads": "II, V2",
        "data.limit": "none",
        "data.keep": True,
    }
    assert far["objective.decay"] == "inf"


def test_settings_that_differ_are_the_first_columns(served: Server) -> None:
    """The tab shows the first few of a hundred settings; those that all runs share say nothing."""
    found = served.post("plugin/hparams/experiment", experimentName="", includeMetrics=True)["hparamInfos"]
    assert [one["name"] for one in found if one.get("differs")] == ["method"]
    assert found[0]["name"] == "method"


def test_scores_of_different_methods_are_one_metric(served: Server) -> None:
    """Two runs can be compared by a number only if it has the same name in both."""
    found = served.post("plugin/hparams/experiment", experimentName="", includeMetrics=True)["metricInfos"]
    tags = [one["name"]["tag"] for one in found]
    assert tags[:2] == ["final/linear/auroc/frame", "final/linear/auroc/frame/labels_0.1"]
    assert {"gain_over_random/linear/auroc/frame", "loss/validation", "health/margin"} <= set(tags)
    values = {name: metric(group, tags[0]) for name, group in session_groups(served).items()}
    assert values == {"near-d-s4": 0.75, "far-d-s4": 0.625}


def test_a_finished_run_says_when_it_began_and_that_it_is_over(served: Server) -> None:
    """A run that is still under way must be told from one that is not."""
    (session,) = session_groups(served)["near-d-s4"]["sessions"]
    assert (session["startTimeSecs"], session["endTimeSecs"], session["status"]) == (100.0, 160.0, "STATUS_SUCCESS")


def test_a_resumed_run_is_one_row(tmp_path: Path) -> None:
    """Every process that goes on with a run writes a file of its own."""
    begin(run_at(tmp_path / "r"), 100.0)
    add_epoch(run_at(tmp_path / "r"), epoch_done(1, 4.0, [5.0]), 101.0)
    resumed = run_at(tmp_path / "r", first_epoch=2)
    begin(resumed, 200.0)
    add_epoch(resumed, epoch_done(2, 3.0, [5.0]), 201.0)
    (group,) = session_groups(Server(tmp_path)).values()
    assert group["name"] == "r"
    assert metric(group, "loss/train") == 3.0
    assert group["sessions"][0]["status"] == "STATUS_UNKNOWN"


def test_curves_that_belong_together_share_a_chart(served: Server) -> None:
    """Training and validation loss are read against each other, and so are the cosines; every chart has curves."""
    (category,) = json.loads(served.get("plugin/custom_scalars/layout"))["category"]
    charts = {chart["title"]: chart["multiline"]["tag"] for chart in category["chart"]}
    assert charts["loss"] == ["loss/train", "loss/validation"]
    assert ["health/same_patient", "health/other_patient", "health/margin"] in charts.values()
    for tag in (tag for tags in charts.values() for tag in tags):
        answer = json.loads(served.get("plugin/custom_scalars/scalars", run="near-d-s4", tag=tag))
        assert list(answer["tag_to_events"]) == [tag]


def test_the_projector_serves_embeddings_with_labels_and_patients(served: Server) -> None:
    """The files are only worth what the server finds of them: 3 rows of 2 numbers, and their names."""
    assert set(json.loads(served.get("plugin/projector/runs"))) == {"near-d-s4", "far-d-s4"}
    config = json.loads(served.get("plugin/projector/info", run="near-d-s4"))
    assert [(one["tensorName"], one["tensorShape"]) for one in config["embeddings"]] == [("test part", [3, 2])]
    asked = {"run": "near-d-s4", "name": "test part"}
    assert len(served.get("plugin/projector/tensor", **asked)) == 3 * 2 * 4  # float32
    names = served.get("plugin/projector/metadata", num_rows="10", **asked).decode().splitlines()
    assert names == ["label\tpatient\trecord", "AF\tp 0\tr 0", "AF\tp 1\tr 1", "AF\tp 2\tr 2"]
