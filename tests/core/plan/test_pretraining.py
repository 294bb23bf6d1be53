"""From names, tables and `-o` to a plan: later layers win, and every mistake is one sentence."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from fake_offers import NoiseOptions, TinyOptions, build_heads, build_noise, offers, pairs, tiny, together
from fake_plugins import fake_point

from clocs_core import Defaults, Framing, Needs, Objective, Perturbation, option
from clocs_core.errors import ClocsError, SettingsError, UnknownName
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import Catalogue, build_catalogue
from clocs_core.plugins.host import load_plugins
from clocs_core.settings.toml_file import Tables, dump_tables, read_tables


def catalogue_of(**more: Any) -> Catalogue:
    """The catalogue of the fake plugin, and of a second one with these hooks."""
    catalogue, host = build_catalogue(load_plugins([fake_point("all", **offers()), fake_point("more", **more)]))
    assert host.broken == ()
    return catalogue


CATALOGUE = catalogue_of()


def planned(*assignments: str, method: str = "together", dataset: str = "tiny", **tables: dict[str, object]) -> Plan:
    run = {"method": method, "dataset": dataset, **tables.pop("run", {})}
    return resolve(CATALOGUE, {"run": run, **tables}, assignments)


def refused(*assignments: str, kind: type[ClocsError] = SettingsError, **tables: Any) -> str:
    with pytest.raises(kind) as caught:
        planned(*assignments, **tables)
    assert type(caught.value) is kind
    return str(caught.value)


# ------------------------------------------------------------------------------------------------- layers, lowest first


def test_the_presets_of_an_encoder_win_over_method_and_data_set_and_lose_to_the_user() -> None:
    """Those of options that the run does not have are left out: an encoder serves methods with any views."""
    presets = {
        "run": {"embedding_dim": 32},
        "data": {"normalise": "z-score", "channels": []},
        "train": {"patience": 7},
        "views": {"segments": 4, "leads": "all"},
        "nowhere": {"x": 1},
    }
    (flat,) = [one for one in offers()["clocs_encoders"]() if one.name == "flat"]
    wide = attrs.evolve(flat, name="wide", presets=presets)
    catalogue = catalogue_of(clocs_encoders=lambda: [wide])

    def plan_of(*assignments: str) -> Plan:
        return resolve(catalogue, {"run": {"method": "preset", "dataset": "tiny", "encoder": "wide"}}, assignments)

    plan = plan_of()
    assert (plan.run.embedding_dim, plan.data.normalise, plan.train.patience) == (32, "z-score", 7)
    assert plan.views.options.segments == 4
    plan = plan_of("embedding_dim=8", "normalise=none", "patience=3", "segments=2")
    assert (plan.run.embedding_dim, plan.data.normalise, plan.train.patience) == (8, "none", 3)
    assert plan.views.options.segments == 2
    assert resolve(catalogue, plan_of().tables()) == plan_of()


def test_where_nobody_says_anything_the_defaults_hold() -> None:
    plan = planned()
    assert (plan.train.patience, plan.evaluate.resamples, plan.run.embedding_dim) == (15, 1000, 128)
    assert plan.views.options.segments == 2


def test_the_presets_of_a_method_win_over_defaults() -> None:
    plan = planned(method="preset")
    assert plan.views.options.segments == 3
    assert plan.train.patience == 4


def test_the_defaults_of_a_data_set_win_over_the_presets_of_a_method() -> None:
    """A learning rate was chosen for the recordings; a method's own idea of it is more general."""
    plan = planned(method="preset")
    assert plan.train.epochs == 3  # the preset says 99
    assert (plan.train.batch_size, plan.train.learning_rate, plan.data.split) == (8, 0.01, "64/16/20")


def test_a_file_wins_over_the_defaults_of_a_data_set() -> None:
    plan = planned(method="preset", train={"epochs": 7, "patience": 5}, views={"segments": 4})
    assert (plan.train.epochs, plan.train.patience, plan.train.batch_size) == (7, 5, 8)
    assert plan.views.options.segments == 4


def test_an_assignment_wins_over_all() -> None:
    plan = planned("epochs=11", "views.segments=5", "seed=3", train={"epochs": 7}, run={"seed": 2})
    assert (plan.train.epochs, plan.views.options.segments, plan.run.seed) == (11, 5, 3)


def test_of_two_assignments_the_later_wins() -> None:
    assert planned("epochs=11", "train.epochs=12").train.epochs == 12


# ---------------------------------------------------------------------------------------------------------- assignments


def test_an_assignment_goes_to_the_one_part_that_has_the_option() -> None:
    plan = planned("temperature=0.5", "bias=false", "widths=8,16", "people=4", "sigma=0.1", method="noisy")
    assert plan.loss is not None
    assert plan.loss.options.temperature == 0.5
    assert plan.encoder.options.bias is False
    assert plan.encoder.options.widths == (8, 16)
    assert plan.dataset.options == TinyOptions(people=4)
    assert plan.perturbations[0].options == NoiseOptions(sigma=0.1)


def test_an_assignment_sets_both_framings_together() -> None:
    """Encoder and evaluation must see frames of one length; `frame_samples` means both."""
    plan = planned("frame_samples=40")
    assert plan.pretrain_framing == Framing(frame_samples=40, sampling_rate=200.0)
    assert plan.evaluate_framing == Framing(frame_samples=40)


def test_an_assignment_with_a_part_sets_one_framing() -> None:
    plan = planned("evaluate_framing.sampling_rate=50")
    assert (plan.pretrain_framing.sampling_rate, plan.evaluate_framing.sampling_rate) == (200.0, 50.0)


def test_framings_of_different_lengths_are_refused() -> None:
    assert refused("pretrain_framing.frame_samples=40") == (
        "Frames are 40 samples long in pre-training and 50 in evaluation, but one encoder reads both; "
        "`frame_samples=...` sets them together."
    )


def test_two_ways_to_set_the_time_scale_are_refused_until_one_is_undone() -> None:
    """The data set resamples; whoever wants to stretch windows must say that it should not."""
    message = refused("source_samples=500")
    assert message == (
        "[pretrain_framing] choose one of sampling_rate, source_samples: each sets the time scale of a frame by itself."
    )
    plan = planned("source_samples=500", "sampling_rate=none")
    assert plan.pretrain_framing == plan.evaluate_framing == Framing(frame_samples=50, source_samples=500)


def test_perturbations_that_share_a_class_of_options_are_set_together_or_apart() -> None:
    both = {"perturbations": ["noise", "hum"]}
    plan = planned("sigma=1", run=both)
    assert [chosen.options.sigma for chosen in plan.perturbations] == [1.0, 1.0]
    plan = planned("hum.sigma=1", run=both)
    assert [chosen.options.sigma for chosen in plan.perturbations] == [None, 1.0]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("gain=2", "`gain=...` is ambiguous: write `dataset.gain=...` or `views.gain=...`."),
        (
            "temprature=1",
            "`temprature=...`: no part of this run has an option 'temprature'. Did you mean 'temperature'?",
        ),
        ("los.temperature=1", "`los.temperature=...`: this run has no part 'los'. Did you mean 'loss'?"),
        ("noise.sigma=1", "`noise.sigma=...`: this run has no part 'noise'."),
        ("loss.temprature=1", "`loss.temprature=...`: 'loss' has no option 'temprature'. Did you mean 'temperature'?"),
        ("loss.epochs=1", "`loss.epochs=...`: 'loss' has no option 'epochs'. There is: temperature."),
        ("run.sed=1", "`run.sed=...`: 'run' has no option 'sed'. Did you mean 'seed'?"),
        ("a.b.c=1", "`a.b.c=...`: this run has no part 'a.b'."),
        ("temperature", "-o temperature: expected NAME=VALUE or PART.NAME=VALUE."),
        ("=3", "-o =3: expected NAME=VALUE or PART.NAME=VALUE."),
        ("temperature=hot", "`loss.temperature=...`: expected a number, got 'hot'."),
        ("temperature=", "`loss.temperature=...`: expected a number, got ''."),
        ("temperature=0", "`loss.temperature=...`: must be positive, got 0.0."),
        ("bias=yes", "`encoder.bias=...`: expected true or false, got 'yes'."),
        ("widths=4,x", "`encoder.widths=...`: expected a whole number, got 'x'."),
        ("seed=x", "`run.seed=...`: expected a whole number, got 'x'."),
        ("label_fraction=2", "`evaluate.label_fraction=...`: must be between 0 and 1, got 2.0."),
    ],
)
def test_a_mistake_in_an_assignment_is_one_sentence(assignment: str, message: str) -> None:
    found = refused(assignment)
    assert found == message or found.startswith(message + " There is: ")


def test_an_option_that_is_also_a_setting_of_the_run_is_ambiguous() -> None:
    """`-o seed=3` must not go to the run alone when the data set has a seed as well: the user may mean that one."""
    seeded = attrs.make_class("Seeded", {"seed": option(0, "of the simulation")}, frozen=True)
    seeded.__annotations__ = {"seed": int}
    catalogue = catalogue_of(clocs_datasets=lambda: [tiny("seeded", options=seeded)])
    tables: Tables = {"run": {"method": "together", "dataset": "seeded"}}
    with pytest.raises(
        SettingsError, match=r"^`seed=\.\.\.` is ambiguous: write `run\.seed=\.\.\.` or `dataset\.seed=\.\.\.`\.$"
    ):
        resolve(catalogue, tables, ["seed=3"])
    plan = resolve(catalogue, tables, ["dataset.seed=3", "run.seed=4"])
    assert (plan.dataset.options.seed, plan.run.seed) == (3, 4)


# ----------------------------------------------------------------------------------------------------- tables of a file


@pytest.mark.parametrize("name", ["random", "chance"])
def test_a_method_with_the_name_of_a_control_is_refused(name: str) -> None:
    """Its scores would stand under the name of the untrained encoder, and nobody could tell the two apart."""
    catalogue = catalogue_of(clocs_methods=lambda: [together(name)])
    with pytest.raises(SettingsError, match=f"A method cannot be named '{name}': in reports this is .* a control"):
        resolve(catalogue, {"run": {"method": name, "dataset": "tiny"}})


def test_an_unknown_table_answers_with_its_neighbour() -> None:
    assert refused(trian={"epochs": 1}) == (
        "The settings have a table [trian] that this run has no use for. Did you mean 'train'?"
    )


def test_a_table_of_a_part_that_the_method_does_not_have_is_refused() -> None:
    """The file was made for another method; its values would be lost in silence."""
    assert refused(method="stateful", loss={"temperature": 1.0}).startswith(
        "The settings have a table [loss] that this run has no use for."
    )


def test_an_unknown_key_of_a_table_answers_with_its_neighbour() -> None:
    assert refused(train={"epoch": 1}) == "[train] has no option 'epoch'. Did you mean 'epochs'?"
    assert refused(run={"methd": "x"}) == "[run] has no option 'methd'. Did you mean 'method'?"


def test_a_value_of_another_type_in_a_table_is_refused() -> None:
    assert refused(train={"epochs": 2.7}) == "`train.epochs=...`: expected a whole number, got 2.7."


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"method": ""}, "A run needs a method (`method=NAME`). `clocs plugins` lists what is installed."),
        ({"dataset": ""}, "A run needs a data set (`dataset=NAME`). `clocs plugins` lists what is installed."),
    ],
)
def test_a_run_needs_a_method_and_a_data_set(run: dict[str, object], message: str) -> None:
    assert refused(run=run) == message


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"method": "togeter"}, "No method 'togeter'. Did you mean 'together'?"),
        ({"dataset": "tny"}, "No dataset 'tny'. Did you mean 'tiny'?"),
        ({"encoder": "flta"}, "No encoder 'flta'. Did you mean 'flat'?"),
        ({"perturbations": ["noize"]}, "No perturbation 'noize'. Did you mean 'noise'?"),
    ],
)
def test_an_unknown_name_answers_with_its_neighbour(run: dict[str, object], message: str) -> None:
    assert refused(kind=UnknownName, run=run) == f"{message} `clocs plugins` lists what is installed."


def test_the_parts_of_a_method_are_looked_up_by_name() -> None:
    """They may come from another distribution, which may not be installed."""
    catalogue = catalogue_of(clocs_methods=lambda: [together("far", loss="elsewhere")])
    with pytest.raises(UnknownName, match=r"^Method 'far' uses a part that is not installed. No loss 'elsewhere'"):
        resolve(catalogue, {"run": {"method": "far", "dataset": "tiny"}})


def test_the_encoder_of_the_user_wins_over_the_encoder_of_the_method() -> None:
    catalogue = catalogue_of(clocs_methods=lambda: [together("far", encoder="elsewhere")])
    plan = resolve(catalogue, {"run": {"method": "far", "dataset": "tiny", "encoder": "flat"}})
    assert plan.encoder.offer.name == "flat"


def test_perturbations_are_the_methods_own_unless_given() -> None:
    def names(plan: Plan) -> list[str]:
        return [chosen.offer.name for chosen in plan.perturbations]

    assert names(planned(method="noisy")) == ["noise"]
    assert names(planned("perturbations=hum,noise", method="noisy")) == ["hum", "noise"]
    assert names(planned("perturbations=", method="noisy")) == []
    assert names(planned("perturbations=none", method="noisy")) == []


@pytest.mark.parametrize("name", ["loss", "run", "train", "dataset"])
def test_a_perturbation_must_not_be_called_like_a_table(name: str) -> None:
    """Its options would take the place of the loss's, without a word."""
    rude = Perturbation(name=name, summary="rude", options=NoiseOptions, build=build_noise)
    catalogue = catalogue_of(clocs_perturbations=lambda: [rude])
    run: dict[str, object] = {"method": "together", "dataset": "tiny", "perturbations": [name]}
    with pytest.raises(SettingsError, match=f"^The perturbation {name!r} cannot be used: .* table"):
        resolve(catalogue, {"run": run})


# --------------------------------------------------------------------------------------------------- tasks and channels


def test_the_first_task_is_the_default() -> None:
    assert planned().task.name == planned().data.task == "parity"
    assert planned("task=findings").task.kind == "any_of"


def test_every_metric_comes_along() -> None:
    """A run may be evaluated on another task later; the protocol picks those that suit it."""
    assert [metric.name for metric in planned().metrics] == ["hits", "many"]


def test_an_unknown_task_answers_with_its_neighbour() -> None:
    assert refused("task=partiy", kind=UnknownName) == "Data set 'tiny' has no task 'partiy'. Did you mean 'parity'?"


@pytest.mark.parametrize(
    ("asked", "channels"),
    [
        ((), ("left", "right")),
        (("channels=right",), ("right",)),
        (("channels=right,left",), ("right", "left")),
        (("channels=1",), ("right",)),
        (("channels=both",), ("right", "left")),
    ],
)
def test_channels_are_names_or_a_preset(asked: Sequence[str], channels: tuple[str, ...]) -> None:
    assert planned(*asked).data.channels == channels


def test_a_data_set_may_choose_a_preset_by_default() -> None:
    catalogue = catalogue_of(clocs_datasets=lambda: [tiny("one", defaults=Defaults(channels="1"))])
    tables: Tables = {"run": {"method": "together", "dataset": "one"}}
    assert resolve(catalogue, tables).data.channels == ("right",)
    assert resolve(catalogue, tables, ["channels=left"]).data.channels == ("left",)


def test_an_unknown_channel_answers_with_its_neighbour() -> None:
    assert refused("channels=lef", kind=UnknownName) == ("Data set 'tiny' has no channel 'lef'. Did you mean 'left'?")


def test_an_unknown_channel_far_from_all_answers_with_presets_too() -> None:
    assert refused("channels=V9", kind=UnknownName) == (
        "Data set 'tiny' has no channel 'V9'. There is: 1, both, left, right."
    )


def test_a_channel_named_twice_is_refused() -> None:
    assert refused("channels=left,left") == "A channel is named twice in left, left."


def test_a_data_set_that_learns_its_channels_from_files_takes_any_name() -> None:
    catalogue = catalogue_of(clocs_datasets=lambda: [tiny("open", channels=(), presets={})])
    tables: Tables = {"run": {"method": "together", "dataset": "open"}}
    assert resolve(catalogue, tables).data.channels == ()
    assert resolve(catalogue, tables, ["channels=x"]).data.channels == ("x",)


def test_a_method_that_contrasts_leads_refuses_one() -> None:
    """Before anything is read: with one lead there is nothing to contrast."""
    assert planned(method="leads").needs.least_channels == 2
    assert refused("channels=left", method="leads") == (
        "Method 'leads' needs at least 2 channels, got 1 (left); name more with `channels=...`, or choose another "
        "method."
    )


@pytest.mark.parametrize("own", [(0, 2), (1, None), (1, 2)])
def test_channels_that_the_first_encoder_lacks_are_refused(own: tuple[int, int | None]) -> None:
    """Its evaluation would be of none, or of fewer than the method says."""
    needs = Needs(channels="all", encoders=2, first_channels=own)
    views = attrs.evolve(pairs(), name="sides", needs=lambda _options: needs)
    method = together("sides", views="sides")
    catalogue = catalogue_of(clocs_views=lambda: [views], clocs_methods=lambda: [method])
    tables: Tables = {"run": {"method": "sides", "dataset": "tiny"}}
    assert resolve(catalogue, tables).needs.of_first(("left", "right")) == ("left", "right")[slice(*own)]
    with pytest.raises(
        SettingsError, match=r"Method 'sides' needs at least 2 channels, got 1 \(left\); name more with"
    ):
        resolve(catalogue, tables, ["channels=left"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first_channels": (-1, None)}, "a number from 0 on and a larger one or None, got "),
        ({"first_channels": (1, 1)}, r"got \(1, 1\)"),
        ({"channels": "all", "encoder_channels": "all", "first_channels": (0, 1)}, "cannot be evaluated on some"),
    ],
)
def test_needs_that_nothing_can_meet_are_refused(fields: dict[str, Any], message: str) -> None:
    """By the plugin's own author, as soon as they are made."""
    with pytest.raises(ValueError, match=message):
        Needs(**fields)


# ------------------------------------------------------------------------------------------------------- there and back

VARIED = [
    ("together", []),
    ("noisy", ["sigma=0.25", "channels=1", "task=findings"]),
    ("preset", ["widths=1,2,3", "sampling_rate=none", "source_samples=60", "perturbations="]),
    ("stateful", ["label_fraction=0.1,1", "seed=9", "device=cpu", "data.root=/data", "learning_rate=0.1"]),
]


@pytest.mark.parametrize(("method", "assignments"), VARIED)
def test_the_tables_of_a_plan_make_the_same_plan(tmp_path: Path, method: str, assignments: list[str]) -> None:
    """settings.toml repeats a run: through the file, every value must survive."""
    plan = planned(*assignments, method=method)
    assert resolve(CATALOGUE, plan.tables()) == plan
    path = tmp_path / "settings.toml"
    path.write_text(dump_tables(plan.tables()), encoding="utf-8")
    assert resolve(CATALOGUE, read_tables(path)) == plan


@pytest.mark.parametrize(("method", "assignments"), VARIED)
def test_a_plan_can_be_pickled(method: str, assignments: list[str]) -> None:
    """A process pool, torchrun or a cluster gets it that way."""
    plan = planned(*assignments, method=method)
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize(
    ("given", "fit"),
    [
        ((), 2),
        (("segments=4",), 4),
        (("keep_flat=true",), 2),
        (("frame_samples=100",), 0),
        (("evaluate_framing.sampling_rate=50",), 0),
    ],
)
def test_frames_follow_from_the_recordings_unless_a_framing_is_asked_for(given: tuple[str, ...], fit: int) -> None:
    plan = planned(*given)
    assert (plan.fit, plan.recordings.fit) == (fit, fit)


def test_a_settings_file_with_a_framing_asks_for_it() -> None:
    """That of a run has one, so that a run is repeated as it was."""
    assert resolve(catalogue_of(), planned().tables()).fit == 0


@pytest.mark.parametrize(("of_embeddings", "refused"), [(False, True), (True, False)])
def test_a_contrast_over_batches_needs_an_objective_of_embeddings(of_embeddings: bool, refused: bool) -> None:
    calm = Objective(name="calm", summary="s", build=build_heads, of_embeddings=of_embeddings)
    method = together("calm", loss=None, objective="calm")
    catalogue = catalogue_of(clocs_objectives=lambda: [calm], clocs_methods=lambda: [method])
    tables: dict[str, dict[str, object]] = {"run": {"method": "calm", "dataset": "tiny"}}
    asked = ["batch_size=8", "contrast_batch=64"]
    if refused:
        with pytest.raises(SettingsError, match="'calm' reads more of the signals than their embeddings"):
            resolve(catalogue, tables, asked)
    else:
        assert resolve(catalogue, tables, asked).train.contrast_batch == 64
