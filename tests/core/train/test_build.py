"""What trains is built from a plan; a network that no memory holds is refused with a sentence."""

from __future__ import annotations

import pytest
from fake_encoders import installed

from clocs_core.errors import SettingsError
from clocs_core.plan.data import Chosen
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
