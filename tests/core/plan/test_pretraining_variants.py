"""What a method presets: for itself, for a variant of it, for one data set; and perturbations that serve its views."""

from __future__ import annotations

import pytest
from fake_offers import FlatOptions, build_flat, build_noise, build_pairs, tiny, together
from fake_plans import catalogue_of

from clocs_core import Encoder, Needs, NoOptions, Perturbation, Variant, ViewGenerator
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.layers import Assignment
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.toml_file import Tables

OLD = Variant(
    summary="as it was",
    presets={"train": {"patience": 3}, "views": {"segments": 5}, "encoder": {"widths": [7]}},
)


def copies_needs(_: NoOptions) -> Needs:
    return Needs(segments=2, perturbations="random")


def tasks_needs(_: NoOptions) -> Needs:
    return Needs(segments=2, perturbations="some")


def catalogue() -> Catalogue:
    noisy = {"noise": {"sigma": 0.5}, "run": {"perturbations": ["noise", "hum"]}}
    ours = {
        "clocs_datasets": lambda: [tiny("other")],
        "clocs_views": lambda: [
            ViewGenerator(name="copies", summary="copies", needs=copies_needs, build=build_pairs),
            ViewGenerator(name="tasks", summary="tasks", needs=tasks_needs, build=build_pairs),
        ],
        "clocs_perturbations": lambda: [Perturbation(name="mirror", summary="mirror", build=build_noise, random=False)],
        "clocs_encoders": lambda: [Encoder(name="second", summary="second", options=NoOptions, build=build_flat)],
        "clocs_methods": lambda: [
            together(
                "varied",
                presets={"train": {"patience": 9}, "views": {"segments": 3}},
                variants={"old": OLD, "plain": Variant(summary="as it is", presets={})},
                on_dataset={"other": {"train": {"patience": 2}, **noisy}},
            ),
            together("copied", views="copies", perturbations=("noise",), presets={"noise": {"sigma": 0.25}}),
            together("asked", views="tasks", perturbations=("mirror",)),
        ],
    }
    return catalogue_of(**ours)


def planned(*assignments: str, method: str = "varied", dataset: str = "tiny") -> Plan:
    return resolve(catalogue(), {"run": {"method": method, "dataset": dataset}}, assignments)


def test_without_a_variant_the_method_is_as_it_is() -> None:
    plan = planned()
    assert (plan.train.patience, plan.views.options.segments) == (9, 3)


def test_a_variant_stands_above_the_presets_of_its_method() -> None:
    plan = planned("variant=old")
    assert (plan.train.patience, plan.views.options.segments) == (3, 5)
    assert plan.encoder.options == FlatOptions(widths=(7,))


def test_an_assignment_stands_above_a_variant() -> None:
    assert planned("variant=old", "patience=4").train.patience == 4


def test_a_variant_with_nothing_in_it_changes_nothing_but_the_name() -> None:
    assert planned("variant=plain").train == planned().train


def test_an_unknown_variant_answers_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match=r"Method 'varied' has no variant 'odl'\. Did you mean 'old'\?"):
        planned("variant=odl")
    with pytest.raises(UnknownName, match=r"Method 'together' has no variant 'old'\. It has none\."):
        planned("variant=old", method="together")


def test_presets_for_a_data_set_hold_on_it_alone_and_may_choose_perturbations() -> None:
    plan = planned(dataset="other")
    assert (plan.train.patience, plan.run.perturbations) == (2, ("noise", "hum"))
    assert plan.perturbations[0].options.sigma == 0.5
    assert planned().run.perturbations == ()


def test_presets_of_the_methods_own_encoder_are_not_asked_of_another() -> None:
    """`--encoder` with a variant must not fail over a layer that the other network does not have."""
    plan = planned("variant=old", "encoder=second")
    assert (plan.encoder.offer.name, plan.encoder.options) == ("second", NoOptions())


def test_presets_of_a_perturbation_that_the_run_leaves_out_are_no_mistake() -> None:
    assert planned("perturbations=hum", method="copied").run.perturbations == ("hum",)


def test_the_plan_of_a_variant_is_made_again_from_its_tables() -> None:
    plan = planned("variant=old", dataset="other")
    again = resolve(catalogue(), plan.tables())
    assert again.tables() == plan.tables()
    assert plan.tables()["run"]["variant"] == "old"


@pytest.mark.parametrize(
    ("chosen", "accepted"), [("mirror", False), ("", False), ("none", False), ("mirror,noise", True)]
)
def test_copies_that_nothing_random_tells_apart_are_refused(chosen: str, accepted: bool) -> None:
    """Two equal inputs differ by dropout alone, and train without complaint."""
    if accepted:
        assert planned(f"perturbations={chosen}", method="copied").run.perturbations == ("mirror", "noise")
        return
    what = f"{chosen} makes the same of both" if chosen == "mirror" else "without perturbations both are the same"
    message = rf"contrasts two copies of a signal, and {what}; .*\(noise, hum\)"
    with pytest.raises(SettingsError, match=message):
        planned(f"perturbations={chosen}", method="copied")


def test_a_method_about_perturbations_needs_one_random_or_not() -> None:
    assert planned(method="asked").run.perturbations == ("mirror",)
    with pytest.raises(SettingsError, match="Method 'asked' is about perturbations, and the run has none"):
        planned("perturbations=", method="asked")


@pytest.mark.parametrize("given", ["", "none", "None", (), "in a file"])
def test_no_perturbations_are_not_the_perturbations_of_the_method(given: object) -> None:
    """An ablation without perturbations would be trained with them, and reported as one without."""
    tables: Tables = {"run": {"method": "noisy", "dataset": "tiny"}}
    if given == "in a file":
        plan = resolve(catalogue(), {"run": {**tables["run"], "perturbations": "none"}})
    else:
        plan = resolve(catalogue(), tables, [Assignment("run", "perturbations", given, isinstance(given, str))])
    assert plan.run.perturbations == plan.perturbations == ()
    assert plan.tables()["run"]["perturbations"] == []


def test_an_argument_that_is_none_in_python_leaves_a_method_its_own_perturbations() -> None:
    given = Assignment("run", "perturbations", None, is_text=False)
    plan = resolve(catalogue(), {"run": {"method": "noisy", "dataset": "tiny"}}, [given])
    assert plan.run.perturbations == ("noise",)


def test_a_settings_file_of_one_variant_is_not_run_under_the_name_of_another() -> None:
    """Its values are all written out and would win: the name alone would change."""
    tables = planned("variant=old").tables()
    with pytest.raises(SettingsError, match=r"those of variant 'old', all its values written out; variant 'plain'"):
        resolve(catalogue(), tables, ["variant=plain"])
    with pytest.raises(SettingsError, match="those of variant 'none'"):
        resolve(catalogue(), planned().tables(), ["variant=old"])
