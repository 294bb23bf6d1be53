"""The presets of an encoder beside those of a method and of a data set."""

from __future__ import annotations

import attrs
from fake_offers import offers
from fake_plans import catalogue_of

from clocs_core.plan.pretraining import Plan, resolve


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


def test_a_method_with_a_learning_rate_keeps_its_training_whatever_the_encoder_presets() -> None:
    (flat,) = [one for one in offers()["clocs_encoders"]() if one.name == "flat"]
    (method,) = [one for one in offers()["clocs_methods"]() if one.name == "preset"]
    wide = attrs.evolve(flat, name="wide", presets={"data": {"normalise": "z-score"}, "train": {"patience": 7}})
    own = attrs.evolve(method, name="own", presets={**method.presets, "train": {"learning_rate": 0.5, "patience": 4}})
    catalogue = catalogue_of(clocs_encoders=lambda: [wide], clocs_methods=lambda: [own])
    plan = resolve(catalogue, {"run": {"method": "own", "dataset": "tiny", "encoder": "wide"}})
    assert (plan.train.patience, plan.data.normalise) == (4, "z-score")
