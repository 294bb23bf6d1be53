"""What trains is built from a plan; a network that no memory holds is refused with a sentence."""

from __future__ import annotations

import pytest
import torch
from fake_encoders import installed

from clocs_core.errors import SettingsError
from clocs_core.plan.data import Chosen
from clocs_core.plan.pretraining import resolve
from clocs_core.settings.options import structure
from clocs_core.train import build


@pytest.mark.parametrize(
    ("options", "dim", "samples"),
    [({}, 10**9, 2500), ({}, 2**62, 2500), ({}, 128, 10**15), ({"widths": [10**7, 10**7]}, 128, 2500)],
)
def test_a_network_larger_than_the_memory_is_refused_before_it_is_filled(options, dim, samples):
    offer = installed().encoders.get("cnn").offer
    with pytest.raises(SettingsError, match=r"'cnn' cannot be built: .* more than the \d+ GB of this machine"):
        build.draw_encoders(Chosen(offer, structure(offer.options, options, "encoder")), 1, samples, dim, 0)


def test_a_fault_of_a_plugin_is_not_taken_for_a_lack_of_memory():
    class Broken:
        name = "broken"

        def build(self, *_given):
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        build.draw_encoders(Chosen(Broken(), None), 1, 10, 2, 0)


def test_a_system_that_does_not_say_its_memory_sets_no_limit(monkeypatch):
    monkeypatch.delattr(build.os, "sysconf")
    assert build.physical_memory() == float("inf")


@pytest.mark.parametrize("method", ["cmsc", "simclr", "cmlc"])
@pytest.mark.parametrize("sizes", [("batch_size=1",), ("batch_size=1", "contrast_batch=1")])
def test_a_batch_of_one_instance_is_refused_where_it_has_nothing_to_contrast(method, sizes):
    """The loss is 0 from the first step on, and the run ends without a word, its weights as they were drawn."""
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}}, sizes)
    with pytest.raises(SettingsError, match=r"`batch_size=1` leaves the loss '.*' nothing to contrast"):
        build.refuse_lone_instances(plan, torch.device("cpu"))


@pytest.mark.parametrize(
    ("method", "sizes"),
    [("cmsc", ("batch_size=1", "contrast_batch=2")), ("simclr", ("batch_size=2",)), ("byol", ("batch_size=1",))],
)
def test_a_step_of_two_instances_and_a_method_that_contrasts_none_are_accepted(method, sizes):
    plan = resolve(installed(), {"run": {"method": method, "dataset": "demo"}}, sizes)
    build.refuse_lone_instances(plan, torch.device("cpu"))
