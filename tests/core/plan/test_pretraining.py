"""From names, tables and `-o` to a plan: later layers win, and every mistake is one sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from fake_offers import NoiseOptions, build_heads, build_noise, together
from fake_plans import CATALOGUE, catalogue_of, planned, refused

from clocs_core import Objective, Perturbation
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.settings.toml_file import dump_tables, read_tables

# ------------------------------------------------------------------------------------------------- layers, lowest first


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
