"""`-o NAME=VALUE` goes to the one part that has the option, or is refused in one sentence."""

from __future__ import annotations

import attrs
import pytest
from fake_offers import NoiseOptions, TinyOptions, tiny
from fake_plans import catalogue_of, planned, refused

from clocs_core import Framing, option
from clocs_core.errors import SettingsError
from clocs_core.plan.pretraining import resolve
from clocs_core.settings.toml_file import Tables


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
        ("label_fraction=2", "`evaluate.label_fraction=...`: must be above 0 and at most 1, got 2.0."),
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
