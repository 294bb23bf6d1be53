"""Protocols by name: core's own and those of plugins, with their options; tasks that do not fit are refused."""

from __future__ import annotations

import pytest
from fake_encoders import installed
from fake_offers import BEATS, PARITY, tilt
from fake_plugins import fake_point, points

from clocs_core import Protocol, Task
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.evaluation import EvaluationPlan, resolve_evaluation
from clocs_core.plan.layers import Assignment
from clocs_core.plan.protocols import find_protocol, refuse_other_task
from clocs_core.plugins.session import open_session


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


def resolve(catalogue, *assignments, **evaluation):
    tables = {"evaluation": {"encoder": "flat", "dataset": "many", **evaluation}}
    return resolve_evaluation(catalogue, None, tables, assignments)


def test_core_s_protocols_and_those_of_plugins_are_found_by_name(catalogue):
    assert [find_protocol(catalogue, name).offer.name for name in ("linear", "finetune", "centres")] == [
        "linear", "finetune", "centres"
    ]  # fmt: skip
    known = "centres, finetune, linear, linear-record, patient-identification, tilted"
    with pytest.raises(UnknownName, match=rf"No protocol 'knm'.* There is: {known}"):
        find_protocol(catalogue, "knm")


def test_the_options_of_a_protocol_are_settings_of_the_evaluation(catalogue):
    made = resolve(catalogue, "sharp=2.5", protocol="centres")
    assert made.protocol.options.sharp == 2.5
    assert made.tables()["protocol"] == {"sharp": 2.5}
    assert made.name.startswith("many-centres-")
    assert made.name != resolve(catalogue, protocol="centres").name
    assert (
        made.sentence() == "Nearest centre (sharp = 2.5); it learns from a share F of the labelled training recordings."
    )
    assert "protocol" not in resolve(catalogue).tables()


def test_settings_of_fine_tuning_are_refused_by_other_protocols(catalogue):
    with pytest.raises(SettingsError, match=r"Protocol 'centres' has no such option, so epochs would do nothing"):
        resolve(catalogue, "epochs=3", protocol="centres")


def test_a_flag_of_fine_tuning_is_that_of_a_protocol_with_such_an_option():
    """The flag `--epochs` is a setting of fine-tuning, and `epochs` is an option of the attention pool, too."""
    given, every = [Assignment("finetune", "epochs", "3")], installed()

    def asked(protocol: str) -> EvaluationPlan:
        tables = {"evaluation": {"encoder": "resnet1d", "dataset": "demo", "protocol": protocol}}
        return resolve_evaluation(every, None, tables, given)

    assert asked("attention-pool").protocol.options.epochs == 3
    assert asked("finetune").protocol.settings.epochs == 3
    for other in ("linear", "knn"):
        with pytest.raises(SettingsError, match="so epochs would do nothing"):
            asked(other)


def test_a_task_that_a_protocol_cannot_learn_is_refused_before_anything_is_read(catalogue):
    with pytest.raises(
        SettingsError, match=r"'centres' is for tasks of the kind one_of, and 'findings' is of the kind"
    ):
        resolve(catalogue, "task=findings", protocol="centres")
    with pytest.raises(SettingsError, match=r"'centres' predicts recordings, and 'beats' has a label for each frame"):
        resolve(catalogue, "task=beats", protocol="centres")
    refuse_other_task(resolve(catalogue, protocol="tilted").protocol, BEATS)
    refuse_other_task(resolve(catalogue).protocol, Task("age", kind="number"))
    refuse_other_task(resolve(catalogue).protocol, PARITY)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "linear", "predict": tilt}, "'linear' is a protocol of clocs itself"),
        ({"name": "mine"}, "protocol 'mine' needs a function `predict`"),
        (
            {"name": "mine", "predict": tilt, "wants": "encoder", "rows": "record"},
            "wants the encoder, which reads frames",
        ),
    ],
)
def test_a_protocol_that_cannot_work_is_refused_where_it_is_made(fields, message):
    with pytest.raises(ValueError, match=message):
        Protocol(summary="s", **fields)


def test_nobody_can_take_the_place_of_a_protocol_of_core():
    """A plugin whose hook tries is set aside, and says so."""

    def clocs_protocols():
        return [Protocol(name="linear", summary="s", predict=tilt)]

    session = open_session([*points(), fake_point("taker", "strangers", clocs_protocols=clocs_protocols)], (), False)
    (broken,) = session.host.broken
    assert "'linear' is a protocol of clocs itself; give yours another name" in broken.problem
    assert find_protocol(session.catalogue, "linear").offer.predict is None
